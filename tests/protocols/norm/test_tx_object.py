"""Transmission of one object: order, repairs, parity, and reading of the source."""

from typing import Any

import pytest

from experiments.contract.content import Bytes, pattern
from experiments.running.content import Extent
from protocols.fec import encode
from protocols.machine import Content
from protocols.norm import parity as encoding
from protocols.norm.repair_requests import requested_repairs
from protocols.norm.requests import (
    LEVEL_BLOCK,
    LEVEL_INFO,
    LEVEL_OBJECT,
    Request,
)
from protocols.norm.tx_object import TxObject
from tests.protocols.norm.scenes import items, quick, ranges


def make(size: int = 2400, info: bytes = b"", **settings: Any) -> TxObject:
    return TxObject(0, Content(Bytes(pattern(size)), info), quick(**settings), 1)


def sent(item: TxObject) -> list[tuple[int, int]]:
    """Send everything once and return (block, symbol) of each."""
    steps = []
    while item.block < item.partition.blocks:
        steps.append(item.step())
    return steps


def repairs(item: TxObject, *requests: Request) -> list[tuple[int, int]]:
    """Return the symbols sent for one NACK."""
    item.want(requested_repairs(requests, item.fti.fec_id))
    item.activate()
    steps: list[tuple[int, int]] = []
    while item.repairs or item.repair_blocks:
        step = item.repair_step()
        assert step is not None
        steps.append(step)
    return steps


def parity(block: int, first: int, last: int) -> Request:
    return ranges((0, block, 8 + first), (0, block, 8 + last))


# -- order -------------------------------------------------------------------------------------------------------------


def test_blocks_and_symbols_are_sent_in_order() -> None:
    assert sent(make(2050)) == [(0, s) for s in range(7)] + [(b, s) for b in (1, 2) for s in range(7)]


def test_proactive_parity_follows_its_block() -> None:
    assert sent(make(1600, auto_parity=2)) == [(b, s) for b in range(2) for s in range(10)]


def test_an_empty_object_has_norm_info_and_no_symbols() -> None:
    item = make(0)
    assert item.partition.blocks == 0
    assert item.info_due
    assert item.unsent


# -- repair ------------------------------------------------------------------------------------------------------------


def test_requests_for_parity_are_served_by_count_with_unsent_symbols() -> None:
    item = make()
    sent(item)
    assert repairs(item, parity(1, 0, 1)) == [(1, 8), (1, 9)]
    assert repairs(item, parity(1, 0, 0)) == [(1, 10)]


def test_the_largest_requested_count_is_served() -> None:
    item = make()
    sent(item)
    assert repairs(item, parity(1, 0, 0), parity(1, 0, 2)) == [(1, 8), (1, 9), (1, 10)]
    other = make()
    sent(other)
    for request in (parity(1, 0, 0), parity(1, 0, 2), parity(1, 0, 1)):
        other.want(requested_repairs((request,), 5))
    assert repairs(other) == [(1, 8), (1, 9), (1, 10)]


def test_proactive_parity_counts_as_sent() -> None:
    item = make(auto_parity=2)
    sent(item)
    assert repairs(item, parity(0, 0, 0)) == [(0, 10)]


def test_when_parity_is_exhausted_the_requested_symbols_are_sent_again() -> None:
    item = make()
    sent(item)
    repairs(item, parity(1, 0, 2))
    assert repairs(item, parity(1, 0, 1)) == [(1, 8), (1, 9), (1, 11)]
    assert repairs(item, parity(1, 1, 2)) == [(1, 9), (1, 10)]


def test_source_symbols_are_served_by_name_and_end_fresh_parity() -> None:
    item = make()
    sent(item)
    assert repairs(item, items((0, 1, 2), (0, 1, 8))) == [(1, 2), (1, 8)]
    assert repairs(item, parity(1, 0, 0)) == [(1, 8)]


def test_a_block_is_repaired_with_its_proactive_parity() -> None:
    item = make(auto_parity=1)
    sent(item)
    assert repairs(item, items((0, 1), level=LEVEL_BLOCK)) == [(1, s) for s in range(9)]
    assert repairs(item, parity(1, 0, 0)) == [(1, 9)], "and fresh parity begins behind it again"


def test_a_whole_object_is_repaired() -> None:
    item = make()
    first = sent(item)
    assert repairs(item, items((0,), level=LEVEL_OBJECT)) == first


def test_norm_info_is_repaired_if_requested_after_it_was_sent() -> None:
    item = make(info=b"name")
    assert not item.want(requested_repairs((items((0,), level=LEVEL_INFO),), 5))
    item.info_due, item.info_sent = False, True
    assert item.want(requested_repairs((items((0,), level=LEVEL_INFO),), 5))
    item.activate()
    assert item.info_due
    assert item.repairing


