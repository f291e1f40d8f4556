"""The relay and its clients on fake hosts, which fail a test when a machine breaks a rule of connections."""

from collections.abc import Sequence
from typing import Any

from experiments.contract.bench import Bench
from protocols.connection import Connection
from protocols.events import Event
from protocols.machine import Group
from protocols.messaging import (
    MessageAccepted,
    MessageDropped,
    MessageExpired,
    MessageReceived,
    Publication,
    PublisherIdle,
    PublisherUnblocked,
    Subscribed,
    Subscription,
    SubscriptionEnded,
)
from protocols.relay.config import RelayConfig
from protocols.relay.messages import Publish
from protocols.relay.publisher import RelayPublisher
from protocols.relay.relay import Relay
from protocols.relay.subscriber import RelaySubscriber
from protocols.relay.wire import RelayCodec
from protocols.roles import RoleContext

GROUP = Group("239.0.0.1:6003")


class Scene:
    """A relay "m", a publisher "p" and subscribers on a bench, with the events of each."""

    def __init__(self, subscribers: Sequence[str] = ("r1",), room: float = float("inf"), **settings: Any) -> None:
        self.config = RelayConfig(**settings)
        self.bench = Bench(("m", "p", *subscribers), room=room, codec=RelayCodec(), timeout=0.5)
        self.events: dict[str, list[Event]] = {name: [] for name in self.bench.hosts}
        self.start_relay()
        self.publisher = RelayPublisher(self.bench["p"], self.context(2))
        self.bench["p"].run(self.publisher, self.events["p"].append)
        self.subscribers = {}
        for node, name in enumerate(subscribers, 3):
            machine = self.subscribers[name] = RelaySubscriber(self.bench[name], self.context(node))
            self.bench[name].run(machine, self.events[name].append)
            self.bench[name].call(machine.subscribe, Subscription(0, "topic:t"))
        self.bench.run(0.1)

    def start_relay(self) -> None:
        self.relay = Relay(self.bench["m"], self.context(1))
        self.bench["m"].run(self.relay, self.events["m"].append)

    def context(self, node: int) -> RoleContext:
        return RoleContext(self.config, node, GROUP, addresses={"relay": ["m"]})

    def publish(self, *numbers: int, to: str = "topic:t", expires_at: float = float("inf")) -> list[bool]:
        messages = [Publication(2, number, to, 3, b"abc", {}, 4, 0.0, expires_at) for number in numbers]
        return [self.bench["p"].call(self.publisher.publish, message) for message in messages]

    def received(self, name: str) -> list[int]:
        return [event.message.number for event in self.events[name] if isinstance(event, MessageReceived)]

    def kinds(self, name: str, *kinds: type[Event]) -> list[Event]:
        return [event for event in self.events[name] if isinstance(event, kinds)]


def test_every_subscriber_gets_every_message_in_order() -> None:
    scene = Scene(("r1", "r2", "r3"))
    scene.publish(*range(20))
    scene.bench.run(1.0)
    assert [scene.received(name) for name in ("r1", "r2", "r3")] == [list(range(20))] * 3
    assert scene.kinds("p", MessageAccepted) == [MessageAccepted(number) for number in range(20)]
    assert scene.events["p"][-1] == PublisherIdle()
    assert scene.relay.counts()["copies_sent"] == 60


def test_only_subscribers_of_the_destination_get_a_message() -> None:
    scene = Scene(("r1", "r2"))
    scene.bench["r2"].call(scene.subscribers["r2"].subscribe, Subscription(1, "topic:other"))
    scene.bench["r2"].call(scene.subscribers["r2"].unsubscribe, 0)
    scene.bench.run(0.2)
    scene.publish(1)
    scene.publish(2, to="topic:other")
    scene.bench.run(1.0)
    assert scene.received("r1") == [1]
    assert scene.received("r2") == [2]


def test_a_client_gets_one_copy_for_all_its_subscriptions() -> None:
    scene = Scene(("r1",))
    scene.bench["r1"].call(scene.subscribers["r1"].subscribe, Subscription(5, "topic:t"))
    scene.bench.run(0.2)
    scene.publish(1)
    scene.bench.run(1.0)
    assert [event.subscription for event in scene.kinds("r1", MessageReceived)] == [0, 5]  # type: ignore[attr-defined]
    assert scene.relay.counts()["copies_sent"] == 1


