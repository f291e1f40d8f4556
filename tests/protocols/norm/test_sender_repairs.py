"""The NORM sender: object failures, the window, and repairs."""

from math import inf
from typing import Any

import pytest

from experiments.contract.content import Bytes, pattern
from experiments.running.content import Extent
from protocols.errors import UsageError
from protocols.events import FlushCompleted, ObjectAborted, ObjectPurged, ObjectSent
from protocols.machine import Content
from protocols.norm.messages import FLAG_REPAIR, Data, Flush, Info, Squelch
from protocols.norm.requests import FORM_ERASURES, LEVEL_BLOCK, LEVEL_SEGMENT, Item, Request
from tests.protocols.norm.scenes import GRTT, SenderHarness, items, ranges

LONG = 2400
"""Bytes of three blocks."""
FACTOR = 4


def flushed(sender: SenderHarness) -> bool:
    return bool(sender.events_of(FlushCompleted))


# -- objects -----------------------------------------------------------------------------------------------------------


class Broken(Bytes):
    """Source that fails, or ends early, from an offset on."""

    def __init__(self, content: bytes, limit: int, *, short: bool) -> None:
        super().__init__(content)
        self.limit, self.short = limit, short

    def read(self, offset: int, n: int) -> bytes:
        """Read as the base class before the limit."""
        if offset + n > self.limit:
            if self.short:
                return super().read(offset, max(self.limit - offset, 0))
            raise OSError(5, "broken disk")
        return super().read(offset, n)


@pytest.mark.parametrize("short", [False, True], ids=["fails", "ends-early"])
@pytest.mark.parametrize("limit", [0, 1000])
def test_a_failing_source_aborts_only_its_object(limit: int, short: bool) -> None:
    sender = SenderHarness()
    sender.submit(LONG)
    sender.host.call(sender.machine.submit, Content(Broken(pattern(LONG), limit, short=short), b"name"))
    sender.submit(LONG)
    sender.run_until(10.0)
    (event,) = sender.events_of(ObjectAborted)
    assert (event.sender, event.object_id) == (1, 1)
    assert event.reason.startswith("source: ")
    assert [object_id for object_id, _, _ in sender.symbols()].count(1) == limit // 800 * 8
    assert [event.object_id for event in sender.events_of(ObjectSent)] == [0, 2]
    assert flushed(sender)
    sender.nack(ranges((1, 0, 0), (1, 0, 7)))
    sender.run_until(20.0)
    assert [(squelch.object_id, squelch.invalid) for squelch in sender.messages_of(Squelch)] == [(0, (1,))]


def test_a_source_that_fails_during_a_repair_aborts_its_object() -> None:
    source = Broken(pattern(LONG), LONG, short=False)
    sender = SenderHarness()
    sender.host.call(sender.machine.submit, Content(source, b""))
    sender.run_until(5.0, lambda: bool(sender.messages_of(Flush)))
    source.limit = 0
    sender.nack(items((0, 0, 3)))
    sender.run_until(20.0)
    assert [event.object_id for event in sender.events_of(ObjectAborted)] == [0]
    assert len(sender.messages_of(Data)) == 24


def test_a_sender_finishes_after_its_only_object_failed() -> None:
    sender = SenderHarness()
    sender.host.call(sender.machine.submit, Content(Broken(pattern(LONG), 800, short=False), b""))
    sender.run_until(100.0)
    assert [event.object_id for event in sender.events_of(ObjectAborted)] == [0]
    assert sender.machine.deadline == inf


def test_a_squelch_names_the_first_repairable_object() -> None:
    sender = SenderHarness(cache_min=2, cache_max=2)
    sender.submit(*[100] * 5)
    sender.run_until(20.0)
    assert [event.object_id for event in sender.events_of(ObjectPurged)] == [0, 1, 2]
    sender.nack(items((1, 0, 8)))
    sender.run_until(sender.now + 5.0)
    assert [(squelch.object_id, squelch.invalid) for squelch in sender.messages_of(Squelch)] == [(3, ())]
    sender.nack(items((3, 0, 8)))
    sender.run_until(sender.now + 5.0)
    assert len(sender.messages_of(Squelch)) == 1


def test_objects_wait_for_room_in_the_window() -> None:
    sender = SenderHarness(cache_min=2, cache_max=2, flow=2.0)
    sender.submit(*[100] * 3)
    sender.run_until(20.0)
    sent = {data.object_id: when for when, _, data in sender.sent if isinstance(data, Data)}
    # The first object is kept for flow * (K + 1) GRTT after its last packet.
    assert sent[2] - sent[0] == pytest.approx(2.0 * (FACTOR + 1) * GRTT, rel=0.05)


