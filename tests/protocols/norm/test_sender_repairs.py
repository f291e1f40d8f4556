"""The NORM sender: what becomes of its objects, and how it answers requests."""

from math import inf
from typing import Any

import pytest

from experiments.contract.content import Bytes, pattern
from experiments.running.content import Extent
from protocols.errors import UsageError
from protocols.events import FlushCompleted, ObjectAborted, ObjectPurged, ObjectSent
from protocols.machine import Content
from protocols.norm.messages import FLAG_REPAIR, Data, Flush, Info, Squelch
from tests.protocols.norm.scenes import GRTT, Talker, items, ranges

LONG = 2400
"""Bytes of three blocks."""
FACTOR = 4


def flushed(talker: Talker) -> bool:
    return bool(talker.told(FlushCompleted))


# -- objects -----------------------------------------------------------------------------------------------------------


class Broken(Bytes):
    """A source that fails, or ends early, from an offset on."""

    def __init__(self, content: bytes, limit: int, *, short: bool) -> None:
        super().__init__(content)
        self.limit, self.short = limit, short

    def read(self, offset: int, n: int) -> bytes:
        """As the base class, before the limit."""
        if offset + n > self.limit:
            if self.short:
                return super().read(offset, max(self.limit - offset, 0))
            raise OSError(5, "broken disk")
        return super().read(offset, n)


@pytest.mark.parametrize("short", [False, True], ids=["fails", "ends-early"])
@pytest.mark.parametrize("limit", [0, 1000])
def test_a_source_that_fails_ends_its_object_and_nothing_else(limit: int, short: bool) -> None:
    talker = Talker()
    talker.submit(LONG)
    talker.host.call(talker.machine.submit, Content(Broken(pattern(LONG), limit, short=short), b"name"))
    talker.submit(LONG)
    talker.until(10.0)
    (event,) = talker.told(ObjectAborted)
    assert (event.sender, event.object_id) == (1, 1)
    assert event.reason.startswith("source: ")
    assert [object_id for object_id, _, _ in talker.symbols()].count(1) == limit // 800 * 8
    assert [event.object_id for event in talker.told(ObjectSent)] == [0, 2]
    assert flushed(talker)
    talker.nack(ranges((1, 0, 0), (1, 0, 7)))
    talker.until(20.0)
    assert [(squelch.object_id, squelch.invalid) for squelch in talker.of(Squelch)] == [(0, (1,))]


def test_a_source_that_fails_at_a_repair_ends_its_object() -> None:
    source = Broken(pattern(LONG), LONG, short=False)
    talker = Talker()
    talker.host.call(talker.machine.submit, Content(source, b""))
    talker.until(5.0, lambda: bool(talker.of(Flush)))
    source.limit = 0
    talker.nack(items((0, 0, 3)))
    talker.until(20.0)
    assert [event.object_id for event in talker.told(ObjectAborted)] == [0]
    assert len(talker.of(Data)) == 24


def test_when_the_only_object_failed_it_still_comes_to_an_end() -> None:
    talker = Talker()
    talker.host.call(talker.machine.submit, Content(Broken(pattern(LONG), 800, short=False), b""))
    talker.until(100.0)
    assert [event.object_id for event in talker.told(ObjectAborted)] == [0]
    assert talker.machine.deadline == inf


def test_a_squelch_names_the_first_object_that_can_be_repaired() -> None:
    talker = Talker(cache_min=2, cache_max=2)
    talker.submit(*[100] * 5)
    talker.until(20.0)
    assert [event.object_id for event in talker.told(ObjectPurged)] == [0, 1, 2]
    talker.nack(items((1, 0, 8)))
    talker.until(talker.now + 5.0)
    assert [(squelch.object_id, squelch.invalid) for squelch in talker.of(Squelch)] == [(3, ())]
    talker.nack(items((3, 0, 8)))
    talker.until(talker.now + 5.0)
    assert len(talker.of(Squelch)) == 1


