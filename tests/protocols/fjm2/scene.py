"""A publisher and subscribers of FJM2 on fake hosts, joined by a link that drops what a test chooses."""

from collections.abc import Callable
from typing import Any

from experiments.contract.bench import Bench
from experiments.contract.losses import Drop, nothing
from protocols.events import Event
from protocols.fjm2 import PROTOCOL, Fjm2Config
from protocols.fjm2.publisher import Fjm2Publisher
from protocols.fjm2.subscriber import Fjm2Subscriber
from protocols.jms import jms_message
from protocols.jms.message import JmsMessage
from protocols.machine import Group
from protocols.messaging import MessageReceived, Publication, Subscription
from protocols.norm.messages import NormMessage
from protocols.roles import RoleContext

__all__ = ["GROUP", "QUICK", "Scene", "message"]

GROUP = Group("239.0.0.1:6003")
QUICK: dict[str, Any] = {"rate": 1e6, "segment": 500, "grtt": 0.01, "probe_min": 0.1, "robust": 5}


def message(number: int, size: int = 100, priority: int = 4, **more: Any) -> JmsMessage:
    """Return a message of node 1 to the topic t."""
    return jms_message(1, number, more.pop("to", "topic:t"), body=bytes([number % 256]) * size, priority=priority, **more)


class Scene:
    """One publisher, "p", and subscribers "s1" and so on; `received` has the messages that each got."""

    def __init__(
        self, subscribers: int = 1, drop: Drop = nothing, *, selector: str = "", to: str = "topic:t", **settings: Any
    ) -> None:
        names = [f"s{n + 1}" for n in range(subscribers)]
        self.bench = Bench(["p", *names], drop=drop, delay=0.002)
        self.config = Fjm2Config(**{**QUICK, **settings})
        self.events: list[Event] = []
        self.told: dict[str, list[Event]] = {name: [] for name in names}
        self.subscribers: dict[str, Fjm2Subscriber] = {}
        for node, name in enumerate(names, 2):
            self._subscribe(name, node, Subscription(0, to, selector))
        host = self.bench.hosts["p"]
        machine = PROTOCOL.roles["publisher"].make(host, RoleContext(self.config, 1, GROUP))
        assert isinstance(machine, Fjm2Publisher)
        self.publisher = machine
        host.run(machine, self.events.append)

    def _subscribe(self, name: str, node: int, wanted: Subscription) -> None:
        host = self.bench.hosts[name]
        machine = PROTOCOL.roles["subscriber"].make(host, RoleContext(self.config, node, GROUP))
        assert isinstance(machine, Fjm2Subscriber)
        self.subscribers[name] = machine
        host.run(machine, self.told[name].append)
        host.call(machine.subscribe, wanted)

    def publish(self, *messages: Publication) -> bool:
        """Publish messages; return whether the publisher is blocked."""
        return [self.bench.hosts["p"].call(self.publisher.publish, each) for each in messages][-1]

    def run(self, seconds: float = 5.0, over: Callable[[], bool] = lambda: False) -> None:
        """Run for some seconds."""
        self.bench.run(self.bench.now + seconds, over)

    def deliver(self, packet: NormMessage) -> None:
        """Let the first subscriber receive a message that the publisher has not sent."""
        self.bench["s1"].deliver(packet, "p", GROUP, self.bench.now)

    def received(self, name: str = "s1") -> list[Publication]:
        """Return the messages that were delivered."""
        return [event.message for event in self.told[name] if isinstance(event, MessageReceived)]

    def numbers(self, name: str = "s1") -> list[int]:
        """Return the numbers of the messages that were delivered."""
        return [each.number for each in self.received(name)]