def test_a_publisher_is_blocked_until_the_relay_accepts() -> None:
    scene = Scene(window=2)
    assert scene.publish(1, 2) == [False, True]
    assert not scene.kinds("p", PublisherUnblocked)
    scene.bench.run(1.0)
    assert scene.kinds("p", PublisherUnblocked) == [PublisherUnblocked()]


def test_a_slow_subscriber_blocks_the_publisher_and_loses_nothing() -> None:
    scene = Scene(("r1", "r2"), room=2, window=4, queue=2)
    (slow,) = scene.bench["r2"].rules.states
    scene.bench["r2"].hold(slow)
    full = False
    number = 0
    while not full:
        (full,) = scene.publish(number)
        number += 1
        scene.bench.run(scene.bench.now + 0.1)
    assert number > 4
    assert scene.relay.held()["messages for a client"][0] <= 4
    scene.bench.run(scene.bench.now + 5.0)
    assert not scene.kinds("p", PublisherUnblocked)
    scene.bench["r2"].release(slow)
    scene.bench.run(scene.bench.now + 1.0)
    assert scene.kinds("p", PublisherUnblocked)
    assert scene.received("r1") == scene.received("r2") == list(range(number))


def test_clients_connect_again_after_a_crash_of_the_relay_and_tell_what_they_lost() -> None:
    scene = Scene(("r1",), retry=0.1)
    scene.publish(1)
    scene.bench.run(0.2)
    scene.publish(2)
    scene.bench.crash("m")
    scene.bench.run(0.4)
    assert scene.kinds("r1", SubscriptionEnded) == [SubscriptionEnded(0, "reset")]
    assert scene.kinds("p", MessageDropped) == [MessageDropped(2, "reset")]
    scene.publish(3)
    scene.start_relay()
    scene.bench.run(3.0)
    assert scene.kinds("r1", Subscribed) == [Subscribed(0), Subscribed(0)]
    scene.publish(4)
    scene.bench.run(4.0)
    # Message 3 waited for the connection, and the publisher may have been back before the subscriber.
    assert scene.received("r1") in ([1, 3, 4], [1, 4])
    assert scene.kinds("p", MessageAccepted)[-1] == MessageAccepted(4)


def test_without_power_clients_find_out_by_time_out() -> None:
    scene = Scene(("r1",))
    scene.publish(1)
    scene.bench.run(0.2)
    scene.bench.crash("m", power=True)
    scene.publish(2)
    scene.bench.run(5.0)
    assert scene.kinds("p", MessageDropped) == [MessageDropped(2, "timeout")]


def test_expired_messages_are_not_delivered() -> None:
    scene = Scene(("r1",))
    scene.publish(1, expires_at=0.105)
    scene.publish(2, expires_at=10.0)
    scene.bench.run(1.0)
    assert scene.received("r1") == [2]
    assert scene.relay.counts()["messages_expired"] == 1
    scene.publish(3, expires_at=0.01)
    assert scene.kinds("p", MessageExpired) == [MessageExpired(2, 3)]


def test_a_publisher_that_ignores_the_window_is_refused() -> None:
    scene = Scene(("r1",), window=2, queue=1, room=1)
    (slow,) = scene.bench["r1"].rules.states
    scene.bench["r1"].hold(slow)
    context = RoleContext(RelayConfig(window=50), 2, GROUP, addresses={"relay": ["m"]})
    scene.bench["p"].stop()
    scene.publisher = RelayPublisher(scene.bench["p"], context)
    scene.bench["p"].run(scene.publisher, scene.events["p"].append)
    scene.bench.run(scene.bench.now + 0.1)
    scene.publish(*range(20))
    scene.bench.run(scene.bench.now + 1.0)
    assert scene.relay.counts()["clients_refused"] >= 1


def test_a_message_of_a_connection_that_is_gone_is_ignored() -> None:
    scene = Scene(("r1",))
    scene.relay.receive(Publish(Publication(9, 1, "topic:t", 0, b"")), Connection("x"), Connection("x"), 1.0)
    scene.bench.run(1.0)
    assert scene.received("r1") == []