def test_objects_wait_until_the_window_has_room() -> None:
    talker = Talker(cache_min=2, cache_max=2, flow=2.0)
    talker.submit(*[100] * 3)
    talker.until(20.0)
    sent = {data.object_id: when for when, _, data in talker.said if isinstance(data, Data)}
    # The first object rests for flow * (K + 1) GRTT after its last packet.
    assert sent[2] - sent[0] == pytest.approx(2.0 * (FACTOR + 1) * GRTT, rel=0.05)


def test_a_request_keeps_an_object_from_being_forgotten() -> None:
    talker = Talker(cache_min=2, cache_max=2, flow=2.0)
    talker.submit(*[100] * 3)
    talker.until(1.9 * (FACTOR + 1) * GRTT)
    talker.nack(items((0, 0, 1)))
    talker.until(20.0)
    sent = [(when, data.object_id) for when, _, data in talker.said if isinstance(data, Data)]
    repaired = next(when for when, object_id in sent[2:] if object_id == 0)
    assert next(when for when, object_id in sent if object_id == 2) > repaired


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (Content(Bytes(b""), b"x" * 101), "at most one segment"),
        (Content(Extent(65536 * 800 + 1), b""), "at most 52428800 with fec 0"),
    ],
    ids=["information", "blocks"],
)
def test_content_that_norm_cannot_carry_is_refused_and_leaves_no_trace(content: Content, words: str) -> None:
    talker = Talker(fec=0, parity=0)
    with pytest.raises(UsageError, match=words):
        talker.host.call(talker.machine.submit, content)
    assert talker.submit(100) == [0]
    talker.until(5.0)
    assert talker.told(FlushCompleted) == [FlushCompleted(0)]


def test_the_largest_object_and_information_are_taken() -> None:
    talker = Talker(fec=0, parity=0)
    talker.submit(65536 * 800, info=b"x" * 100, counted=True)
    talker.until(0.01)
    (fti,) = {data.fti for data in talker.of(Data)}
    assert fti is not None
    assert fti.partition.blocks == 65536


def test_ids_go_round() -> None:
    talker = Talker(rate=1e9, cache_min=1, cache_max=1, flow=0.1, backoff=0, parity=0)
    talker.machine._next_id = 0xFFFE
    assert talker.submit(100, 100, 100) == [0xFFFE, 0xFFFF, 0]
    talker.until(5.0)
    assert [object_id for object_id, _, _ in talker.symbols()] == [0xFFFE, 0xFFFF, 0]
    assert talker.told(FlushCompleted) == [FlushCompleted(0)]


# -- repairs -----------------------------------------------------------------------------------------------------------


def ready(**settings: Any) -> Talker:
    """A sender that has sent three blocks and begun to flush; `backoff` 4."""
    talker = Talker(**settings)
    talker.submit(LONG)
    talker.until(10.0, lambda: bool(talker.of(Flush)))
    return talker


def test_requests_are_gathered_for_k_plus_one_round_trips() -> None:
    talker = ready()
    asked = talker.now
    talker.nack(items((0, 1, 8)))
    talker.nack(items((0, 0, 8), (0, 0, 9)), now=asked + FACTOR * GRTT)
    talker.until(asked + (FACTOR + 1) * GRTT - 1e-6)
    assert len(talker.of(Data)) == 24
    talker.until(asked + 10 * GRTT)
    assert talker.symbols(24) == [(0, 0, 8), (0, 0, 9), (0, 1, 8)]
    assert talker.machine.counts()["repairs_sent"] == 3


def test_repairs_are_marked_and_carry_parity_that_decodes() -> None:
    talker = ready()
    talker.nack(items((0, 1, 8)), ranges((0, 2, 1), (0, 2, 2)))
    talker.until(5.0)
    repairs = talker.of(Data)[24:]
    assert all(data.flags & FLAG_REPAIR for data in repairs)
    assert not any(data.flags & FLAG_REPAIR for data in talker.of(Data)[:24])
    assert repairs[1].payload == talker.of(Data)[17].payload


def test_without_back_off_and_parity_repairs_begin_at_once() -> None:
    talker = ready(backoff=0, parity=0)
    asked = talker.now
    talker.nack(items((0, 1, 3)))
    talker.until(asked + 0.001)
    assert talker.symbols(24) == [(0, 1, 3)]