def test_a_request_keeps_an_object_in_the_window() -> None:
    sender = SenderHarness(cache_min=2, cache_max=2, flow=2.0)
    sender.submit(*[100] * 3)
    sender.run_until(1.9 * (FACTOR + 1) * GRTT)
    sender.nack(items((0, 0, 1)))
    sender.run_until(20.0)
    sent = [(when, data.object_id) for when, _, data in sender.sent if isinstance(data, Data)]
    repaired = next(when for when, object_id in sent[2:] if object_id == 0)
    assert next(when for when, object_id in sent if object_id == 2) > repaired


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (Content(Bytes(b""), b"x" * 101), "segment: value 100 is not allowed; at least 101"),
        (Content(Extent(65536 * 800 + 1), b""), "at most 52428800 with fec 0"),
    ],
    ids=["information", "blocks"],
)
def test_content_that_norm_cannot_carry_is_refused_without_side_effects(content: Content, words: str) -> None:
    sender = SenderHarness(fec=0, parity=0)
    with pytest.raises(UsageError, match=words):
        sender.host.call(sender.machine.submit, content)
    assert sender.submit(100) == [0]
    sender.run_until(5.0)
    assert sender.events_of(FlushCompleted) == [FlushCompleted(0)]


def test_the_largest_object_and_norm_info_are_accepted() -> None:
    sender = SenderHarness(fec=0, parity=0)
    sender.submit(65536 * 800, info=b"x" * 100, counted=True)
    sender.run_until(0.01)
    (fti,) = {data.fti for data in sender.messages_of(Data)}
    assert fti is not None
    assert fti.partition.blocks == 65536


def test_object_ids_wrap() -> None:
    sender = SenderHarness(rate=1e9, cache_min=1, cache_max=1, flow=0.1, backoff=0, parity=0)
    sender.machine._next_id = 0xFFFE
    assert sender.submit(100, 100, 100) == [0xFFFE, 0xFFFF, 0]
    sender.run_until(5.0)
    assert [object_id for object_id, _, _ in sender.symbols()] == [0xFFFE, 0xFFFF, 0]
    assert sender.events_of(FlushCompleted) == [FlushCompleted(0)]


# -- repairs -----------------------------------------------------------------------------------------------------------


def ready(**settings: Any) -> SenderHarness:
    """Return a sender that has sent three blocks and begun to flush; `backoff` 4."""
    sender = SenderHarness(**settings)
    sender.submit(LONG)
    sender.run_until(10.0, lambda: bool(sender.messages_of(Flush)))
    return sender


def test_requests_are_aggregated_for_k_plus_one_grtt() -> None:
    sender = ready()
    requested_by = sender.now
    sender.nack(items((0, 1, 8)))
    sender.nack(items((0, 0, 8), (0, 0, 9)), now=requested_by + FACTOR * GRTT)
    sender.run_until(requested_by + (FACTOR + 1) * GRTT - 1e-6)
    assert len(sender.messages_of(Data)) == 24
    sender.run_until(requested_by + 10 * GRTT)
    assert sender.symbols(24) == [(0, 0, 8), (0, 0, 9), (0, 1, 8)]
    assert sender.machine.counts()["repairs_sent"] == 3


def test_repairs_are_flagged_and_carry_decodable_parity() -> None:
    sender = ready()
    sender.nack(items((0, 1, 8)), ranges((0, 2, 1), (0, 2, 2)))
    sender.run_until(5.0)
    repairs = sender.messages_of(Data)[24:]
    assert all(data.flags & FLAG_REPAIR for data in repairs)
    assert not any(data.flags & FLAG_REPAIR for data in sender.messages_of(Data)[:24])
    assert repairs[1].payload == sender.messages_of(Data)[17].payload


def test_without_back_off_and_parity_repairs_begin_at_once() -> None:
    sender = ready(backoff=0, parity=0)
    requested_by = sender.now
    sender.nack(items((0, 1, 3)))
    sender.run_until(requested_by + 0.001)
    assert sender.symbols(24) == [(0, 1, 3)]


def test_without_back_off_but_with_parity_requests_are_aggregated_for_one_grtt() -> None:
    sender = ready(backoff=0)
    requested_by = sender.now
    sender.nack(items((0, 1, 8)))
    sender.run_until(requested_by + GRTT - 1e-6)
    assert len(sender.messages_of(Data)) == 24
    sender.run_until(requested_by + GRTT + 1e-3)
    assert sender.symbols(24) == [(0, 1, 8)]


def test_repairs_precede_new_data() -> None:
    sender = SenderHarness(rate=20_000.0)
    sender.submit(LONG, LONG)
    sender.run_until(0.15)
    sent = len(sender.messages_of(Data))
    assert 16 < sent < 30
    sender.nack(items((0, 0, 8), (0, 0, 9)))
    sender.run_until(10.0)
    order = sender.symbols()
    place = order.index((0, 0, 8))
    assert order[place + 1] == (0, 0, 9)
    assert order[place + 2] == (order[place - 1][0], order[place - 1][1], order[place - 1][2] + 1)
    assert sorted(order) == sorted(set(order))


def test_a_request_for_unsent_symbols_is_not_sent_twice() -> None:
    sender = SenderHarness(rate=20_000.0)
    sender.submit(LONG)
    sender.run_until(0.02)
    sender.nack(ranges((0, 2, 0), (0, 2, 7)))
    sender.run_until(10.0)
    assert sender.symbols() == [(0, b, s) for b in range(3) for s in range(8)]


