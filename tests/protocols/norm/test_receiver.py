"""The NORM receiver: delivered content, and aborted objects."""

import pytest

from experiments.contract.content import CheckedSink, FailingSink, pattern
from protocols.events import InfoReceived, ObjectOpened, ObjectsAborted, SenderHeard, SenderReset
from protocols.machine import Offer, Sink
from protocols.norm.messages import EMPTY_OBJECT, FLAG_REPAIR, Flush
from protocols.norm.repair_requests import requested_repairs
from tests.protocols.norm.scenes import MessageBuilder, ReceiverHarness, symbols

LONG = 2400
"""Bytes of three blocks."""
LATE = 100
"""Sequence number of a sender that started long ago."""


# -- content -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 99, 100, 101, 800, 801, 2350])
@pytest.mark.parametrize("info", [None, b"name"])
def test_an_object_without_losses_is_delivered_at_its_last_symbol(size: int, info: bytes | None) -> None:
    receiver, builder = ReceiverHarness(), MessageBuilder(pattern(size), info=info)
    if info is not None:
        receiver.receive(builder.info())
    messages = builder.whole()
    receiver.receive(*messages[:-1])
    assert not receiver.received()
    receiver.receive(messages[-1])
    assert receiver.received() == [0]
    assert receiver.content() == builder.content
    receiver.receive(builder.flush(), builder.flush())
    receiver.run_until(5.0)
    assert receiver.received() == [0]
    assert not receiver.sent


def test_the_first_message_of_an_object_opens_it_and_norm_info_is_reported_at_once() -> None:
    receiver, builder = ReceiverHarness(), MessageBuilder(pattern(LONG), info=b"a name")
    receiver.receive(builder.info())
    assert receiver.events_of(SenderHeard) == [SenderHeard(1)]
    assert receiver.events_of(ObjectOpened) == [ObjectOpened(1, 0, LONG)]
    assert receiver.events_of(InfoReceived) == [InfoReceived(1, 0, b"a name")]
    assert receiver.host.offers == [Offer(1, 0, LONG, True)]


def test_an_empty_object_consists_of_its_norm_info() -> None:
    receiver, builder = ReceiverHarness(), MessageBuilder(b"", info=b"just a name")
    receiver.receive(builder.info())
    assert receiver.received() == [0]
    sink = receiver.host.sinks[1, 0]
    assert isinstance(sink, CheckedSink)
    assert (bytes(sink.content), sink.info) == (b"", b"just a name")


@pytest.mark.parametrize(("fec", "m"), [(0, 8), (2, 8), (2, 16), (5, 8), (129, 8)])
def test_of_an_object_that_its_flush_marks_empty_only_norm_info_is_requested(fec: int, m: int) -> None:
    receiver, builder = ReceiverHarness(), MessageBuilder(b"", info=b"just a name", fec=fec, fec_m=m, parity=0)
    builder.info()
    receiver.receive(Flush(builder.origin, 1, fec, 0, *EMPTY_OBJECT[fec, m]))
    receiver.run_to_deadline()
    requested = requested_repairs(receiver.nacks[0].requests, fec)
    assert (requested.infos, requested.objects) == (((0, 0),), ())
    builder.sequence = 2
    receiver.receive(builder.info(flags=FLAG_REPAIR))
    assert receiver.received() == [0]
    sink = receiver.host.sinks[1, 0]
    assert isinstance(sink, CheckedSink)
    assert sink.info == b"just a name"


def test_lost_norm_info_is_requested_and_completes_the_object() -> None:
    receiver, builder = ReceiverHarness(), MessageBuilder(pattern(LONG), info=b"name")
    builder.info()
    receiver.receive(*builder.whole(), builder.flush())
    assert not receiver.received()
    receiver.run_to_deadline()
    assert receiver.requested()[0].infos == ((0, 0),)
    assert not receiver.requested()[0].symbols
    receiver.receive(builder.info(flags=FLAG_REPAIR))
    assert receiver.received() == [0]


def test_an_object_of_which_every_message_was_lost_is_requested_whole() -> None:
    receiver, builder = ReceiverHarness(), MessageBuilder(pattern(800))
    receiver.receive(*builder.whole(0))
    builder.whole(1)
    receiver.receive(*builder.whole(2))
    receiver.run_to_deadline()
    assert receiver.requested()[0].objects == ((1, 1),)
    repairs = [builder.data(0, symbol, 1, FLAG_REPAIR) for symbol in range(8)]
    receiver.receive(*repairs)
    assert receiver.received() == [0, 2, 1]
    assert receiver.content(1) == builder.content


