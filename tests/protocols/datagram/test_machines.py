"""Messages over plain UDP: pacing, parts, loss and jitter."""

from itertools import pairwise
from math import inf, nan
from typing import Any

import pytest

import protocols.datagram.subscriber
from experiments.contract.bench import Bench
from experiments.contract.recorder import Recorder
from protocols.datagram.config import DatagramConfig
from protocols.datagram.messages import part_of
from protocols.datagram.publisher import DatagramPublisher
from protocols.datagram.subscriber import PART_OVERHEAD, DatagramSubscriber
from protocols.datagram.wire import DatagramCodec
from protocols.errors import WireError
from protocols.events import Event
from protocols.machine import Group
from protocols.messaging import (
    MessageExpired,
    MessageReceived,
    MessageSent,
    MessagesLost,
    Publication,
    PublisherIdle,
    PublisherUnblocked,
    Subscription,
)
from protocols.roles import RoleContext

GROUP = Group("239.0.0.1:6003")


def message(number: int, size: int = 100, expires_at: float = float("inf")) -> Publication:
    return Publication(1, number, "topic:t", size, bytes(size), {}, 4, 0.0, expires_at)


def publisher(**settings: Any) -> tuple[DatagramPublisher, Recorder]:
    ports = Recorder()
    machine = DatagramPublisher(
        ports, RoleContext(DatagramConfig(**settings), 1, GROUP, addresses={"subscriber": ["r1", "r2"]})
    )
    machine.start(0.0)
    return machine, ports


def subscriber(**settings: Any) -> tuple[DatagramSubscriber, Recorder]:
    ports = Recorder()
    machine = DatagramSubscriber(ports, RoleContext(DatagramConfig(**settings), 2, GROUP))
    machine.start(0.0)
    machine.subscribe(Subscription(0, "topic:t"), 0.0)
    return machine, ports


def feed(machine: DatagramSubscriber, *arrivals: tuple[int, float]) -> None:
    """Give a subscriber datagrams (sequence number, transit time in seconds), sent every 10 ms."""
    for sequence, transit in arrivals:
        sent = sequence * 0.01
        part = part_of(1, sequence, sent, sequence, 0, 1, 100, None, message(sequence))
        machine.receive(part, "p", GROUP, sent + transit)


def test_datagrams_leave_at_the_rate() -> None:
    machine, ports = publisher(rate=10_000.0, segment=1400)
    for number in range(3):
        machine.publish(message(number, 958), 0.0)
    assert len(ports.packets) == 1
    size = ports.packets[0].size
    assert machine.deadline == pytest.approx(size / 10_000)
    machine.wake(machine.deadline)
    assert len(ports.packets) == 2


def test_a_publisher_is_blocked_while_its_queue_is_full() -> None:
    machine, ports = publisher(rate=1000.0, queue=2)
    assert [machine.publish(message(n), 0.0) for n in range(3)] == [False, False, True]
    machine.wake(machine.deadline)
    assert [type(event) for event in ports.events] == [MessageSent, PublisherIdle, MessageSent, PublisherUnblocked]


def test_unicast_sends_a_copy_to_each_subscriber() -> None:
    machine, ports = publisher(cast="unicast")
    machine.publish(message(0), 0.0)
    assert [packet.to for packet in ports.packets] == ["r1", "r2"]
    assert machine.counts()["data_sent"] == 2


def test_an_expired_message_is_not_sent() -> None:
    machine, ports = publisher()
    machine.publish(message(4, expires_at=1.0), 2.0)
    assert ports.packets == []
    assert ports.events == [MessageExpired(1, 4), PublisherIdle()]


@pytest.mark.parametrize("wire", [False, True])
@pytest.mark.parametrize("size", [0, 1, 1000, 5000, 70_000])
def test_messages_of_any_size_arrive(size: int, wire: bool) -> None:
    bench = Bench(("p", "r"), codec=DatagramCodec() if wire else None)
    config = DatagramConfig(rate=1e9, segment=1400)
    events: list[Event] = []
    here = DatagramSubscriber(bench["r"], RoleContext(config, 2, GROUP))
    bench["r"].run(here, events.append)
    bench["r"].call(here.subscribe, Subscription(3, "topic:t"))
    there = DatagramPublisher(bench["p"], RoleContext(config, 1, GROUP, addresses={"subscriber": []}))
    bench["p"].run(there, events.append)
    sent = message(7, size)
    bench["p"].call(there.publish, sent)
    bench.run()
    assert [event.message for event in events if isinstance(event, MessageReceived)] == [sent]


def test_missing_and_late_datagrams_are_counted() -> None:
    machine, _ = subscriber()
    feed(machine, (0, 0.001), (1, 0.001), (4, 0.001), (3, 0.001), (5, 0.001))
    counts = machine.counts()
    assert (counts["data_received"], counts["data_lost"], counts["reordered"]) == (5, 1, 1)


def test_jitter_is_that_of_rfc_3550() -> None:
    machine, _ = subscriber()
    transits = [0.010, 0.014, 0.011, 0.030, 0.010]
    feed(machine, *enumerate(transits))
    jitter = 0.0
    for before, after in pairwise(transits):
        jitter += (abs(after - before) - jitter) / 16
    assert machine.counts()["jitter_us"] == round(jitter * 1e6)


def test_a_constant_transit_has_no_jitter() -> None:
    machine, _ = subscriber()
    feed(machine, *((n, 0.5) for n in range(50)))
    assert machine.counts()["jitter_us"] == 0


def test_parts_that_never_come_are_given_up_and_reported() -> None:
    machine, ports = subscriber(incomplete=2)
    for number in range(3):
        machine.receive(part_of(1, number, 0.0, number, 0, 2, 10, bytes(10)), "p", GROUP, 0.1)
    assert MessagesLost(1, 1, 0, 0) in ports.events
    assert machine.held()["incomplete"] == (2, 2)


def test_parts_of_a_byte_take_bounded_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    most = 100 * PART_OVERHEAD
    monkeypatch.setattr(protocols.datagram.subscriber, "MOST_BYTES", most)
    machine, _ = subscriber()
    for number in range(10):
        for part in range(1000):
            machine.receive(part_of(7, part, 0.0, number, part, 1 << 30, 1, b"x"), "forger", GROUP, 0.0)
            assert sum(map(len, machine._incomplete.values())) <= 100


def test_bytes_that_are_no_message_are_dropped() -> None:
    machine, ports = subscriber()
    machine.receive(part_of(1, 0, 0.0, 0, 0, 1, 3, b"abc"), "p", GROUP, 0.1)
    assert not [event for event in ports.events if isinstance(event, MessageReceived)]


@pytest.mark.parametrize("sent_at", [inf, -inf, nan, 1e300, -1.0])
def test_a_time_of_sending_that_is_none_is_malformed(sent_at: float) -> None:
    codec = DatagramCodec()
    with pytest.raises(WireError, match="sent at"):
        codec.decode(codec.encode(part_of(1, 0, sent_at, 0, 0, 1, 1, b"x")))


def test_the_group_is_left_with_the_last_subscription() -> None:
    machine, ports = subscriber()
    machine.subscribe(Subscription(1, "topic:u"), 0.0)
    machine.unsubscribe(0, 1.0)
    assert ports.groups == [GROUP]
    machine.unsubscribe(1, 1.0)
    assert ports.groups == []
