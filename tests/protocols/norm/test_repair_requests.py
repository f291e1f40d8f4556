"""The repairs that a NACK requests, by level."""

import pytest

from protocols.norm.messages import Nack
from protocols.norm.repair_requests import RequestedRepairs, requested_repairs
from protocols.norm.requests import (
    FORM_ERASURES,
    FORM_ITEMS,
    FORM_RANGES,
    LEVEL_BLOCK,
    LEVEL_INFO,
    LEVEL_OBJECT,
    LEVEL_SEGMENT,
    Item,
    Request,
)
from tests.protocols.norm.scenes import items, ranges, symbols


def requested(*requests: Request, fec: int = 5) -> RequestedRepairs:
    return requested_repairs(requests, fec)


def test_items_name_single_symbols_and_ranges_include_both_ends() -> None:
    found = requested(items((0, 1, 3), (0, 1, 7)), ranges((0, 1, 10), (0, 1, 12), (0, 2, 0), (0, 2, 1)))
    assert symbols(found, 0, 1) == [3, 7, 10, 11, 12]
    assert symbols(found, 0, 2) == [0, 1]


def test_blocks_are_requested_in_ranges() -> None:
    found = requested(ranges((4, 2), (4, 9), level=LEVEL_BLOCK), items((4, 20), level=LEVEL_BLOCK))
    assert found.blocks == ((4, 2, 9), (4, 20, 20))
    assert found.has_blocks(4, 3, 9)
    assert not found.has_blocks(4, 3, 10)
    assert not found.has_blocks(5, 3, 9)


def test_neighbouring_blocks_are_requested_together_whether_named_by_one_item_or_by_several() -> None:
    one = requested(items((4, 10), (4, 11), level=LEVEL_BLOCK))
    both = one.merged(requested(ranges((4, 12), (4, 15), level=LEVEL_BLOCK)))
    assert one.has_blocks(4, 10, 11)
    assert both.has_blocks(4, 10, 15)
    assert not both.has_blocks(4, 9, 15)
    assert list(both.block_ranges(4)) == [(10, 15)]


def test_a_range_of_objects_may_wrap() -> None:
    found = requested(ranges((65530,), (3,), level=LEVEL_OBJECT))
    assert all(found.has_object(key) for key in (65530, 65535, 0, 3))
    assert not any(found.has_object(key) for key in (65529, 4, 30000))


def test_norm_info_is_requested_alone_with_symbols_or_with_the_object() -> None:
    assert requested(items((3,), level=LEVEL_INFO)).has_info(3)
    beside = requested(items((3, 1, 2), level=LEVEL_SEGMENT | LEVEL_INFO))
    assert beside.has_info(3)
    assert symbols(beside, 3, 1) == [2]
    assert requested(items((3,), level=LEVEL_OBJECT)).has_info(3)
    assert not requested(items((3, 1, 2))).has_info(3)


def test_of_several_level_flags_the_lowest_level_counts() -> None:
    found = requested(items((3, 1, 2), level=LEVEL_SEGMENT | LEVEL_BLOCK | LEVEL_OBJECT))
    assert symbols(found, 3, 1) == [2]
    assert not found.blocks
    assert not found.objects


def test_an_item_with_another_fec_id_ends_its_request() -> None:
    request = Request(FORM_ITEMS, LEVEL_SEGMENT, (Item(5, 0, 0, 1), Item(129, 0, 0, 2), Item(5, 0, 0, 3)))
    assert symbols(requested(request, items((0, 0, 5))), 0, 0) == [1, 5]


@pytest.mark.parametrize(
    "request_",
    [
        ranges((0, 1, 9), (0, 1, 3)),
        ranges((0, 1, 9), (0, 2, 3)),
        Request(FORM_RANGES, LEVEL_SEGMENT, (Item(5, 0, 1, 1),)),
        Request(FORM_ITEMS, LEVEL_SEGMENT, ()),
        Request(FORM_ITEMS, 0, (Item(5, 0, 1, 1),)),
    ],
    ids=["backwards", "over-blocks", "without-end", "empty", "no-level"],
)
def test_an_inconsistent_request_requests_nothing(request_: Request) -> None:
    found = requested(request_)
    assert not any((found.symbols, found.blocks, found.objects, found.infos))


def test_merged_requests_are_the_union_of_both() -> None:
    one = requested(items((0, 0, 1)), items((1,), level=LEVEL_OBJECT))
    both = one.merged(requested(items((0, 0, 2)), items((2, 3), level=LEVEL_BLOCK)))
    assert symbols(both, 0, 0) == [1, 2]
    assert both.has_object(1)
    assert both.has_blocks(2, 3, 3)
    assert symbols(one, 0, 0) == [1], "neither is changed"


def test_requested_repairs_are_computed_once_for_all_receivers() -> None:
    nack = Nack(9, 0, 1, 7, 0, 0, (items((0, 0, 1)),))
    assert requested_repairs(nack.requests, 5) is requested_repairs(nack.requests, 5)


def test_a_number_of_erasures_names_no_symbol_and_suppresses_nothing() -> None:
    found = requested(Request(FORM_ERASURES, LEVEL_SEGMENT | LEVEL_INFO, (Item(5, 0, 1, 3),)))
    assert not found.symbols
    assert found.has_info(0)
