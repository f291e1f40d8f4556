"""Messages on a protocol of files: their memory is bounded by what arrives, whatever sizes are announced."""

import resource

import pytest

import protocols.object_messaging
from experiments.contract.recorder import Recorder
from protocols.events import ObjectAborted, ObjectReceived
from protocols.machine import Group, Offer, Sink
from protocols.message_wire import write_head
from protocols.messaging import MessageReceived, Publication, Subscription
from protocols.norm import PROTOCOL
from protocols.norm.config import NormConfig
from protocols.object_messaging import ObjectSubscriber
from protocols.roles import RoleContext

SEGMENT = 1400


def subscriber() -> ObjectSubscriber:
    context = RoleContext(NormConfig(), 2, Group("239.0.0.1:6003"))
    machine = ObjectSubscriber(PROTOCOL.makers(False).make_receiver, Recorder(), context)
    machine.subscribe(Subscription(0, "topic:t"), 0.0)
    return machine


def offered(machine: ObjectSubscriber, sender: int, object_id: int, size: int) -> Sink:
    sink = machine.offered(Offer(sender, object_id, size, False))
    assert sink is not None
    return sink


def test_an_announced_size_takes_no_memory() -> None:
    machine = subscriber()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for object_id in range(200):
        sink = offered(machine, 7, object_id, (1 << 48) - 1)
        sink.write((1 << 47) + object_id * SEGMENT, bytes(SEGMENT))
        assert sink.read((1 << 47) + object_id * SEGMENT, SEGMENT) == bytes(SEGMENT)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 << 10
    with pytest.raises(OSError, match="a segment at"):
        sink.write((1 << 48) - 1, b"x")


def test_a_message_of_several_pages_is_delivered_as_it_was_published() -> None:
    machine = subscriber()
    body = bytes(range(256)) * 1000
    message = Publication(7, 0, "topic:t", len(body), body)
    data = write_head(message) + body
    sink = offered(machine, 7, 0, len(data))
    for offset in reversed(range(0, len(data), SEGMENT)):
        sink.write(offset, memoryview(data)[offset : offset + SEGMENT])
    assert sink.read(60_000, 100_000) == data[60_000:160_000]
    sink.commit(b"")
    assert machine.heard(ObjectReceived(7, 0, len(data), b""), 1.0) == [MessageReceived(0, message)]
    assert machine._octets == 0


def test_incomplete_messages_take_bounded_memory_and_the_largest_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    most = 4_000_000
    monkeypatch.setattr(protocols.object_messaging, "MOST_OCTETS", most)
    machine = subscriber()
    message = Publication(7, 0, "topic:t", 3, b"abc")
    honest = write_head(message) + b"abc"
    sink = offered(machine, 7, 0, len(honest))
    sink.write(0, honest[:20])
    forged = [offered(machine, 8, object_id, 1_000_000) for object_id in range(100)]
    for each in forged:
        for offset in range(0, 900_000, SEGMENT):
            each.write(offset, bytes(SEGMENT))
        assert machine._octets <= most
    with pytest.raises(OSError, match="a segment at"):
        forged[0].write(900_000, bytes(SEGMENT))
    sink.write(20, honest[20:])
    sink.commit(b"")
    assert machine.heard(ObjectReceived(7, 0, len(honest), b""), 1.0) == [MessageReceived(0, message)]


def test_the_end_of_an_object_of_a_sender_that_restarted_leaves_the_message_with_the_same_id() -> None:
    machine = subscriber()
    message = Publication(7, 0, "topic:t", 3, b"abc")
    data = write_head(message) + b"abc"
    sink = offered(machine, 7, 0, len(data))
    # Of the earlier object nothing had arrived, so that it had no sink.
    assert machine.heard(ObjectAborted(7, 0, "the sender restarted"), 1.0) == []
    sink.write(0, data)
    sink.commit(b"")
    assert machine.heard(ObjectReceived(7, 0, len(data), b""), 1.0) == [MessageReceived(0, message)]


def test_an_aborted_message_takes_no_memory() -> None:
    machine = subscriber()
    sink = offered(machine, 7, 0, 100)
    sink.write(0, bytes(50))
    sink.abort()
    machine.heard(ObjectAborted(7, 0, "squelched"), 1.0)
    assert machine._octets == 0
