"""Files by the broker on fake hosts: receivers that come late or go, a broker that crashes, clients that do not acknowledge."""

from typing import Any

import pytest

from experiments.contract.bench import Bench
from experiments.contract.content import Bytes, CheckedSink, pattern
from experiments.contract.recorder import Recorder
from protocols.broker import PROTOCOL, BrokerConfig
from protocols.broker.files import MOST_RANGES, FileSubscriber
from protocols.broker.framing import BODY_LIMIT
from protocols.broker.messages import (
    Ack,
    Connected,
    Content,
    Delivery,
    Disconnect,
    Receipt,
    Send,
    Subscribe,
    Unsubscribe,
)
from protocols.broker.wire import StompCodec
from protocols.connection import Connection
from protocols.errors import UsageError
from protocols.events import Event, FlushCompleted, ObjectReceived, ObjectSent, SenderReset
from protocols.layer import handed_through
from protocols.machine import Content as FileContent
from protocols.machine import Group, Message, Offer, Sink
from protocols.messaging import MessageReceived, Subscription
from protocols.roles import RoleContext
from tests.protocols.broker.test_machines import Served

GROUP = Group("239.0.0.1:6003")


class Scene:
    """A broker "b", a sender "s" and receivers on a bench; nothing runs before it is started."""

    def __init__(self, **settings: Any) -> None:
        self.config = BrokerConfig(**{"heartbeat": 0.0, "keep": 1.0, "retry": 0.05, "retry_max": 0.1, **settings})
        self.bench = Bench(("b", "s", "r1", "r2"), codec=StompCodec(), timeout=0.5)
        self.events: dict[str, list[Event]] = {name: [] for name in self.bench.hosts}
        self.sinks: dict[tuple[str, int], CheckedSink] = {}
        self.machines: dict[str, Any] = {}

    def start(self, name: str, role: str, instance: int = 1) -> None:
        """Run the machine of a role on a host."""
        host = self.bench[name]
        addresses = {} if role == "broker" else {"broker": ["b"]}
        node = list(self.bench.hosts).index(name)
        machine = PROTOCOL.roles[role].make(host, RoleContext(self.config, node, GROUP, instance, addresses=addresses))
        self.machines[name] = machine

        def accept(offer: Offer) -> Sink:
            sink = self.sinks[name, offer.object_id] = CheckedSink(offer.size)
            return sink

        host.run(*handed_through(machine, self.events[name].append, accept, host))

    def submit(self, *sizes: int) -> None:
        """Submit files to the sender."""
        for size in sizes:
            self.bench["s"].call(self.machines["s"].submit, FileContent(Bytes(pattern(size, size)), b"x"))

    def received(self, name: str) -> list[int]:
        """Return the sizes of the files that a receiver got, in order."""
        return [event.size for event in self.events[name] if isinstance(event, ObjectReceived)]

    def flushed_at(self) -> float:
        """Run until the sender reports the end; return the time."""
        self.bench.run(60.0, lambda: any(isinstance(event, FlushCompleted) for event in self.events["s"]))
        return self.bench.now

    def connection(self, name: str) -> Connection:
        """Return the open connection of a client."""
        (found,) = self.bench[name].rules.states
        return found


def test_a_receiver_that_subscribes_after_the_file_was_sent_gets_it_before_the_sender_reports_the_end() -> None:
    scene = Scene()
    scene.start("b", "broker")
    scene.start("s", "sender")
    scene.submit(3000, 500)
    scene.bench.run(0.6)
    assert not scene.events["s"]
    scene.start("r1", "receiver")
    assert scene.flushed_at() >= 1.0
    assert scene.received("r1") == [3000, 500]
    assert bytes(scene.sinks["r1", 0].content) == pattern(3000, 3000)


def test_later_files_are_confirmed_as_soon_as_all_receivers_have_them() -> None:
    scene = Scene()
    for name, role in {"b": "broker", "s": "sender", "r1": "receiver", "r2": "receiver"}.items():
        scene.start(name, role)
    scene.bench.run(5.0)
    scene.submit(700)
    assert scene.flushed_at() < 5.1
    assert scene.received("r1") == scene.received("r2") == [700]