def test_during_the_hold_off_requests_for_recent_repairs_are_dropped() -> None:
    sender = ready()
    sender.nack(items((0, 1, 8)))
    sender.run_until(sender.now + 10.0, lambda: len(sender.messages_of(Data)) == 25)
    sender.nack(items((0, 1, 8)), now=sender.now + 0.5 * GRTT)
    sender.nack(items((0, 0, 8)))
    sender.run_until(sender.now + 1.0)
    assert sender.symbols(24) == [(0, 1, 8)]


def test_during_the_hold_off_requests_beyond_the_current_position_are_served_at_once() -> None:
    sender = ready()
    sender.nack(items((0, 0, 8)))
    sender.run_until(sender.now + 10.0, lambda: len(sender.messages_of(Data)) == 25)
    sender.nack(items((0, 2, 8)))
    sender.run_until(sender.now + 0.001)
    assert sender.symbols(24) == [(0, 0, 8), (0, 2, 8)]


def test_after_the_hold_off_a_request_starts_a_new_round() -> None:
    sender = ready()
    sender.nack(items((0, 1, 8)))
    sender.run_until(sender.now + 10.0, lambda: len(sender.messages_of(Data)) == 25)
    requested_by = sender.now + 1.001 * GRTT
    sender.nack(items((0, 1, 9)), now=requested_by)
    sender.run_until(requested_by + (FACTOR + 1) * GRTT + 0.001)
    assert sender.symbols(24) == [(0, 1, 8), (0, 1, 9)]


def test_norm_info_is_repaired() -> None:
    sender = SenderHarness()
    sender.submit(LONG, info=b"name")
    sender.run_until(10.0, lambda: bool(sender.messages_of(Flush)))
    sender.nack(items((0,), level=4))
    sender.run_until(sender.now + 5.0)
    first, second = sender.messages_of(Info)
    assert (first.flags & FLAG_REPAIR, second.flags & FLAG_REPAIR) == (0, FLAG_REPAIR)
    assert second.payload == b"name"
    assert len(sender.messages_of(Data)) == 24


def test_a_whole_object_is_repaired_with_its_norm_info() -> None:
    sender = SenderHarness()
    sender.submit(LONG, info=b"name")
    sender.run_until(10.0, lambda: bool(sender.messages_of(Flush)))
    sender.nack(items((0,), level=8))
    sender.run_until(sender.now + 5.0)
    assert len(sender.messages_of(Info)) == 2
    assert sorted(sender.symbols(24)) == sorted(sender.symbols()[:24])


def test_an_endlessly_requesting_receiver_is_served_and_the_session_still_ends() -> None:
    sender = ready()
    for _ in range(30):
        sender.nack(ranges((0, 0, 8), (0, 0, 11)))
        sender.run_until(sender.now + 8 * GRTT)
    sender.run_until(sender.now + 20.0)
    assert flushed(sender)
    assert len(sender.messages_of(Data)) - 24 <= 30 * 4


# -- numbers of erasures -----------------------------------------------------------------------------------------------


def erasures(count: int, block: int = 0, level: int = LEVEL_SEGMENT) -> Request:
    """Build a request for `count` symbols of a block of object 0."""
    return Request(FORM_ERASURES, level, (Item(5, 0, block, count),))


@pytest.mark.parametrize("count", [1, 3, FACTOR])
def test_a_number_of_erasures_is_repaired_by_as_many_parity_symbols(count: int) -> None:
    sender = SenderHarness()
    sender.submit(LONG)
    sender.run_until(0.1)
    sent = len(sender.symbols())
    sender.nack(erasures(count, 1))
    sender.run_until(1.0)
    assert sender.symbols(sent) == [(0, 1, 8 + number) for number in range(count)]


def test_a_number_of_erasures_beyond_the_parity_is_repaired_by_the_whole_block() -> None:
    sender = SenderHarness()
    sender.submit(LONG)
    sender.run_until(0.1)
    sent = len(sender.symbols())
    sender.nack(erasures(5, 2))
    sender.run_until(1.0)
    assert sender.symbols(sent) == [(0, 2, symbol) for symbol in range(8)]


def test_no_erasures_are_repaired_by_nothing_and_blocks_in_that_form_as_in_others() -> None:
    sender = SenderHarness()
    sender.submit(LONG)
    sender.run_until(0.1)
    sent = len(sender.symbols())
    sender.nack(erasures(0, 2), erasures(3, 1, LEVEL_BLOCK))
    sender.run_until(1.0)
    assert sender.symbols(sent) == [(0, 1, symbol) for symbol in range(8)]


def test_a_number_of_erasures_of_an_object_that_was_purged_is_squelched() -> None:
    sender = SenderHarness(cache_min=1, cache_max=1, flow=0.1)
    sender.submit(LONG, LONG)
    sender.run_until(1.0)
    assert sender.events_of(ObjectPurged)
    sender.nack(erasures(2))
    sender.run_until(2.0)
    assert [squelch.object_id for squelch in sender.messages_of(Squelch)] == [1]
