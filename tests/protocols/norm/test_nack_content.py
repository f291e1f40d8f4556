"""What a receiver asks for, and when the requests of others will do."""

from collections.abc import Mapping
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from protocols.machine import Content
from protocols.norm.messages import (
    FORM_ITEMS,
    FORM_RANGES,
    LEVEL_BLOCK,
    LEVEL_INFO,
    LEVEL_OBJECT,
    LEVEL_SEGMENT,
    Fti,
    Nack,
    Request,
)
from protocols.norm.nack_content import MissingRange, contents_for, is_covered, missing_before
from protocols.norm.position import Point
from protocols.norm.repair_requests import RequestedRepairs, requested_repairs
from protocols.norm.rx_object import RxObject
from protocols.norm.small_dict import SmallDict
from protocols.norm.tx_object import TxObject
from protocols.norm.wire.codec import size_of
from tests.protocols.norm.scenes import quick, symbols
from tests.support.content import Extent, MemorySink

END: Point = (100, 0, 0)


def item(object_id: int = 0, blocks: int = 3, *, block: int = 30, parity: int = 8, wants_info: bool = False) -> RxObject:
    size = 100 * block * blocks
    return RxObject(object_id, Fti(5, size, 100, block, parity), MemorySink(size), wants_info)


def lose(item: RxObject, block: int, *lost: int) -> RxObject:
    for symbol in lost:
        item.skip(block, symbol, block, symbol + 1)
    return item


def pending(objects: Mapping[int, RxObject | None]) -> SmallDict[RxObject | None]:
    found: SmallDict[RxObject | None] = SmallDict()
    for key, item in objects.items():
        found[key] = item
    return found


def asked(objects: Mapping[int, RxObject | None], place: Point = END) -> RequestedRepairs:
    nacks = contents_for(missing_before(pending(objects), place, 5), 5, 10_000)
    return requested_repairs(tuple(request for requests in nacks for request in requests), 5)


def covered(objects: Mapping[int, RxObject | None], place: Point, demand: RequestedRepairs) -> bool:
    return is_covered(pending(objects), place, demand)


def by_name(*rows: tuple[int, int, int], fec: int = 5) -> list[MissingRange]:
    """The needs of objects without parity that lack these (object, block, mask of symbols)."""
    objects: dict[int, RxObject | None] = {}
    for key, block, mask in rows:
        found = objects.setdefault(key, item(key, block + 1, parity=0))
        assert found is not None
        found.lose(block, mask)
    return missing_before(pending(objects), END, fec)


def requests(needs: list[MissingRange], segment: int = 10_000) -> list[tuple[Request, ...]]:
    return contents_for(needs, 5, segment)


# -- what is asked for -------------------------------------------------------------------------------------------------


def test_five_lost_symbols_ask_for_the_first_five_of_parity() -> None:
    # NRL's example: block 30, e = 5 -> RANGES SEGMENT 30..34.
    ((request,),) = contents_for(missing_before(pending({0: lose(item(), 0, 3, 4, 9, 20, 29)}), END, 5), 5, 1400)
    assert (request.form, request.level) == (FORM_RANGES, LEVEL_SEGMENT)
    assert [(each.block, each.symbol) for each in request.items] == [(0, 30), (0, 34)]


def test_parity_that_came_already_is_not_asked_for() -> None:
    found = lose(item(), 0, 1, 2, 3)
    found.fill_parity(0, 1, None, 0)
    assert symbols(asked({0: found}), 0, 0) == [30, 32]


def test_beyond_the_parity_the_first_are_left_to_it_and_the_others_named() -> None:
    found = lose(item(parity=2), 0, 3, 7, 11, 12)
    assert symbols(asked({0: found}), 0, 0) == [11, 12, 30, 31]


def test_without_parity_every_symbol_is_named() -> None:
    assert symbols(asked({0: lose(item(parity=0), 1, 0, 29)}), 0, 1) == [0, 29]


def test_blocks_of_which_nothing_came_are_asked_for_whole() -> None:
    found = item(blocks=5)
    found.skip(1, 0, 4, 0)
    assert asked({0: found}).blocks == ((0, 1, 3),)


def test_objects_of_which_nothing_is_known_are_asked_for_whole() -> None:
    demand = asked({3: None, 4: None, 5: None, 6: item(6), 9: None})
    assert demand.objects == (
        (3, 5),
        (9, 9),
    )


def test_lost_information_is_asked_for() -> None:
    found = lose(item(wants_info=True), 0, 1)
    demand = asked({0: found})
    assert demand.infos == ((0, 0),)
    assert symbols(demand, 0, 0) == [30]


def test_nothing_is_asked_for_from_the_place_on() -> None:
    objects: dict[int, RxObject | None] = {0: lose(lose(lose(item(), 0, 1), 1, 1), 2, 1), 1: None}
    assert set(asked(objects, (0, 2, 0)).symbols) == {(0, 0), (0, 1)}
    assert not asked(objects, (0, 2, 0)).objects
    assert not asked(objects, (0, 0, 0)).symbols
    assert not asked({0: None}, (0, 0, 0)).objects


def test_of_a_block_under_way_only_what_parity_cannot_bring_is_asked_for() -> None:
    place = (0, 1, 10)
    assert not asked({0: lose(item(), 1, 1, 20)}, place).symbols
    assert symbols(asked({0: lose(item(parity=0), 1, 1, 20)}, place), 0, 1) == [1]


def test_needs_are_asked_for_oldest_first_across_the_end_of_the_numbers() -> None:
    objects: dict[int, RxObject | None] = {0: None, 65535: None, 65534: None, 65533: lose(item(65533), 0, 1)}
    needs = missing_before(pending(objects), (1, 0, 0), 5)
    assert [(need.first.object_id, need.last.object_id) for need in needs] == [(65533, 65533), (65534, 0)]
    assert asked(objects, (1, 0, 0)).objects == ((65534, 0),)