def test_a_receiver_that_takes_nothing_holds_back_the_end_until_it_is_gone_and_gets_the_file_when_it_comes_back() -> None:
    scene = Scene()
    for name, role in {"b": "broker", "s": "sender", "r1": "receiver", "r2": "receiver"}.items():
        scene.start(name, role)
    scene.bench.run(5.0)
    scene.bench.silent.add("r2")
    scene.submit(700)
    scene.bench.run(5.4)
    assert scene.received("r1") == [700]
    assert not scene.events["s"]
    scene.bench.run(5.8)
    scene.bench.silent.clear()
    scene.flushed_at()
    assert scene.received("r2") == [700]


def test_a_receiver_that_does_not_come_back_ends_nothing() -> None:
    scene = Scene()
    for name, role in {"b": "broker", "s": "sender", "r1": "receiver", "r2": "receiver"}.items():
        scene.start(name, role)
    scene.bench.run(5.0)
    scene.bench.silent.add("r2")
    scene.submit(700)
    assert 6.0 < scene.flushed_at() < 8.0
    assert scene.received("r1") == [700]


def test_a_broker_that_crashes_gets_again_what_it_has_not_confirmed_and_receivers_take_it_once() -> None:
    scene = Scene()
    for name, role in {"b": "broker", "s": "sender", "r1": "receiver", "r2": "receiver"}.items():
        scene.start(name, role)
    scene.submit(3000, 500, 700)
    scene.bench.run(0.5)
    assert scene.received("r1") == [3000, 500, 700]
    scene.bench.crash("b")
    scene.start("b", "broker")
    scene.flushed_at()
    assert [event.object_id for event in scene.events["s"] if isinstance(event, ObjectSent)] == [0, 1, 2]
    for name in ("r1", "r2"):
        assert scene.received(name) == [3000, 500, 700]
    assert scene.machines["b"].counts()["copies_sent"] == 6


def test_a_sender_that_restarts_is_another_one_for_its_receivers() -> None:
    scene = Scene()
    scene.start("b", "broker")
    scene.start("r1", "receiver")
    for instance in (1, 2):
        scene.start("s", "sender", instance)
        scene.submit(700)
        scene.bench.run(scene.bench.now + 3.0)
        scene.bench.crash("s")
    kinds = [type(event) for event in scene.events["r1"]]
    assert kinds == [ObjectReceived, SenderReset, ObjectReceived]


def test_a_file_larger_than_a_message_is_refused() -> None:
    scene = Scene()
    scene.start("b", "broker")
    scene.start("s", "sender")
    with pytest.raises(UsageError, match=f"at most {BODY_LIMIT}"):
        scene.bench["s"].call(scene.machines["s"].submit, FileContent(_Large()))


class _Large:
    """A source that is too large to be read."""

    size = BODY_LIMIT + 1

    def read(self, offset: int, n: int) -> bytes:
        raise AssertionError("it is read")


# A broker among clients that send what they like


MESSAGE = Content("topic:t", b"", 1, b"x")


def acks(served: Served, connection: Connection) -> list[str]:
    return [message.ack for message in served.sent(connection) if isinstance(message, Delivery)]


def test_a_receipt_waits_for_the_subscriptions_that_acknowledge_and_for_no_others() -> None:
    served = Served()
    first, second = (served.client(Subscribe("s", "topic:t", acknowledges=True)) for _ in range(2))
    automatic = served.client(Subscribe("s", "topic:t"))
    publisher = served.client(Send(MESSAGE, "r"))
    assert acks(served, automatic) == [""]
    served.send(first, Ack(*acks(served, first)))
    served.send(first, Ack("unknown"))
    assert served.sent(publisher) == []
    served.send(second, Ack(acks(served, second)[0], "got it"))
    assert served.sent(publisher) == [Receipt("r")]
    assert served.sent(second)[-1] == Receipt("got it")


