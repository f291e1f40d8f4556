"""What FJM2 asks of NORM: repairs at once, no FLUSH, objects that become too old, a cost per NACK that does not grow."""

import time
from functools import partial
from typing import Any

import pytest

from protocols.events import FlushCompleted
from protocols.norm.immediate_repairs import MOST_NAMED
from protocols.norm.messages import Application, Data, Flush, Squelch
from protocols.norm.requests import LEVEL_BLOCK, LEVEL_OBJECT
from tests.protocols.norm.scenes import GRTT, SenderHarness, items, ranges
from tests.protocols.norm.test_hostile import LINES_PER_KILOBYTE, lines

PLAIN: dict[str, Any] = {"fec": 0, "parity": 0}


def _sent(repair: str, **settings: Any) -> SenderHarness:
    """Return a sender that has sent one object of twelve symbols."""
    sender = SenderHarness(repair=repair, **{**PLAIN, **settings})
    sender.submit(1200)
    sender.run_until(5.0, lambda: bool(sender.events_of(FlushCompleted)))
    return sender


def _repairs(sender: SenderHarness, since: int) -> list[tuple[int, int, int]]:
    sender.run_until(sender.now + 1.0)
    return sender.symbols(since)


def test_a_repair_is_sent_when_the_nack_arrives() -> None:
    sender = _sent("immediate")
    before, now = len(sender.sent), sender.now
    sender.nack(items((0, 0, 1), fec=0))
    sender.run_until(now)
    assert [(when, message.symbol) for when, _, message in sender.sent[before:]] == [(now, 1)]
    gathering = _sent("gathered")
    before, now = len(gathering.times(Data)), gathering.now
    gathering.nack(items((0, 0, 1), fec=0))
    gathering.run_until(now + 1.0)
    assert gathering.times(Data)[before] >= now + 5 * GRTT * 0.9


@pytest.mark.parametrize(("repair", "copies"), [("immediate", 3), ("immediate-once", 1), ("gathered", 1)])
def test_what_several_receivers_request_is_sent_as_often_as_that_or_once(repair: str, copies: int) -> None:
    sender = _sent(repair)
    before = len(sender.symbols())
    for _ in range(3):
        # They arrive before the first repair can be sent.
        sender.nack(ranges((0, 0, 1), (0, 0, 2), fec=0))
    assert sorted(_repairs(sender, before)) == sorted([(0, 0, 1), (0, 0, 2)] * copies)


@pytest.mark.parametrize("repair", ["immediate", "immediate-once"])
def test_there_is_no_hold_off(repair: str) -> None:
    sender = _sent(repair)
    before = len(sender.symbols())
    for _ in range(3):
        sender.nack(items((0, 0, 1), fec=0))
        sender.run_until(sender.now + GRTT / 10)
    assert _repairs(sender, before) == [(0, 0, 1)] * 3


def test_whole_blocks_and_objects_are_repaired_too() -> None:
    sender = _sent("immediate-once", block=4)
    before = len(sender.symbols())
    sender.nack(items((0, 1, 0), level=LEVEL_BLOCK, fec=0))
    block = _repairs(sender, before)
    assert {(symbol[1]) for symbol in block} == {1}
    before = len(sender.symbols())
    sender.nack(items((0, 0, 0), level=LEVEL_OBJECT, fec=0))
    assert len(_repairs(sender, before)) == len(sender.symbols()[:before]) - len(block)


def test_repairs_that_wait_are_bounded() -> None:
    sender = SenderHarness(repair="immediate", rate=1000.0, **PLAIN)
    sender.submit(200)
    sender.run_until(3.0, lambda: bool(sender.events_of(FlushCompleted)))
    for _ in range(40_000):
        sender.nack(ranges((0, 0, 0), (0, 0, 1), fec=0))
    assert len(next(iter(sender.machine._window.objects.values()))._due) == 1 << 16  # type: ignore[attr-defined]


@pytest.mark.parametrize("repair", ["immediate", "immediate-once"])
@pytest.mark.parametrize("coding", [{"block": 64}, {"fec": 2, "fec_m": 16, "block": 60_000}], ids=["64", "60000"])
def test_a_nack_for_everything_costs_little_and_is_served_in_parts(repair: str, coding: dict[str, Any]) -> None:
    sender = SenderHarness(repair=repair, rate=1e12, segment=10, cache_size=1 << 30, **{**PLAIN, **coding})
    sender.submit(*[10 * 5000] * 10, counted=True)
    sender.run_until(3.0, lambda: bool(sender.events_of(FlushCompleted)))
    for served in range(1, 4):
        nack = partial(sender.nack, ranges((0, 0, 0), (9, 0, 0), level=LEVEL_OBJECT, fec=sender.config.fec))
        assert lines(nack) < LINES_PER_KILOBYTE
        waiting: list[Any] = list(sender.machine._window.objects.values())
        assert sum(len(item._due) for item in waiting) == (served if repair == "immediate" else 1) * MOST_NAMED


def test_without_robustness_no_flush_is_sent_and_the_end_is_reported_once() -> None:
    sender = SenderHarness(robust=0)
    sender.submit(300)
    sender.run_until(30.0)
    assert len(sender.events_of(FlushCompleted)) == 1
    assert not sender.messages_of(Flush)
    sender.submit(300)
    sender.run_until(60.0)
    assert len(sender.events_of(FlushCompleted)) == 2
    sender.host.call(sender.machine.send_command, b"hello", 0)
    sender.run_until(61.0)
    assert len(sender.messages_of(Application)) == 1


def test_without_robustness_a_sender_waits_for_requests_before_it_reports_its_end() -> None:
    sender = SenderHarness(robust=0, parity=0, fec=0, backoff=4, grtt=0.1)
    sender.submit(300)
    sender.run_until(0.3)
    before = len(sender.symbols())
    assert not sender.events_of(FlushCompleted)
    sender.nack(items((0, 0, 1), fec=0))
    sender.run_until(1.0)
    assert sender.symbols()[before:] == [(0, 0, 1)]
    assert not sender.events_of(FlushCompleted)
    sender.run_until(2.0)
    assert len(sender.events_of(FlushCompleted)) == 1


def test_an_object_that_is_too_old_is_squelched() -> None:
    sender = _sent("gathered", cache_age=10.0)
    before = len(sender.symbols())
    sender.nack(items((0, 0, 1), fec=0))
    assert _repairs(sender, before) == [(0, 0, 1)]
    sender.run_until(sender.now + 10.0)
    sender.nack(items((0, 0, 1), fec=0))
    assert _repairs(sender, before + 1) == []
    assert [message.invalid for message in sender.messages_of(Squelch)] == [(0,)]


def _cost(objects: int) -> float:
    """Return the least processor time of a NACK for three objects with so many in the window."""
    sender = SenderHarness(rate=1e9, cache_min=objects, cache_max=objects, cache_size=1 << 40, **PLAIN)
    sender.submit(*[50] * objects)
    sender.run_until(2.0, lambda: sender.machine.counts()["objects_sent"] == objects)
    least = 1.0
    for start in range(0, 300, 10):
        began = time.process_time()
        sender.nack(items(*[(start + step, 0, 0) for step in range(3)], fec=0))
        sender.run_until(sender.now + 10 * GRTT)
        least = min(least, time.process_time() - began)
    return least


def test_the_cost_of_a_nack_does_not_grow_with_the_window() -> None:
    assert _cost(10_000) < 3 * _cost(500)
