"""A central server, its publishers and its subscribers on fake hosts, which fail a test when a machine breaks a rule."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from experiments.contract.bench import Bench
from protocols.broker.broker import Broker
from protocols.broker.config import BrokerConfig
from protocols.broker.publisher import BrokerPublisher
from protocols.broker.subscriber import BrokerSubscriber
from protocols.broker.wire import StompCodec
from protocols.connection import Connection
from protocols.events import Event
from protocols.machine import Codec, Group
from protocols.messaging import MessageReceived, Publication, Subscription
from protocols.relay.config import RelayConfig
from protocols.relay.publisher import RelayPublisher
from protocols.relay.relay import Relay
from protocols.relay.subscriber import RelaySubscriber
from protocols.relay.wire import RelayCodec
from protocols.roles import RoleContext

__all__ = ["BROKER", "GROUP", "NEVER", "RELAY", "Central", "Scene"]

GROUP = Group("239.0.0.1:6003")
NEVER = float("inf")


@dataclass(frozen=True, slots=True)
class Central:
    """The machines of a protocol with a central server, whose role is `role`."""

    role: str
    config: type[RelayConfig] | type[BrokerConfig]
    codec: type[Codec]
    server: type[Relay] | type[Broker]
    publisher: type[RelayPublisher] | type[BrokerPublisher]
    subscriber: type[RelaySubscriber] | type[BrokerSubscriber]


RELAY = Central("relay", RelayConfig, RelayCodec, Relay, RelayPublisher, RelaySubscriber)
BROKER = Central("broker", BrokerConfig, StompCodec, Broker, BrokerPublisher, BrokerSubscriber)


class Scene:
    """A server "m", publishers "p" and "q" and subscribers on a bench, with the events of each."""

    def __init__(
        self, central: Central, subscribers: Sequence[str] = ("r1",), room: float = NEVER, selector: str = "", **settings: Any
    ) -> None:
        self.central, self.config = central, central.config(**settings)
        self.bench = Bench(("m", "p", "q", *subscribers), room=room, codec=central.codec(), timeout=0.5)
        self.events: dict[str, list[Event]] = {name: [] for name in self.bench.hosts}
        self.start_server()
        self.publishers = {name: central.publisher(self.bench[name], self.context(2)) for name in ("p", "q")}
        for name, machine in self.publishers.items():
            self.bench[name].run(machine, self.events[name].append)
        self.subscribers = {}
        for node, name in enumerate(subscribers, 3):
            subscriber = self.subscribers[name] = central.subscriber(self.bench[name], self.context(node))
            self.bench[name].run(subscriber, self.events[name].append)
            self.bench[name].call(subscriber.subscribe, Subscription(0, "topic:t", selector))
        self.bench.run(0.1)

    def start_server(self) -> None:
        """Start the server, or start it again."""
        self.server = self.central.server(self.bench["m"], self.context(1))
        self.bench["m"].run(self.server, self.events["m"].append)

    def context(self, node: int) -> RoleContext:
        """Return what a machine of a node is made from."""
        return RoleContext(self.config, node, GROUP, addresses={self.central.role: ["m"]})

    def publish(
        self, *numbers: int, to: str = "topic:t", by: str = "p", expires_at: float = NEVER, **properties: Any
    ) -> list[bool]:
        """Publish messages; return of each whether the publisher is blocked afterwards."""
        messages = [Publication(2, number, to, 3, b"abc", properties, 4, 0.0, expires_at) for number in numbers]
        return [self.bench[by].call(self.publishers[by].publish, message) for message in messages]

    def received(self, name: str) -> list[int]:
        """Return the numbers of the messages that a subscriber got, in order."""
        return [event.message.number for event in self.events[name] if isinstance(event, MessageReceived)]

    def kinds(self, name: str, *kinds: type[Event]) -> list[Event]:
        """Return the events of some kinds at a host."""
        return [event for event in self.events[name] if isinstance(event, kinds)]

    def slow_down(self, name: str) -> Connection:
        """Let a subscriber take nothing, and return its connection."""
        (connection,) = self.bench[name].rules.states
        self.bench[name].hold(connection)
        return connection