def test_a_repeated_request_requests_nothing_new() -> None:
    item = make()
    sent(item)
    requested = requested_repairs((parity(1, 0, 1),), 5)
    assert item.want(requested)
    assert not item.want(requested)


def test_unsent_symbols_are_not_sent_twice() -> None:
    item = make()
    for _ in range(11):
        item.step()
    assert item.block == 1
    assert repairs(item, ranges((0, 1, 0), (0, 1, 6))) == [(1, 0), (1, 1), (1, 2)]
    assert repairs(item, ranges((0, 2, 0), (0, 2, 6))) == []
    assert repairs(item, ranges((0, 0), (0, 2), level=LEVEL_BLOCK))[:8] == [(0, s) for s in range(8)]


@pytest.mark.parametrize(
    "request_",
    [ranges((0, 99, 0), (0, 99, 5)), items((0, 3, 0)), items((0, 16_000_000), level=LEVEL_BLOCK), items((0, 1, 200))],
    ids=["block", "first-block-beyond", "block-level", "symbol"],
)
def test_requests_outside_the_object_are_ignored(request_: Request) -> None:
    item = make()
    sent(item)
    found = repairs(item, request_)
    assert all(block < 3 and symbol < 12 for block, symbol in found)
    assert len(found) <= 1


def test_requested_parity_of_the_current_block_follows_the_block() -> None:
    item = make()
    for _ in range(11):
        item.step()
    item.want(requested_repairs((parity(1, 0, 0),), 5))
    item.activate()
    assert item.repair_step() is None
    while item.block == 1:
        item.step()
    assert item.repair_step() == (1, 8)


def test_repairs_are_sent_lowest_first_even_if_requested_late() -> None:
    item = make()
    sent(item)
    item.want(requested_repairs((items((0, 2, 1), (0, 2, 2)),), 5))
    item.activate()
    assert item.repair_step() == (2, 1)
    assert repairs(item, items((0, 0, 5))) == [(0, 5), (2, 2)]


# -- content -----------------------------------------------------------------------------------------------------------


class Meter(Bytes):
    """Source that records its reads."""

    def __init__(self, content: bytes) -> None:
        super().__init__(content)
        self.reads: list[tuple[int, int]] = []

    def read(self, offset: int, n: int) -> bytes:
        """Read as the base class."""
        if n:
            self.reads.append((offset, n))
        return super().read(offset, n)


def test_a_source_is_read_one_block_at_a_time() -> None:
    source = Meter(pattern(2350))
    item = TxObject(0, Content(source), quick(), 1)
    for block, symbol in sent(item):
        payload, length, _ = item.payload(block, symbol)
        assert payload is not None
        assert len(payload) == length
    assert source.reads == [(0, 800), (800, 800), (1600, 750)]


def test_the_last_segment_is_short_and_parity_is_full_size() -> None:
    item = make(2350)
    assert item.payload(2, 7)[1] == 50
    assert item.payload(2, 8)[1] == 100


def test_payloads_are_the_content_and_its_parity() -> None:
    content = pattern(2350)
    item = make(2350)
    assert item.payload(1, 3)[0] == content[1100:1200]
    cut = [content[1600 + i * 100 : 1700 + i * 100] for i in range(8)]
    assert item.payload(2, 10)[0] == encode(8, 4, cut, [2])[0]


def test_parity_is_computed_when_it_is_sent_and_once_per_request(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[list[int]] = []

    def counted(k: int, count: int, sources: list[bytes], wanted: list[int], m: int) -> list[bytes]:
        calls.append(list(wanted))
        return encode(k, count, sources, wanted, m)

    monkeypatch.setattr(encoding, "encode", counted)
    item = make()
    for step in sent(item):
        item.payload(*step)
    assert calls == []
    item.want(requested_repairs((parity(1, 0, 2),), 5))
    item.activate()
    while item.repairs or item.repair_blocks:
        item.payload(*(item.repair_step() or (-1, -1)))
    assert calls == [[0, 1, 2]]


def test_content_without_bytes_is_never_read_or_encoded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(encoding, "encode")
    item = TxObject(0, Content(Extent(2350)), quick(), 1)
    for step in sent(item):
        assert item.payload(*step)[0] is None
    assert item.payload(2, 9) == (None, 100, item.payload(2, 9)[2])


def test_a_source_that_ends_early_raises_a_read_error() -> None:
    class Short(Bytes):
        def read(self, offset: int, n: int) -> bytes:
            return super().read(offset, n)[: n // 2]

    item = TxObject(0, Content(Short(pattern(800))), quick(), 1)
    with pytest.raises(OSError, match="ended early"):
        item.payload(0, 0)


def test_identities_are_dense_and_unique() -> None:
    item = make(2400, auto_parity=4)
    found = [item.payload(*step)[2] for step in sent(item)]
    assert len(set(found)) == 36
    sources = sorted(each for each in found if each >> 62 == 0)
    assert sources == list(range(sources[0], sources[0] + 24))
