"""What waits for a program is bounded, and what carries content is never dropped silently."""

import pytest

from experiments.running import unfinished
from experiments.session import inbox as module
from experiments.session.events import ContentReceived, ObjectRefused, StreamOpened
from experiments.session.inbox import Inbox
from experiments.session.memory_objects import LEAST, MemoryObject, MemoryObjects
from protocols.events import Event, ObjectAborted, ObjectReceived, ObjectsAborted, SenderHeard
from protocols.machine import Offer
from tests.support.sessions import run


def arrives(inbox: Inbox, object_id: int, content: bytes) -> None:
    """Have an object arrive whole."""
    sink = inbox.accept(Offer(1, object_id, len(content), False))
    assert sink is not None
    if content:
        sink.write(0, content)
    sink.commit(b"")
    inbox.on_event(ObjectReceived(1, object_id, len(content), b"info"), 2.0)


def waiting(inbox: Inbox, count: int) -> list[Event]:
    """Return the next events."""

    async def main() -> list[Event]:
        return [await inbox.next() for _ in range(count)]

    return run(main())


def test_of_many_events_the_oldest_without_content_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_EVENTS", 3)
    inbox = Inbox(None, 1 << 20, "byte")
    arrives(inbox, 0, b"first")
    for number in range(5):
        inbox.on_event(SenderHeard(number), 0.0)
    arrives(inbox, 1, b"")
    first, *plain, last = waiting(inbox, 5)
    assert isinstance(first, ContentReceived)
    assert first.data == b"first"
    assert plain == [SenderHeard(2), SenderHeard(3), SenderHeard(4)]
    assert isinstance(last, ContentReceived)
    assert (last.data, inbox.dropped) == (b"", 2)


def test_an_object_of_the_same_id_does_not_take_the_content_of_one_that_waits() -> None:
    inbox = Inbox(None, 1 << 20, "byte")
    arrives(inbox, 7, b"before the sender restarted")
    arrives(inbox, 7, b"after")
    found = waiting(inbox, 2)
    assert [event.data for event in found if isinstance(event, ContentReceived)] == [b"before the sender restarted", b"after"]


def test_the_object_of_a_restarted_sender_keeps_its_content_when_the_one_before_it_is_given_up() -> None:
    inbox = Inbox(None, 1 << 20, "byte")
    before = inbox.accept(Offer(1, 0, 5, False))
    assert before is not None
    # One message of the new instance ends the object of the old one and opens its own; the events come after that.
    before.abort()
    after = inbox.accept(Offer(1, 0, 5, False))
    assert after is not None
    inbox.on_event(ObjectAborted(1, 0, "the sender restarted"), 1.0)
    after.write(0, b"again")
    after.commit(b"")
    inbox.on_event(ObjectReceived(1, 0, 5, b""), 2.0)
    aborted, received = waiting(inbox, 2)
    assert isinstance(aborted, ObjectAborted)
    assert isinstance(received, ContentReceived)
    assert received.data == b"again"


def test_further_streams_are_not_received_until_some_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_STREAMS", 2)
    inbox = Inbox(None, 1 << 20, "byte")
    for number in range(2):
        stream = inbox.accept_stream(Offer(1, number, 0, False))
        assert stream is not None
        stream.commit(b"")
    inbox.settle()
    # They have ended, and wait for the program.
    assert inbox.accept_stream(Offer(1, 2, 0, False)) is None
    assert all(isinstance(event, StreamOpened) for event in waiting(inbox, 2))
    assert inbox.accept_stream(Offer(1, 3, 0, False)) is not None


def test_what_is_lost_is_counted() -> None:
    told: list[Event] = []
    inbox = Inbox(None, LEAST, "byte", told.append)
    assert inbox.accept(Offer(1, 0, LEAST + 1, False)) is None
    inbox.on_event(ObjectAborted(1, 1, "squelched"), 0.0)
    inbox.on_event(ObjectsAborted(1, 2, 5, "squelched"), 0.0)
    assert [type(event) for event in told] == [ObjectRefused, ObjectAborted, ObjectsAborted]
    assert inbox.lost == 7


def sink_of(objects: MemoryObjects, size: int) -> MemoryObject:
    """Return the sink of another object, for which there has to be room."""
    sink = objects.sink(Offer(1, 0, size, False))
    assert isinstance(sink, MemoryObject)
    return sink


def test_announced_objects_that_are_not_sent_give_way_to_smaller_ones() -> None:
    objects = MemoryObjects(100 * LEAST)
    forged = sink_of(objects, 90 * LEAST)
    small = sink_of(objects, 20 * LEAST)
    assert forged not in objects.unfinished
    assert [offer.size for offer, _ in objects.given_up] == [90 * LEAST]
    with pytest.raises(OSError, match=unfinished.GIVEN_UP):
        forged.write(0, b"late")
    small.write(0, bytes(20 * LEAST))
    small.commit(b"")
    # A complete one keeps its place until it is taken.
    assert objects.sink(Offer(1, 1, 90 * LEAST, False)) == (
        "92.16kB were announced, the memory for objects is 102.4kB; 20.48kB wait to be read, 0B are under way"
    )
    assert small.taken() == bytes(20 * LEAST)
    sink_of(objects, 90 * LEAST)


def test_empty_objects_take_room_too() -> None:
    objects = MemoryObjects(10 * LEAST)
    for _ in range(10):
        sink_of(objects, 0).commit(b"")
    assert isinstance(objects.sink(Offer(1, 1, 0, False)), str)


def test_a_segment_outside_the_object_is_refused() -> None:
    sink = sink_of(MemoryObjects(1 << 20), 10)
    with pytest.raises(OSError, match=r"segment \[5, 15\) lies outside an object of 10 bytes"):
        sink.write(5, bytes(10))