@pytest.mark.parametrize("leaves", ["unsubscribes", "disconnects", "is lost"])
def test_a_subscription_that_ends_is_not_waited_for(leaves: str) -> None:
    served = Served()
    subscriber = served.client(Subscribe("s", "topic:t", acknowledges=True))
    publisher = served.client(Send(MESSAGE, "r"))
    if leaves == "unsubscribes":
        served.send(subscriber, Unsubscribe("s"))
    elif leaves == "disconnects":
        served.send(subscriber, Disconnect())
    else:
        served.broker.closed(subscriber, "reset", 1.0)
    assert served.sent(publisher) == [Receipt("r")]
    assert served.broker.held()["copies a client has not acknowledged"][0] == 0


def test_a_subscriber_that_acknowledges_nothing_is_closed_and_the_publisher_goes_on() -> None:
    served = Served(queue=2, stall=2.0)
    subscriber = served.client(Subscribe("s", "topic:t", acknowledges=True))
    publisher = served.client(*(Send(MESSAGE, str(number)) for number in range(5)))
    assert len(acks(served, subscriber)) == 2
    while served.broker.deadline < 4.0:
        served.broker.wake(served.broker.deadline)
    assert served.ports.hung_up == [subscriber]
    assert served.sent(publisher) == [Receipt(str(number)) for number in range(5)]


def test_a_publisher_of_kept_messages_is_bounded_and_forgotten_when_it_goes() -> None:
    served = Served(queue=3, window=2)
    publisher = served.client()
    for number in range(6):
        served.send(publisher, Send(MESSAGE, str(number), 3_600_000))
    assert served.broker.held()["messages that are kept"] == (3, 3)
    assert served.ports.held_back == {publisher}
    late = served.client(Subscribe("s", "topic:t", acknowledges=True))
    assert len(acks(served, late)) == 3
    for ack in acks(served, late):
        served.send(late, Ack(ack))
    assert served.sent(publisher) == []
    served.broker.closed(publisher, "reset", 1.0)
    assert served.broker.held()["messages that are kept"][0] == 0
    assert acks(served, served.client(Subscribe("s", "topic:t"))) == []


def test_only_what_a_selector_selects_is_sent_of_what_is_kept() -> None:
    served = Served()
    served.client(*(Send(Content("topic:t", f"size:{n}\n".encode(), 1, b"x"), "", 1000) for n in (1, 20)))
    late = served.client(Subscribe("s", "topic:t", "size > 10"))
    assert [message.content.head for message in served.sent(late) if isinstance(message, Delivery)] == [b"size:20\n"]


def test_a_publisher_that_disconnects_gets_its_receipt_when_its_messages_are_acknowledged() -> None:
    served = Served()
    subscriber = served.client(Subscribe("s", "topic:t", acknowledges=True))
    publisher = served.client(Send(MESSAGE), Disconnect("bye"))
    assert served.sent(publisher) == []
    served.send(subscriber, Ack(*acks(served, subscriber)))
    assert served.sent(publisher) == [Receipt("bye")]


def test_what_a_receiver_remembers_of_a_publisher_is_bounded() -> None:
    ports = Recorder()
    machine = FileSubscriber(ports, RoleContext(BrokerConfig(), 1, GROUP, addresses={"broker": ["b"]}))
    machine.start(0.0)
    (connection,) = ports.connections
    machine.opened(connection, 0.0)
    machine.subscribe(Subscription(0, "topic:t"), 0.0)

    def hear(message: Message) -> None:
        machine.receive(message, connection, connection, 0.0)

    hear(Connected())
    hear(Receipt("0"))
    for number in range(0, 4 * MOST_RANGES, 2):
        hear(Delivery("0", "m", Content("topic:t", f"mcastlab-message:7.1.{number}\n".encode(), 0, b""), str(number)))
        hear(Delivery("0", "m", Content("topic:t", f"mcastlab-message:7.1.{number}\n".encode(), 0, b""), f"again {number}"))
    assert sum(isinstance(event, MessageReceived) for event in ports.events) == 2 * MOST_RANGES
    assert sum(isinstance(packet.message, Ack) for packet in ports.packets) == 2 * MOST_RANGES
    assert len(machine._known[7][1].firsts) == MOST_RANGES
