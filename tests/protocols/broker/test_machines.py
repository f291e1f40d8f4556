"""The broker and its clients on fake hosts, which fail a test when a machine breaks a rule of connections."""

from functools import partial
from typing import Any

import pytest

from experiments.contract.recorder import Recorder
from protocols.broker.broker import Broker
from protocols.broker.clients import MOST_SELECTOR_CHARACTERS
from protocols.broker.config import BrokerConfig
from protocols.broker.messages import (
    Beat,
    Connect,
    Content,
    Delivery,
    Disconnect,
    Failure,
    Receipt,
    Refused,
    Send,
    Subscribe,
    Unsubscribe,
)
from protocols.connection import Connection
from protocols.errors import ConfigError, UsageError
from protocols.machine import Message
from protocols.messaging import (
    MessageAccepted,
    MessageReceived,
    Publication,
    PublisherIdle,
    PublisherUnblocked,
    Subscription,
    SubscriptionEnded,
)
from protocols.roles import RoleContext
from tests.protocols.central import scene as central
from tests.protocols.central.scene import BROKER, GROUP

Scene = partial(central.Scene, BROKER)


def test_only_subscriptions_whose_selector_is_true_get_a_message() -> None:
    scene = Scene(("r1", "r2"), selector="price > 10 AND symbol = 'A'")
    scene.bench["r2"].call(scene.subscribers["r2"].subscribe, Subscription(1, "topic:t", "price <= 10"))
    scene.bench.run(0.2)
    scene.publish(1, price=11, symbol="A")
    scene.publish(2, price=9.5, symbol="A")
    scene.publish(3, symbol="A")
    scene.bench.run(1.0)
    assert scene.received("r1") == [1]
    assert scene.received("r2") == [1, 2]
    assert [event.subscription for event in scene.kinds("r2", MessageReceived)] == [0, 1]  # type: ignore[attr-defined]
    assert scene.server.counts()["copies_sent"] == 3


def test_equal_selectors_are_evaluated_once_for_a_message(monkeypatch: pytest.MonkeyPatch) -> None:
    from protocols.broker import selection

    count = 0
    before = selection.Selection.selects

    def counted(self: selection.Selection, content: Content) -> bool:
        nonlocal count
        count += 1
        return before(self, content)

    monkeypatch.setattr(selection.Selection, "selects", counted)
    scene = Scene(("r1", "r2", "r3"), selector="price > 10")
    scene.publish(1, price=11)
    scene.bench.run(1.0)
    assert [scene.received(name) for name in ("r1", "r2", "r3")] == [[1]] * 3
    assert count == 1


def test_header_fields_can_be_selected() -> None:
    scene = Scene(
        ("r1",), selector="JMSPriority > 4 AND JMSMessageID = 'ID:00000002.1.7' AND JMSDeliveryMode = 'NON_PERSISTENT'"
    )
    for number, priority in ((6, 9), (7, 9), (8, 4)):
        message = Publication(2, number, "topic:t", 0, b"", {}, priority)
        scene.bench["p"].call(scene.publishers["p"].publish, message)
    scene.bench.run(1.0)
    assert scene.received("r1") == [7]


def test_after_unsubscribing_nothing_comes_and_another_topic_goes_on() -> None:
    scene = Scene(("r1",))
    scene.bench["r1"].call(scene.subscribers["r1"].subscribe, Subscription(1, "topic:other"))
    scene.bench["r1"].call(scene.subscribers["r1"].unsubscribe, 0)
    scene.bench.run(0.2)
    scene.publish(1)
    scene.publish(2, to="topic:other")
    scene.bench.run(1.0)
    assert scene.received("r1") == [2]
    assert scene.server.counts()["copies_sent"] == 1