def test_parity_replaces_lost_symbols() -> None:
    receiver, builder = ReceiverHarness(), MessageBuilder(pattern(LONG))
    receiver.receive(*builder.block(0, without=(0, 4, 7)), *builder.block(1), *builder.block(2), builder.flush())
    receiver.run_to_deadline()
    assert symbols(receiver.requested()[0], 0, 0) == [8, 9, 10]
    receiver.receive(*(builder.data(0, symbol, 0, FLAG_REPAIR) for symbol in (9, 10, 11)))
    assert receiver.received() == [0]
    assert receiver.content() == builder.content


def test_proactive_parity_repairs_without_a_request() -> None:
    receiver, builder = ReceiverHarness(), MessageBuilder(pattern(LONG))
    for block in range(3):
        receiver.receive(*builder.block(block, without=(2, 5)), builder.data(block, 8), builder.data(block, 9))
    assert receiver.received() == [0]
    assert receiver.content() == builder.content
    assert not receiver.sent


def test_reordered_symbols_do_no_harm() -> None:
    receiver, builder = ReceiverHarness(), MessageBuilder(pattern(LONG))
    first = builder.data(0, 0)
    rest = builder.whole()[1:]
    receiver.receive(first, *(rest[i ^ 1] for i in range(22)), rest[22])
    assert receiver.received() == [0]
    assert receiver.content() == builder.content


def test_duplicates_change_nothing() -> None:
    receiver, builder = ReceiverHarness(), MessageBuilder(pattern(LONG), info=b"name")
    twice = [message for message in (builder.info(), *builder.whole()) for _ in range(2)]
    receiver.receive(*twice)
    assert receiver.received() == [0]
    assert len(receiver.events_of(InfoReceived)) == 1
    assert receiver.machine.counts()["duplicates"] == 24


def test_an_object_sent_a_second_time_is_not_delivered_again() -> None:
    receiver, builder = ReceiverHarness(), MessageBuilder(pattern(LONG))
    receiver.receive(*builder.whole(), *builder.whole(), builder.flush())
    receiver.run_until(10.0)
    assert receiver.received() == [0]
    assert not receiver.nacks


# -- aborted objects ---------------------------------------------------------------------------------------------------


def test_a_restarted_sender_aborts_unfinished_objects() -> None:
    receiver, builder = ReceiverHarness(), MessageBuilder(pattern(LONG))
    receiver.receive(*builder.block(0))
    again = MessageBuilder(pattern(LONG, seed=5), instance=2)
    receiver.receive(*again.whole())
    assert receiver.aborted() == [(0, "the sender restarted")]
    assert receiver.events_of(SenderReset) == [SenderReset(1)]
    assert receiver.events_of(SenderHeard) == [SenderHeard(1)]
    assert receiver.received() == [0]
    assert receiver.content() == again.content


def test_a_sender_that_restarts_after_completion_aborts_nothing() -> None:
    receiver, builder = ReceiverHarness(), MessageBuilder(pattern(800))
    receiver.receive(*builder.whole())
    receiver.receive(*MessageBuilder(pattern(800), instance=2).whole())
    assert receiver.received() == [0, 0]
    assert not receiver.aborted()


def test_pending_objects_are_limited_by_the_window() -> None:
    receiver, builder = ReceiverHarness(window=4), MessageBuilder(pattern(800))
    for object_id in range(8):
        receiver.receive(*builder.block(0, object_id, without=(3,)))
    assert receiver.aborted() == [(object_id, "outside the window") for object_id in range(4)]
    receiver.receive(*(builder.data(0, 9, object_id, FLAG_REPAIR) for object_id in range(8)))
    assert receiver.received() == [4, 5, 6, 7]


def test_after_a_long_gap_at_most_a_window_is_requested() -> None:
    receiver, builder = ReceiverHarness(window=4), MessageBuilder(pattern(800))
    receiver.receive(*builder.whole(0))
    receiver.receive(*builder.whole(5000))
    receiver.run_to_deadline()
    assert receiver.requested()[0].objects == ((4997, 4999),)
    assert receiver.received() == [0, 5000]


def test_what_a_long_gap_skips_of_the_window_is_reported_as_aborted() -> None:
    receiver, builder = ReceiverHarness(window=4), MessageBuilder(pattern(800))
    receiver.receive(*builder.whole(0))
    receiver.receive(*builder.block(0, 1, without=(3,)))
    receiver.receive(*builder.whole(5000))
    assert receiver.aborted() == [(1, "outside the window")]
    assert receiver.events_of(ObjectsAborted) == [ObjectsAborted(1, 2, 4995, "outside the window")]
    assert receiver.machine.counts()["objects_aborted"] == 4996