# -- as requests -------------------------------------------------------------------------------------------------------


def test_runs_of_three_become_ranges_and_shorter_ones_items() -> None:
    mask = 0b111_0_11_0_1
    (((one), (two)),) = requests(by_name((0, 0, mask)))
    assert (one.form, [each.symbol for each in one.items]) == (FORM_ITEMS, [0, 2, 3])
    assert (two.form, [each.symbol for each in two.items]) == (FORM_RANGES, [5, 7])


def test_levels_do_not_share_a_request() -> None:
    found = item(1, wants_info=True)
    found.skip(2, 0, 3, 0)
    ((one, two, three),) = requests(missing_before(pending({0: None, 1: found}), END, 5))
    assert [one.level, two.level, three.level] == [LEVEL_OBJECT, LEVEL_INFO, LEVEL_BLOCK]


def test_long_lists_are_cut_into_at_most_four_nacks_of_a_segment_each() -> None:
    contents = requests(by_name(*((0, block, 1) for block in reversed(range(200)))), segment=100)
    assert len(contents) == 4
    assert all(size_of(Nack(9, 0, 1, 7, 0, 0, content)) <= 24 + 100 for content in contents)
    blocks = [each.block for content in contents for request in content for each in request.items]
    assert blocks == list(range(48)), "twelve items of eight bytes and a head of four in each, the oldest first"


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(1, 2**20)), max_size=12), st.integers(40, 400), st.sampled_from([5, 129])
)
def test_every_nack_fits_its_segment_and_nothing_is_lost_but_the_tail(
    rows: list[tuple[int, int]], segment: int, fec: int
) -> None:
    contents = contents_for(by_name(*((i, block, mask) for i, (block, mask) in enumerate(rows)), fec=fec), fec, segment)
    nacks = [Nack(9, 0, 1, 7, 0, 0, content) for content in contents]
    assert all(size_of(nack) <= 24 + segment for nack in nacks)
    if len(nacks) < 4:
        whole = RequestedRepairs()
        for nack in nacks:
            whole = whole.merged(requested_repairs(nack.requests, fec))
        assert whole.symbols == {(i, block): mask for i, (block, mask) in enumerate(rows)}


# -- the requests of others --------------------------------------------------------------------------------------------


def test_as_many_parity_symbols_will_do_whichever_symbols_are_missing() -> None:
    mine, theirs = {0: lose(item(), 0, 1, 2)}, {0: lose(item(), 0, 20, 21, 22)}
    assert covered(mine, END, asked(theirs))
    assert not covered(theirs, END, asked(mine))


def test_a_whole_object_or_block_covers_its_symbols() -> None:
    mine: dict[int, RxObject | None] = {0: lose(item(wants_info=True), 0, 1, 2)}
    other = item(wants_info=True)
    other.skip(0, 0, 3, 0)
    assert covered(mine, END, asked({0: None}))
    assert covered(mine, END, asked({0: other}))


def test_information_has_to_be_asked_for_by_name_or_with_its_object() -> None:
    mine: dict[int, RxObject | None] = {0: item(wants_info=True)}
    assert not covered(mine, END, asked({0: lose(item(), 0, 1)}))
    assert covered(mine, END, asked({0: item(wants_info=True)}))


def test_what_lies_behind_the_place_need_not_be_covered() -> None:
    mine = {0: lose(lose(item(), 0, 1), 2, 1)}
    theirs = asked({0: lose(item(), 0, 1)})
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
    """An object of three blocks of six, every symbol of which was sent."""
    source = TxObject(0, Content(Extent(1800)), quick(block=6, parity=parity), 1)
    while source.unsent:
        source.step()
    return source


def serve(source: TxObject, demand: RequestedRepairs, *heard: tuple[dict[int, RxObject | None], int]) -> None:
    """The sender serves a demand: each (objects, mask) gets the n-th repair unless bit n of the mask is set."""
    source.want(demand)
    source.activate()
    number = 0
    while source.repairs or source.repair_blocks:
        step = source.repair_step()
        assert step is not None
        for objects, mask in heard:
            found: Any = objects[0]
            if mask >> number & 1:
                continue
            if step[1] < 6:
                found.fill(*step, None)
            else:
                found.fill_parity(step[0], step[1] - 6, None, 0)
        number += 1


@settings(max_examples=300, deadline=None, derandomize=True)
@given(mine=MASKS, parity=st.integers(0, 4), lost=st.lists(st.integers(0, 2**20 - 1), max_size=3))
def test_a_request_is_answered_whole_however_many_answers_were_lost_before(
    mine: list[int], parity: int, lost: list[int]
) -> None:
    source, objects = sent_source(parity), receiver(mine, parity)
    for mask in (*lost, 0):
        serve(source, asked(objects), (objects, mask))
    assert not missing_before(pending(objects), END, 5)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(mine=MASKS, theirs=MASKS, parity=st.integers(0, 4), lost=st.lists(st.integers(0, 2**20 - 1), max_size=2))
def test_who_is_silent_because_others_asked_gets_everything(
    mine: list[int], theirs: list[int], parity: int, lost: list[int]
) -> None:
    # Whoever lost repairs can't know which parity was sent already, and may trust in vain; the next round brings it.
    source, objects, others = sent_source(parity), receiver(mine, parity), receiver(theirs, parity)
    for their_mask in lost:
        serve(source, asked(others), (objects, 0), (others, their_mask))
    demand = asked(others)
    silent = covered(objects, END, demand)
    serve(source, demand, (objects, 0))
    assert not silent or not missing_before(pending(objects), END, 5)
