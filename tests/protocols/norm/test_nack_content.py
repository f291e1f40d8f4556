"""Content of a receiver's repair requests, and coverage by the requests of other receivers."""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.contract.content import CheckedSink
from experiments.running.content import Extent
from protocols.machine import Content
from protocols.norm.maps import SmallDict
from protocols.norm.messages import Fti, Nack
from protocols.norm.nack_process import MissingRange, contents_for, is_covered, missing_before
from protocols.norm.position import Point
from protocols.norm.repair_requests import RequestedRepairs, requested_repairs
from protocols.norm.requests import (
    FORM_ITEMS,
    FORM_RANGES,
    LEVEL_BLOCK,
    LEVEL_INFO,
    LEVEL_OBJECT,
    LEVEL_SEGMENT,
    Request,
)
from protocols.norm.rx_object import RxObject
from protocols.norm.tx_object import TxObject
from protocols.norm.wire.sizes import size_of
from tests.protocols.norm.scenes import quick, symbols

END: Point = (100, 0, 0)
PLENTY = 10**9


def item(
    object_id: int = 0, blocks: int = 3, *, block: int = 30, parity: int = 8, wants_info: bool = False, fec: int = 5
) -> RxObject:
    size = 100 * block * blocks
    return RxObject(object_id, Fti(fec, size, 100, block, parity), CheckedSink(size), wants_info)


def lose(item: RxObject, block: int, *lost: int) -> RxObject:
    for symbol in lost:
        item.skip(block, symbol, block, symbol + 1)
    return item


def pending(objects: Mapping[int, RxObject | None]) -> SmallDict[RxObject | None]:
    found: SmallDict[RxObject | None] = SmallDict()
    for key, item in objects.items():
        found[key] = item
    return found


def requested_by(objects: Mapping[int, RxObject | None], place: Point = END) -> RequestedRepairs:
    nacks = contents_for(missing_before(pending(objects), place, 5), 10_000)
    return requested_repairs(tuple(request for requests in nacks for request in requests), 5)


def covered(objects: Mapping[int, RxObject | None], place: Point, requested: RequestedRepairs) -> bool:
    return is_covered(pending(objects), place, requested)


def by_name(*rows: tuple[int, int, int], fec: int = 5) -> list[MissingRange]:
    """Return the missing ranges of objects without parity that lack (object, block, bitmap of symbols)."""
    objects: dict[int, RxObject | None] = {}
    for key, block, mask in rows:
        found = objects.setdefault(key, item(key, block + 1, parity=0, fec=fec))
        assert found is not None
        found.lose(block, mask)
    return missing_before(pending(objects), END, fec)


def requests(missing: list[MissingRange], segment: int = 10_000) -> list[tuple[Request, ...]]:
    return contents_for(missing, segment)


# -- requested repairs -------------------------------------------------------------------------------------------------


def test_five_lost_symbols_request_the_first_five_parity_symbols() -> None:
    # NRL's example: block 30, e = 5 -> RANGES SEGMENT 30..34.
    ((request,),) = contents_for(missing_before(pending({0: lose(item(), 0, 3, 4, 9, 20, 29)}), END, 5), 1400)
    assert (request.form, request.level) == (FORM_RANGES, LEVEL_SEGMENT)
    assert [(each.block, each.symbol) for each in request.items] == [(0, 30), (0, 34)]


def test_parity_already_received_is_not_requested() -> None:
    found = lose(item(), 0, 1, 2, 3)
    found.fill_parity(0, 1, None, PLENTY)
    assert symbols(requested_by({0: found}), 0, 0) == [30, 32]


def test_losses_beyond_the_parity_are_requested_by_name_except_the_first() -> None:
    found = lose(item(parity=2), 0, 3, 7, 11, 12)
    assert symbols(requested_by({0: found}), 0, 0) == [11, 12, 30, 31]


def test_without_parity_every_symbol_is_requested_by_name() -> None:
    assert symbols(requested_by({0: lose(item(parity=0), 1, 0, 29)}), 0, 1) == [0, 29]


