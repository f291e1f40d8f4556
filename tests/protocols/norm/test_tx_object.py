"""One object on its way out: order, repairs, parity, reading."""

from typing import Any

import pytest

from protocols.fec import encode
from protocols.machine import Content
from protocols.norm import tx_object as outgoing
from protocols.norm.messages import LEVEL_BLOCK, LEVEL_INFO, LEVEL_OBJECT, Request
from protocols.norm.repair_requests import requested_repairs
from protocols.norm.tx_object import TxObject
from tests.protocols.norm.scenes import items, quick, ranges
from tests.support.content import Bytes, Extent, pattern


def make(size: int = 2400, info: bytes = b"", **settings: Any) -> TxObject:
    return TxObject(0, Content(Bytes(pattern(size)), info), quick(**settings), 1)


def sent(item: TxObject) -> list[tuple[int, int]]:
    """Everything is sent once."""
    steps = []
    while item.block < item.partition.blocks:
        steps.append(item.step())
    return steps


def repairs(item: TxObject, *requests: Request) -> list[tuple[int, int]]:
    """What is sent for one NACK."""
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


def test_blocks_and_symbols_go_out_in_order() -> None:
    assert sent(make(2050)) == [(0, s) for s in range(7)] + [(b, s) for b in (1, 2) for s in range(7)]


def test_automatic_parity_goes_out_behind_its_block() -> None:
    assert sent(make(1600, auto_parity=2)) == [(b, s) for b in range(2) for s in range(10)]


def test_an_empty_object_has_no_symbols_but_information() -> None:
    item = make(0)
    assert item.partition.blocks == 0
    assert item.info_due
    assert item.unsent


# -- repair ------------------------------------------------------------------------------------------------------------


def test_parity_is_served_by_count_from_what_was_never_sent() -> None:
    item = make()
    sent(item)
    assert repairs(item, parity(1, 0, 1)) == [(1, 8), (1, 9)]
    assert repairs(item, parity(1, 0, 0)) == [(1, 10)]


def test_the_largest_count_of_several_requests_is_served() -> None:
    item = make()
    sent(item)
    assert repairs(item, parity(1, 0, 0), parity(1, 0, 2)) == [(1, 8), (1, 9), (1, 10)]
    other = make()
    sent(other)
    for request in (parity(1, 0, 0), parity(1, 0, 2), parity(1, 0, 1)):
        other.want(requested_repairs((request,), 5))
    assert repairs(other) == [(1, 8), (1, 9), (1, 10)]


def test_automatic_parity_counts_as_sent() -> None:
    item = make(auto_parity=2)
    sent(item)
    assert repairs(item, parity(0, 0, 0)) == [(0, 10)]


def test_when_parity_runs_out_the_very_symbols_asked_for_are_sent_too() -> None:
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


def test_a_block_is_sent_again_with_its_automatic_parity() -> None:
    item = make(auto_parity=1)
    sent(item)
    assert repairs(item, items((0, 1), level=LEVEL_BLOCK)) == [(1, s) for s in range(9)]
    assert repairs(item, parity(1, 0, 0)) == [(1, 9)], "and fresh parity begins behind it again"


def test_an_object_is_sent_again_whole() -> None:
    item = make()
    first = sent(item)
    assert repairs(item, items((0,), level=LEVEL_OBJECT)) == first


def test_information_is_sent_again_when_asked_for_after_it_was_sent() -> None:
    item = make(info=b"name")
    assert not item.want(requested_repairs((items((0,), level=LEVEL_INFO),), 5))
    item.info_due, item.info_sent = False, True
    assert item.want(requested_repairs((items((0,), level=LEVEL_INFO),), 5))
    item.activate()
    assert item.info_due
    assert item.repairing


def test_the_same_request_twice_wants_nothing_new() -> None:
    item = make()
    sent(item)
    demand = requested_repairs((parity(1, 0, 1),), 5)
    assert item.want(demand)
    assert not item.want(demand)


def test_what_will_be_sent_anyway_is_not_sent_twice() -> None:
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
def test_what_the_object_does_not_have_is_not_sent(request_: Request) -> None:
    item = make()
    sent(item)
    found = repairs(item, request_)
    assert all(block < 3 and symbol < 12 for block, symbol in found)
    assert len(found) <= 1


def test_parity_of_a_block_under_way_waits_for_the_rest_of_the_block() -> None:
    item = make()
    for _ in range(11):
        item.step()
    item.want(requested_repairs((parity(1, 0, 0),), 5))
    item.activate()
    assert item.repair_step() is None
    while item.block == 1:
        item.step()
    assert item.repair_step() == (1, 8)


def test_repairs_go_out_lowest_first_even_when_they_were_asked_for_late() -> None:
    item = make()
    sent(item)
    item.want(requested_repairs((items((0, 2, 1), (0, 2, 2)),), 5))
    item.activate()
    assert item.repair_step() == (2, 1)
    assert repairs(item, items((0, 0, 5))) == [(0, 5), (2, 2)]


# -- content -----------------------------------------------------------------------------------------------------------


class Meter(Bytes):
    """A source that notes what was read."""

    def __init__(self, content: bytes) -> None:
        super().__init__(content)
        self.reads: list[tuple[int, int]] = []

    def read(self, offset: int, n: int) -> bytes:
        """As the base class."""
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


def test_the_last_segment_is_short_and_parity_is_not() -> None:
    item = make(2350)
    assert item.payload(2, 7)[1] == 50
    assert item.payload(2, 8)[1] == 100


def test_payloads_are_the_content_and_its_parity() -> None:
    content = pattern(2350)
    item = make(2350)
    assert item.payload(1, 3)[0] == content[1100:1200]
    cut = [content[1600 + i * 100 : 1700 + i * 100] for i in range(8)]
    assert item.payload(2, 10)[0] == encode(8, 4, cut, [2])[0]


def test_parity_is_computed_only_when_it_is_sent_and_once_for_what_is_due(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[list[int]] = []

    def counted(k: int, count: int, sources: list[bytes], wanted: list[int]) -> list[bytes]:
        calls.append(list(wanted))
        return encode(k, count, sources, wanted)

    monkeypatch.setattr(outgoing, "encode", counted)
    item = make()
    for step in sent(item):
        item.payload(*step)
    assert calls == []
    item.want(requested_repairs((parity(1, 0, 2),), 5))
    item.activate()
    while item.repairs or item.repair_blocks:
        item.payload(*(item.repair_step() or (-1, -1)))
    assert calls == [[0, 1, 2]]


def test_content_without_bytes_is_never_read_and_never_encoded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(outgoing, "encode")
    item = TxObject(0, Content(Extent(2350)), quick(), 1)
    for step in sent(item):
        assert item.payload(*step)[0] is None
    assert item.payload(2, 9) == (None, 100, item.payload(2, 9)[2])


def test_a_source_that_ends_early_is_an_error_of_reading() -> None:
    class Short(Bytes):
        def read(self, offset: int, n: int) -> bytes:
            return super().read(offset, n)[: n // 2]

    item = TxObject(0, Content(Short(pattern(800))), quick(), 1)
    with pytest.raises(OSError, match="ended early"):
        item.payload(0, 0)


def test_identities_are_dense_and_all_different() -> None:
    item = make(2400, auto_parity=4)
    found = [item.payload(*step)[2] for step in sent(item)]
    assert len(set(found)) == 36
    sources = sorted(each for each in found if each >> 62 == 0)
    assert sources == list(range(sources[0], sources[0] + 24))