def test_a_slow_subscriber_blocks_the_publisher_of_its_topic_alone_and_loses_nothing() -> None:
    scene = Scene(("r1", "r2"), room=2, window=4, queue=2)
    scene.bench["r1"].call(scene.subscribers["r1"].subscribe, Subscription(1, "topic:other"))
    scene.bench.run(0.2)
    slow = scene.slow_down("r2")
    number, full = 0, False
    while not full:
        (full,) = scene.publish(number)
        number += 1
        scene.bench.run(scene.bench.now + 0.1)
    assert number > 4
    scene.publish(100, 101, 102, to="topic:other", by="q")
    scene.bench.run(scene.bench.now + 5.0)
    assert not scene.kinds("p", PublisherUnblocked)
    assert scene.kinds("q", MessageAccepted) == [MessageAccepted(number) for number in (100, 101, 102)]
    scene.bench["r2"].release(slow)
    scene.bench.run(scene.bench.now + 1.0)
    assert scene.kinds("p", PublisherUnblocked)
    assert scene.received("r2") == list(range(number))
    assert [each for each in scene.received("r1") if each < 100] == list(range(number))


def test_a_subscriber_that_takes_nothing_for_long_is_closed_and_the_others_go_on() -> None:
    scene = Scene(("r1", "r2"), room=1, queue=2, stall=2.0, retry_max=100.0, retry=50.0)
    scene.slow_down("r2")
    scene.publish(*range(10))
    scene.bench.run(1.5)
    assert len(scene.received("r1")) < 10
    scene.bench.run(6.0)
    assert scene.received("r1") == list(range(10))
    assert scene.server.counts()["clients_stalled"] == 1
    assert scene.events["p"][-1] == PublisherIdle()


def test_a_subscriber_that_is_slow_but_takes_something_is_not_closed() -> None:
    scene = Scene(("r1",), room=1, queue=2, window=3, stall=1.0)
    scene.publish(*range(3))
    for _ in range(20):
        slow = scene.slow_down("r1")
        scene.bench.run(scene.bench.now + 0.6)
        scene.bench["r1"].release(slow)
        scene.publish(len(scene.received("r1")) + 100)
        scene.bench.run(scene.bench.now + 0.01)
    scene.bench.run(scene.bench.now + 3.0)
    assert scene.server.counts()["clients_stalled"] == 0
    assert len(scene.received("r1")) == 23


def test_an_idle_session_goes_on_by_heart_beats_and_a_silent_broker_is_given_up() -> None:
    scene = Scene(("r1",), heartbeat=1.0)
    scene.bench.run(20.0)
    assert not scene.kinds("r1", SubscriptionEnded)
    scene.publish(1)
    scene.bench.run(20.5)
    assert scene.received("r1") == [1]
    scene.slow_down("r1")
    scene.bench.run(30.0)
    assert scene.kinds("r1", SubscriptionEnded) == [SubscriptionEnded(0, "timeout")]


def test_destinations_and_selectors_that_are_none_are_refused_before_they_are_sent() -> None:
    scene = Scene(("r1",))
    with pytest.raises(UsageError, match="no queues"):
        scene.publish(1, to="queue:x")
    subscriber = scene.subscribers["r1"]
    with pytest.raises(UsageError, match="topic:NAME"):
        scene.bench["r1"].call(subscriber.subscribe, Subscription(1, "topic:"))
    with pytest.raises(ConfigError):
        scene.bench["r1"].call(subscriber.subscribe, Subscription(1, "topic:t", "price >"))


# A broker among clients that break rules


class Served:
    """A broker with recorded ports, and connections of clients that send what they like."""

    def __init__(self, **settings: Any) -> None:
        self.ports = Recorder()
        self.broker = Broker(self.ports, RoleContext(BrokerConfig(**settings), 1, GROUP))
        self.broker.start(0.0)

    def client(self, *messages: Message, greets: bool = True) -> Connection:
        connection = Connection("somebody")
        self.broker.opened(connection, 0.0)
        for message in (*([Connect()] if greets else []), *messages):
            self.send(connection, message)
        return connection

    def send(self, connection: Connection, message: Message, now: float = 0.0) -> None:
        self.broker.receive(message, connection, connection, now)

    def sent(self, connection: Connection) -> list[Message]:
        return [packet.message for packet in self.ports.packets if packet.to is connection][1:]


MESSAGE = Send(Content("topic:t", b"", 1, b"x"))