def test_blocks_received_not_at_all_are_requested_whole() -> None:
    found = item(blocks=5)
    found.skip(1, 0, 4, 0)
    assert requested_by({0: found}).blocks == ((0, 1, 3),)


def test_unknown_objects_are_requested_whole() -> None:
    requested = requested_by({3: None, 4: None, 5: None, 6: item(6), 9: None})
    assert requested.objects == (
        (3, 5),
        (9, 9),
    )


def test_lost_norm_info_is_requested() -> None:
    found = lose(item(wants_info=True), 0, 1)
    requested = requested_by({0: found})
    assert requested.infos == ((0, 0),)
    assert symbols(requested, 0, 0) == [30]


def test_nothing_is_requested_from_the_position_on() -> None:
    objects: dict[int, RxObject | None] = {0: lose(lose(lose(item(), 0, 1), 1, 1), 2, 1), 1: None}
    assert set(dict(requested_by(objects, (0, 2, 0)).units())) == {(0, 0), (0, 1)}
    assert not requested_by(objects, (0, 2, 0)).objects
    assert not requested_by(objects, (0, 0, 0)).symbols
    assert not requested_by({0: None}, (0, 0, 0)).objects


@pytest.mark.parametrize("parity", [0, 16])
def test_of_a_block_in_progress_only_losses_before_the_boundary_are_requested_by_name(parity: int) -> None:
    found = {0: lose(item(parity=parity), 1, 1, 20)}
    assert not requested_by(found, (0, 1, 0)).symbols
    assert symbols(requested_by(found, (0, 1, 10)), 0, 1) == [1]


def test_requests_are_ordered_oldest_first_across_the_wrap_of_object_ids() -> None:
    objects: dict[int, RxObject | None] = {0: None, 65535: None, 65534: None, 65533: lose(item(65533), 0, 1)}
    missing = missing_before(pending(objects), (1, 0, 0), 5)
    assert [(need.first.object_id, need.last.object_id) for need in missing] == [(65533, 65533), (65534, 0)]
    assert requested_by(objects, (1, 0, 0)).objects == ((65534, 0),)


# -- encoding as requests ----------------------------------------------------------------------------------------------


def test_three_consecutive_items_become_a_range() -> None:
    mask = 0b111_0_11_0_1
    (((one), (two)),) = requests(by_name((0, 0, mask)))
    assert (one.form, [each.symbol for each in one.items]) == (FORM_ITEMS, [0, 2, 3])
    assert (two.form, [each.symbol for each in two.items]) == (FORM_RANGES, [5, 7])


def test_levels_have_separate_requests() -> None:
    found = item(1, wants_info=True)
    found.skip(2, 0, 3, 0)
    ((one, two, three),) = requests(missing_before(pending({0: None, 1: found}), END, 5))
    assert [one.level, two.level, three.level] == [LEVEL_OBJECT, LEVEL_INFO, LEVEL_BLOCK]


def test_long_requests_are_split_into_at_most_four_nacks_of_a_segment_each() -> None:
    contents = requests(by_name(*((0, block, 1) for block in reversed(range(200)))), segment=100)
    assert len(contents) == 4
    assert all(size_of(Nack(9, 0, 1, 7, 0, 0, content)) <= 24 + 100 for content in contents)
    blocks = [each.block for content in contents for request in content for each in request.items]
    assert blocks == list(range(48)), "twelve items of eight bytes and a head of four in each, the oldest first"


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(1, 2**20)), max_size=12), st.integers(40, 400), st.sampled_from([5, 129])
)
def test_every_nack_fits_its_segment_and_only_the_tail_is_cut(rows: list[tuple[int, int]], segment: int, fec: int) -> None:
    contents = contents_for(by_name(*((i, block, mask) for i, (block, mask) in enumerate(rows)), fec=fec), segment)
    nacks = [Nack(9, 0, 1, 7, 0, 0, content) for content in contents]
    assert all(size_of(nack) <= 24 + segment for nack in nacks)
    if len(nacks) < 4:
        whole = RequestedRepairs()
        for nack in nacks:
            whole = whole.merged(requested_repairs(nack.requests, fec))
        assert dict(whole.units()) == {(i, block): mask for i, (block, mask) in enumerate(rows)}


