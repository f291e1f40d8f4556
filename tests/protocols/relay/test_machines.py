"""The relay and its clients on fake hosts, which fail a test when a machine breaks a rule of connections."""

from functools import partial

from protocols.connection import Connection
from protocols.messaging import (
    MessageDropped,
    MessageReceived,
    Publication,
    PublisherUnblocked,
    Subscription,
)
from protocols.relay.config import RelayConfig
from protocols.relay.messages import Publish
from protocols.relay.publisher import RelayPublisher
from protocols.roles import RoleContext
from tests.protocols.central import scene as central
from tests.protocols.central.scene import GROUP, RELAY

Scene = partial(central.Scene, RELAY)


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
    assert scene.server.counts()["copies_sent"] == 1


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
    assert scene.server.held()["messages for a client"][0] <= 4
    scene.bench.run(scene.bench.now + 5.0)
    assert not scene.kinds("p", PublisherUnblocked)
    scene.bench["r2"].release(slow)
    scene.bench.run(scene.bench.now + 1.0)
    assert scene.kinds("p", PublisherUnblocked)
    assert scene.received("r1") == scene.received("r2") == list(range(number))


def test_without_power_clients_find_out_by_time_out() -> None:
    scene = Scene(("r1",))
    scene.publish(1)
    scene.bench.run(0.2)
    scene.bench.crash("m", power=True)
    scene.publish(2)
    scene.bench.run(5.0)
    assert scene.kinds("p", MessageDropped) == [MessageDropped(2, "timeout")]


def test_a_publisher_that_ignores_the_window_is_refused() -> None:
    scene = Scene(("r1",), window=2, queue=1, room=1)
    (slow,) = scene.bench["r1"].rules.states
    scene.bench["r1"].hold(slow)
    context = RoleContext(RelayConfig(window=50), 2, GROUP, addresses={"relay": ["m"]})
    scene.bench["p"].stop()
    scene.publishers["p"] = late = RelayPublisher(scene.bench["p"], context)
    scene.bench["p"].run(late, scene.events["p"].append)
    scene.bench.run(scene.bench.now + 0.1)
    scene.publish(*range(20))
    scene.bench.run(scene.bench.now + 1.0)
    assert scene.server.counts()["clients_refused"] >= 1


def test_a_message_of_a_connection_that_is_gone_is_ignored() -> None:
    scene = Scene(("r1",))
    scene.server.receive(Publish(Publication(9, 1, "topic:t", 0, b"")), Connection("x"), Connection("x"), 1.0)
    scene.bench.run(1.0)
    assert scene.received("r1") == []