def test_a_client_that_begins_no_session_gives_up_its_place() -> None:
    server = Served(clients=2, stall=3.0, heartbeat=0.0)
    server.client()
    server.client(greets=False)
    refused = server.client(greets=False)
    server.broker.wake(2.9)
    assert server.broker.counts()["clients_stalled"] == 0
    server.broker.wake(6.0)
    assert server.broker.counts()["clients_stalled"] == 1
    assert server.broker.counts()["clients_refused"] == 1
    assert server.sent(server.client()) == []
    assert not server.sent(refused)


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (Refused("transaction: there are no transactions", "7"), "transactions"),
        (Connect(), "CONNECT is not allowed here"),
        (Receipt("1"), "RECEIPT is not allowed here"),
        (Subscribe("s", "topic:t", "price >", "7"), "selector: "),
        (Subscribe("a", "topic:t"), "another subscription"),
    ],
)
def test_a_client_that_breaks_a_rule_gets_the_reason_and_is_closed(message: Message, words: str) -> None:
    served = Served()
    connection = served.client(Subscribe("a", "topic:t"), message)
    failure = served.sent(connection)[-1]
    assert isinstance(failure, Failure)
    assert words in failure.reason
    assert served.ports.hung_up == [connection]
    served.client(MESSAGE)
    assert served.broker.counts()["copies_sent"] == 0
    assert served.broker.counts()["clients_refused"] == 1


def test_the_selectors_of_a_client_are_limited_together_and_those_of_ended_subscriptions_do_not_count() -> None:
    served, half = Served(), f"name = '{'x' * (MOST_SELECTOR_CHARACTERS // 2 - 9)}'"
    assert len(half) == MOST_SELECTOR_CHARACTERS // 2
    connection = served.client(Subscribe("a", "topic:t", half), Subscribe("b", "topic:t", half))
    served.send(connection, Unsubscribe("b"))
    served.send(connection, Subscribe("c", "topic:t", half, "r"))
    assert served.sent(connection) == [Receipt("r")]
    served.send(connection, Subscribe("d", "topic:t", "a = 1"))
    failure = served.sent(connection)[-1]
    assert isinstance(failure, Failure)
    assert "selectors have at most 65536 characters" in failure.reason
    assert served.ports.hung_up == [connection]


@pytest.mark.parametrize("message", [MESSAGE, Connect(("1.0", "1.1")), Disconnect()])
def test_a_session_begins_with_connect_of_version_1_2(message: Message) -> None:
    served = Served()
    connection = served.client(message, greets=False)
    assert served.ports.hung_up == [connection]


def test_one_client_too_many_is_closed() -> None:
    served = Served(clients=2)
    served.client()
    served.client()
    third = served.client(greets=False)
    assert served.ports.hung_up == [third]


def test_a_publisher_without_receipts_is_not_read_while_its_messages_wait() -> None:
    served = Served(window=4, queue=1)
    subscriber = served.client(Subscribe("s", "topic:t"))
    served.ports.rooms[subscriber] = 1
    publisher = served.client()
    for _ in range(7):
        served.send(publisher, MESSAGE)
    assert served.ports.held_back == {publisher}
    assert served.broker.held()["messages of a client"][0] == 5
    for _ in range(5):
        served.ports.rooms[subscriber] = 1
        served.broker.drained(subscriber, 1.0)
    assert not served.ports.held_back
    assert sum(isinstance(message, Delivery) for message in served.sent(subscriber)) >= 5


def test_who_disconnects_gets_its_receipt_when_everything_before_is_accepted() -> None:
    served = Served(queue=1)
    subscriber = served.client(Subscribe("s", "topic:t"))
    served.ports.rooms[subscriber] = 1
    publisher = served.client(*[MESSAGE] * 4, Disconnect("bye"))
    assert Receipt("bye") not in served.sent(publisher)
    served.ports.rooms[subscriber] = float("inf")
    served.broker.drained(subscriber, 1.0)
    assert served.sent(publisher)[-1] == Receipt("bye")
    assert served.ports.hung_up == [publisher]
    assert sum(isinstance(message, Delivery) for message in served.sent(subscriber)) == 4