def test_without_back_off_but_with_parity_requests_are_gathered_for_one_round_trip() -> None:
    talker = ready(backoff=0)
    asked = talker.now
    talker.nack(items((0, 1, 8)))
    talker.until(asked + GRTT - 1e-6)
    assert len(talker.of(Data)) == 24
    talker.until(asked + GRTT + 1e-3)
    assert talker.symbols(24) == [(0, 1, 8)]


def test_repairs_come_before_what_is_new() -> None:
    talker = Talker(rate=20_000.0)
    talker.submit(LONG, LONG)
    talker.until(0.15)
    sent = len(talker.of(Data))
    assert 16 < sent < 30
    talker.nack(items((0, 0, 8), (0, 0, 9)))
    talker.until(10.0)
    order = talker.symbols()
    place = order.index((0, 0, 8))
    assert order[place + 1] == (0, 0, 9)
    assert order[place + 2] == (order[place - 1][0], order[place - 1][1], order[place - 1][2] + 1)
    assert sorted(order) == sorted(set(order))


def test_a_request_for_what_was_not_sent_yet_is_not_served_twice() -> None:
    talker = Talker(rate=20_000.0)
    talker.submit(LONG)
    talker.until(0.02)
    talker.nack(ranges((0, 2, 0), (0, 2, 7)))
    talker.until(10.0)
    assert talker.symbols() == [(0, b, s) for b in range(3) for s in range(8)]


def test_during_the_hold_off_requests_for_what_was_just_repaired_are_dropped() -> None:
    talker = ready()
    talker.nack(items((0, 1, 8)))
    talker.until(talker.now + 10.0, lambda: len(talker.of(Data)) == 25)
    talker.nack(items((0, 1, 8)), now=talker.now + 0.5 * GRTT)
    talker.nack(items((0, 0, 8)))
    talker.until(talker.now + 1.0)
    assert talker.symbols(24) == [(0, 1, 8)]


def test_during_the_hold_off_requests_for_what_lies_ahead_are_served_at_once() -> None:
    talker = ready()
    talker.nack(items((0, 0, 8)))
    talker.until(talker.now + 10.0, lambda: len(talker.of(Data)) == 25)
    talker.nack(items((0, 2, 8)))
    talker.until(talker.now + 0.001)
    assert talker.symbols(24) == [(0, 0, 8), (0, 2, 8)]


def test_after_the_hold_off_a_request_begins_a_new_round() -> None:
    talker = ready()
    talker.nack(items((0, 1, 8)))
    talker.until(talker.now + 10.0, lambda: len(talker.of(Data)) == 25)
    asked = talker.now + 1.001 * GRTT
    talker.nack(items((0, 1, 9)), now=asked)
    talker.until(asked + (FACTOR + 1) * GRTT + 0.001)
    assert talker.symbols(24) == [(0, 1, 8), (0, 1, 9)]


def test_information_is_sent_again() -> None:
    talker = Talker()
    talker.submit(LONG, info=b"name")
    talker.until(10.0, lambda: bool(talker.of(Flush)))
    talker.nack(items((0,), level=4))
    talker.until(talker.now + 5.0)
    first, second = talker.of(Info)
    assert (first.flags & FLAG_REPAIR, second.flags & FLAG_REPAIR) == (0, FLAG_REPAIR)
    assert second.payload == b"name"
    assert len(talker.of(Data)) == 24


def test_a_whole_object_is_sent_again_with_its_information() -> None:
    talker = Talker()
    talker.submit(LONG, info=b"name")
    talker.until(10.0, lambda: bool(talker.of(Flush)))
    talker.nack(items((0,), level=8))
    talker.until(talker.now + 5.0)
    assert len(talker.of(Info)) == 2
    assert sorted(talker.symbols(24)) == sorted(talker.symbols()[:24])


def test_an_endlessly_asking_receiver_gets_its_answers_and_the_session_still_ends() -> None:
    talker = ready()
    for _ in range(30):
        talker.nack(ranges((0, 0, 8), (0, 0, 11)))
        talker.until(talker.now + 8 * GRTT)
    talker.until(talker.now + 20.0)
    assert flushed(talker)
    assert len(talker.of(Data)) - 24 <= 30 * 4