def test_a_squelch_aborts_objects_before_its_position() -> None:
    receiver, builder = ReceiverHarness(), MessageBuilder(pattern(LONG))
    receiver.receive(builder.data(0, 0, 0), builder.data(0, 0, 3))
    receiver.receive(builder.squelch(2))
    assert [object_id for object_id, reason in receiver.aborted() if reason == "squelched"] == [0, 1]
    receiver.run_until(2.0)
    assert receiver.requested()[0].objects == ((2, 2),)


def test_a_squelch_aborts_the_objects_it_lists_as_invalid() -> None:
    receiver, builder = ReceiverHarness(), MessageBuilder(pattern(LONG))
    receiver.receive(builder.data(0, 0, 0), builder.data(0, 0, 3))
    receiver.receive(builder.squelch(0, 2))
    assert receiver.aborted() == [(2, "squelched")]
    receiver.run_until(2.0)
    assert receiver.requested()[0].objects == ((1, 1),)


def test_a_squelch_of_complete_or_unknown_objects_changes_nothing() -> None:
    receiver, builder = ReceiverHarness(), MessageBuilder(pattern(800))
    receiver.receive(*builder.whole(0), builder.squelch(0, 7, 9))
    assert not receiver.aborted()
    fresh = ReceiverHarness()
    fresh.receive(MessageBuilder(pattern(800), sequence=LATE).squelch(20, 21))
    assert not fresh.aborted()


def test_a_rejected_object_is_not_requested() -> None:
    receiver, builder = ReceiverHarness(), MessageBuilder(pattern(LONG))

    def accept(offer: Offer) -> Sink | None:
        return None if offer.object_id == 1 else CheckedSink(offer.size)

    receiver.host.accepting = accept
    receiver.receive(*builder.whole(0), *builder.whole(1)[:5], builder.whole(1)[9], *builder.whole(2), builder.flush(2))
    receiver.run_until(10.0)
    assert receiver.received() == [0, 2]
    assert not receiver.nacks
    assert not receiver.aborted()
    assert len(receiver.host.offers) == 3, "and not offered twice"


@pytest.mark.parametrize("verb", ["write", "commit"])
def test_a_failing_sink_aborts_its_object_with_the_reason(verb: str) -> None:
    receiver, builder = ReceiverHarness(), MessageBuilder(pattern(800))
    receiver.host.accepting = lambda offer: FailingSink(offer.size, verb) if offer.object_id == 0 else CheckedSink(offer.size)
    receiver.receive(*builder.whole(0), *builder.whole(1), builder.flush(1))
    receiver.run_until(10.0)
    ((object_id, reason),) = receiver.aborted()
    assert object_id == 0
    assert "no space left" in reason
    assert receiver.received() == [1]
    assert not receiver.nacks


def test_object_ids_wrap() -> None:
    receiver, builder = ReceiverHarness(), MessageBuilder(pattern(800), sequence=LATE)
    for object_id in (65534, 65535, 0, 1):
        receiver.receive(*builder.block(0, object_id, without=(object_id % 8,) if object_id else tuple(range(8))))
    receiver.run_until(0.5)
    (requested,) = receiver.requested()
    assert [symbols(requested, object_id, 0) for object_id in (65534, 65535)] == [[8], [8]]
    assert requested.objects == ((0, 0),)
    receiver.receive(*(builder.data(0, 9, object_id, FLAG_REPAIR) for object_id in (65534, 65535, 1)))
    receiver.receive(*(builder.data(0, symbol, 0, FLAG_REPAIR) for symbol in range(8)))
    assert receiver.received() == [65534, 65535, 1, 0]


def test_an_incomplete_object_ends_before_its_id_would_be_that_of_an_object_to_come() -> None:
    receiver, made = ReceiverHarness(nacking="none"), MessageBuilder(pattern(200))
    receiver.receive(made.data(0, 0))
    made.data(0, 1)
    for key in range(1, 0x7FFF):
        receiver.receive(*made.whole(key))
    assert not receiver.aborted()
    receiver.receive(*made.whole(0x7FFF))
    assert receiver.aborted() == [(0, "outside the window")]


@pytest.mark.parametrize("info", [b"", b"name"])
def test_the_information_of_an_object_is_reported_once(info: bytes) -> None:
    receiver, made = ReceiverHarness(), MessageBuilder(pattern(LONG), info=info)
    receiver.receive(made.info(), *made.block(0), made.info(flags=FLAG_REPAIR), made.info(flags=FLAG_REPAIR))
    assert receiver.events_of(InfoReceived) == [InfoReceived(1, 0, info)]