def test_a_client_that_is_not_heard_is_closed() -> None:
    served = Served(heartbeat=1.0)
    silent = served.client(Connect(send_every=1000, hear_every=0), greets=False)
    served.client()
    while served.broker.deadline < 10.0:
        served.broker.wake(served.broker.deadline)
    assert served.ports.hung_up == [silent]


def test_a_crash_of_a_publisher_drops_what_it_published_and_was_not_accepted() -> None:
    served = Served(queue=1)
    subscriber = served.client(Subscribe("s", "topic:t"))
    served.ports.rooms[subscriber] = 1
    publisher = served.client(*[MESSAGE] * 5)
    served.broker.closed(publisher, "reset", 1.0)
    served.ports.rooms[subscriber] = float("inf")
    served.broker.drained(subscriber, 1.0)
    assert sum(isinstance(message, Delivery) for message in served.sent(subscriber)) == 2
    assert served.broker.held()["messages of a client"][0] == 0


def test_who_disconnects_is_not_taken_for_gone_while_its_messages_wait() -> None:
    served = Served(queue=1, heartbeat=1.0, stall=100.0)
    subscriber = served.client(Subscribe("s", "topic:t"))
    served.ports.rooms[subscriber] = 1
    greeting = Connect(send_every=1000, hear_every=0)
    publisher = served.client(greeting, *[MESSAGE] * 4, Disconnect("bye"), greets=False)
    while served.broker.deadline < 10.0:
        served.broker.wake(served.broker.deadline)
    served.ports.rooms[subscriber] = float("inf")
    served.broker.drained(subscriber, 10.0)
    assert served.sent(publisher)[-1] == Receipt("bye")
    assert sum(isinstance(message, Delivery) for message in served.sent(subscriber)) == 4


def test_who_disconnects_is_not_awaited_for_its_acknowledgements() -> None:
    served = Served()
    subscriptions = [Subscribe(name, "topic:t", acknowledges=True) for name in "ab"]
    client = served.client(*subscriptions)
    other = served.client(Send(MESSAGE.content, "o"))
    for message in (Send(MESSAGE.content, "1"), Send(MESSAGE.content, "2"), Disconnect("bye")):
        served.send(client, message)
    assert [message for message in served.sent(client) if isinstance(message, Receipt)] == [*map(Receipt, ("1", "2", "bye"))]
    assert served.sent(other)[-1] == Receipt("o")
    assert served.ports.hung_up == [client]


@pytest.mark.parametrize("message", [Disconnect(), Refused("no")])
def test_messages_that_waited_for_a_subscriber_go_on_at_once_when_it_ends(message: Message) -> None:
    served = Served(queue=1)
    subscriber = served.client(Subscribe("s", "topic:t"))
    served.ports.rooms[subscriber] = 1
    publisher = served.client(*[MESSAGE] * 3, Send(MESSAGE.content, "r"))
    assert served.broker.held()["messages of a client"][0] > 0
    served.send(subscriber, message)
    assert served.broker.held()["messages of a client"][0] == 0
    assert served.sent(publisher) == [Receipt("r")]


@pytest.mark.parametrize(("wanted", "begins"), [(11_000, 0.0), (10_000, 0.1), (14_900, 7.3), (26_000, 2.6)])
def test_a_client_hears_something_within_the_time_that_was_agreed(wanted: int, begins: float) -> None:
    served = Served(heartbeat=10.0)
    first, client = served.client(), served.client(greets=False)
    served.send(client, Connect(hear_every=wanted), begins)
    served.send(client, Subscribe("s", "topic:t", receipt="1"), begins + 0.01)
    heard, longest = begins + 0.01, 0.0
    while (now := served.broker.deadline) < 100.0:
        count = len(served.sent(client))
        served.broker.wake(now)
        served.send(first, Beat(), now)
        if len(served.sent(client)) > count:
            heard, longest = now, max(longest, now - heard)
    assert 0.0 < longest <= wanted / 1000