# -- requests of other receivers ---------------------------------------------------------------------------------------


def test_an_equal_count_of_parity_covers_any_missing_symbols() -> None:
    mine, theirs = {0: lose(item(), 0, 1, 2)}, {0: lose(item(), 0, 20, 21, 22)}
    assert covered(mine, END, requested_by(theirs))
    assert not covered(theirs, END, requested_by(mine))


def test_a_request_for_an_object_or_block_covers_its_symbols() -> None:
    mine: dict[int, RxObject | None] = {0: lose(item(wants_info=True), 0, 1, 2)}
    other = item(wants_info=True)
    other.skip(0, 0, 3, 0)
    assert covered(mine, END, requested_by({0: None}))
    assert covered(mine, END, requested_by({0: other}))


def test_norm_info_is_covered_by_its_own_request_or_that_of_its_object() -> None:
    mine: dict[int, RxObject | None] = {0: item(wants_info=True)}
    assert not covered(mine, END, requested_by({0: lose(item(), 0, 1)}))
    assert covered(mine, END, requested_by({0: item(wants_info=True)}))


def test_losses_after_the_position_need_no_coverage() -> None:
    mine = {0: lose(lose(item(), 0, 1), 2, 1)}
    theirs = requested_by({0: lose(item(), 0, 1)})
    assert covered(mine, (0, 2, 0), theirs)
    assert not covered(mine, END, theirs)


MASKS = st.lists(st.integers(0, 2**6 - 1), min_size=3, max_size=3)


def receiver(masks: list[int], parity: int) -> dict[int, RxObject | None]:
    found = item(blocks=3, block=6, parity=parity)
    for block, mask in enumerate(masks):
        if mask == 2**6 - 1:
            found.skip(block, 0, block + 1, 0)
        else:
            lose(found, block, *(symbol for symbol in range(6) if mask >> symbol & 1))
    return {0: found}


def sent_source(parity: int) -> TxObject:
    """Return an object of three blocks of six symbols, all of them sent."""
    source = TxObject(0, Content(Extent(1800)), quick(block=6, parity=parity), 1)
    while source.unsent:
        source.step()
    return source


def serve(source: TxObject, requested: RequestedRepairs, *received: tuple[dict[int, RxObject | None], int]) -> None:
    """Serve a request: each (objects, bitmap) receives the n-th repair unless bit n of the bitmap is set."""
    source.want(requested)
    source.activate()
    number = 0
    while source.repairs or source.repair_blocks:
        step = source.repair_step()
        assert step is not None
        for objects, mask in received:
            found: Any = objects[0]
            if mask >> number & 1:
                continue
            if step[1] < 6:
                found.fill(*step, None)
            else:
                found.fill_parity(step[0], step[1] - 6, None, PLENTY)
        number += 1


@settings(max_examples=300, deadline=None, derandomize=True)
@given(mine=MASKS, parity=st.integers(0, 4), lost=st.lists(st.integers(0, 2**20 - 1), max_size=3))
def test_a_request_is_repaired_completely_despite_earlier_lost_repairs(mine: list[int], parity: int, lost: list[int]) -> None:
    source, objects = sent_source(parity), receiver(mine, parity)
    for mask in (*lost, 0):
        serve(source, requested_by(objects), (objects, mask))
    assert not missing_before(pending(objects), END, 5)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(mine=MASKS, theirs=MASKS, parity=st.integers(0, 4), lost=st.lists(st.integers(0, 2**20 - 1), max_size=2))
def test_a_suppressed_receiver_gets_everything(mine: list[int], theirs: list[int], parity: int, lost: list[int]) -> None:
    # A receiver that lost repairs cannot know which parity was sent, and may be suppressed wrongly; the next round repairs it.
    source, objects, others = sent_source(parity), receiver(mine, parity), receiver(theirs, parity)
    for their_mask in lost:
        serve(source, requested_by(others), (objects, 0), (others, their_mask))
    requested = requested_by(others)
    silent = covered(objects, END, requested)
    serve(source, requested, (objects, 0))
    assert not silent or not missing_before(pending(objects), END, 5)
