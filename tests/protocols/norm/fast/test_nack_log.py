"""NACK processes that overhear by a log do what they do when each receives every NACK."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.running.content import Accounted
from protocols.norm.fast import nack_log
from protocols.norm.fast.nack_log import FastNackProcess, NackLog, is_covered_by_count
from protocols.norm.maps import SmallDict
from protocols.norm.messages import Fti
from protocols.norm.nack_process import MOST_COMPARED, Decision, NackProcess, is_covered
from protocols.norm.repair_requests import RequestedRepairs, requested_repairs
from protocols.norm.requests import (
    FORM_ITEMS,
    LEVEL_BLOCK,
    LEVEL_SEGMENT,
    Item,
    Request,
)
from protocols.norm.rx_object import RxObject
from protocols.norm.sender_profile import unknown_sender
from protocols.rng import Rng

BLOCK = 8


def requests(symbols: list[tuple[int, int]], whole: int | None) -> RequestedRepairs:
    """Return the requests of a NACK for symbols (block, symbol), and perhaps for a whole block."""
    items = tuple(Item(5, 0, block, symbol, BLOCK) for block, symbol in symbols)
    parts = [Request(FORM_ITEMS, LEVEL_SEGMENT, items)] if items else []
    if whole is not None:
        parts.append(Request(FORM_ITEMS, LEVEL_BLOCK, (Item(5, 0, whole, 0, BLOCK),)))
    return requested_repairs(tuple(parts), 5)


def begun(process: NackProcess) -> NackProcess:
    """Begin a back-off."""
    sender = replace(unknown_sender(), grtt=0.1, backoff=4, group_size=10.0)
    assert process.begin(0.0, (0, 3, 0), sender, Rng(1))
    return process


SYMBOL = st.tuples(st.integers(0, 2), st.integers(0, BLOCK - 1))
NACKS = st.lists(
    st.tuples(st.lists(SYMBOL, max_size=4), st.sampled_from([None, None, None, 0, 1]), st.booleans(), st.integers(0, 3)),
    max_size=12,
)


@settings(deadline=None, derandomize=True)
@given(st.lists(SYMBOL, min_size=1, max_size=5), st.sampled_from([0, 2]), NACKS)
def test_a_process_is_suppressed_as_if_it_heard_every_nack(
    missing: list[tuple[int, int]], parity: int, nacks: list[tuple[list[tuple[int, int]], int | None, bool, int]]
) -> None:
    item = RxObject(0, Fti(5, 3 * BLOCK * 10, 10, BLOCK, parity), Accounted(), wants_info=False)
    for block, symbol in missing:
        item.lose(block, 1 << symbol)
    objects: SmallDict[RxObject | None] = SmallDict()
    objects[0] = item
    log, plain, fast = NackLog(), begun(NackProcess()), begun(FastNackProcess())
    assert isinstance(fast, FastNackProcess)
    assert plain.backoff_end == fast.backoff_end
    fast.follow(log)
    for number, (symbols, whole, is_lost, end) in enumerate(nacks):
        asked, now = requests(symbols, whole), plain.backoff_end * number / 14
        boundary = 0, end, 0
        log.forget(now)
        log.append(asked, now)
        if is_lost:
            fast.miss_last(log)
        else:
            assert fast.overhear(asked, boundary, objects, now) is plain.overhear(asked, boundary, objects, now)
            assert (fast.due, fast.suppressed_to) == (plain.due, plain.suppressed_to)
        if plain.suppressed_to is not None and number % 2:
            decision = plain.check((0, 3, 0), objects, now)
            assert fast.check((0, 3, 0), objects, now) is decision
            if decision is Decision.RESUME:
                fast.follow(log)
    args = plain.backoff_end, (0, 3, 0), (0, 3, 0), objects, unknown_sender()
    assert fast.expire(*args) == plain.expire(*args)


PARITY = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3)), max_size=3)
"""Parity symbols received, and requested: (block, number)."""


def incomplete(missing: list[tuple[int, int]], parity: int, heard: list[tuple[int, int]], info: str) -> RxObject:
    """Return an object of three blocks that lacks symbols, has parity, and NORM_INFO: "none", "missing" or "there"."""
    item = RxObject(0, Fti(5, 3 * BLOCK * 10, 10, BLOCK, parity), Accounted(), wants_info=info != "none")
    item.info = b"name" if info == "there" else None
    for block, symbol in missing:
        item.lose(block, 1 << symbol)
    for block, number in heard:
        item.fill_parity(block, number, None, 0)
    return item


@settings(deadline=None, derandomize=True, max_examples=400)
@given(
    st.lists(SYMBOL, min_size=1, max_size=6),
    st.sampled_from([0, 2, 4]),
    PARITY,
    st.sampled_from(["none", "missing", "there"]),
    st.lists(SYMBOL, max_size=4),
    PARITY,
    st.sampled_from([None, None, 0, 1]),
    st.tuples(st.integers(0, 3), st.integers(0, 3)),
)
def test_requests_are_compared_by_count_as_symbol_by_symbol(
    missing: list[tuple[int, int]],
    parity: int,
    heard: list[tuple[int, int]],
    info: str,
    symbols: list[tuple[int, int]],
    parities: list[tuple[int, int]],
    whole: int | None,
    end: tuple[int, int],
) -> None:
    item = incomplete(missing, parity, heard, info)
    objects: SmallDict[RxObject | None] = SmallDict()
    objects[0] = item
    asked = requests(symbols + [(block, BLOCK + number) for block, number in parities], whole)
    usable = 0 if asked.objects or asked.blocks else item.fti.usable
    found = is_covered_by_count(objects, item, (0, *end), asked, asked.counts(0, item.fti), usable)
    assert found is is_covered(objects, (0, *end), asked, MOST_COMPARED)


def test_parity_of_an_object_whose_information_has_arrived_is_compared_by_count(monkeypatch: pytest.MonkeyPatch) -> None:
    def compared(*_: object) -> bool:
        raise AssertionError("compared symbol by symbol")

    monkeypatch.setattr(nack_log, "is_covered", compared)
    item = incomplete([(0, 1), (0, 2), (1, 4)], 4, [], "there")
    objects: SmallDict[RxObject | None] = SmallDict()
    objects[0] = item
    for first, covers in ((1, False), (2, True)):
        asked = requests([(0, BLOCK + number) for number in range(first)] + [(1, BLOCK)], None)
        assert is_covered_by_count(objects, item, (0, 2, 0), asked, asked.counts(0, item.fti), item.fti.usable) is covers


def test_a_log_forgets_what_no_process_needs() -> None:
    log = NackLog()
    for number in range(1000):
        log.keep_until(number + 5.0)
        log.forget(float(number))
        log.append(requests([(0, number % BLOCK)], None), float(number))
    assert log.end == 1000
    assert log.size < 30


def test_a_nack_is_merged_once_into_what_a_process_overheard(monkeypatch: pytest.MonkeyPatch) -> None:
    merged, merge = [], RequestedRepairs.merged

    def count(known: RequestedRepairs, other: RequestedRepairs) -> RequestedRepairs:
        merged.append(other)
        return merge(known, other)

    monkeypatch.setattr(RequestedRepairs, "merged", count)
    item = RxObject(0, Fti(5, 3 * BLOCK * 10, 10, BLOCK, 0), Accounted(), wants_info=False)
    item.lose(2, 1)
    objects: SmallDict[RxObject | None] = SmallDict()
    objects[0] = item
    log, process = NackLog(), begun(FastNackProcess())
    assert isinstance(process, FastNackProcess)
    process.follow(log)
    for number in range(50):
        # Whole blocks are requested, so that the process can't compare symbols alone.
        asked, now = requests([(0, number % BLOCK)], 0), process.backoff_end * number / 100
        log.append(asked, now)
        assert process.overhear(asked, (0, 3, 0), objects, now) is Decision.NOTHING
    assert len(merged) == 49
