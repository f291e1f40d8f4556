"""A set of ranges is a set of numbers."""

from hypothesis import given
from hypothesis import strategies as st

from protocols.range_set import RangeSet


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 30), st.integers(0, 8))))
def test_ranges_hold_what_a_set_of_numbers_holds(steps: list[tuple[bool, int, int]]) -> None:
    ranges, like = RangeSet(), set[int]()
    for is_added, first, count in steps:
        if is_added:
            ranges.add(first, first + count)
            like.update(range(first, first + count + 1))
        elif first in like:
            ranges.remove(first)
            like.remove(first)
        held = [number for low, high in ranges for number in range(low, high + 1)]
        assert held == sorted(like)
        assert len(ranges) == sum(number - 1 not in like for number in like)
        assert not like or ranges.lowest == min(like)
        assert all((number in ranges) == (number in like) for number in range(-1, 41))
        absent = [number for low, high in ranges.gaps(5, 20) for number in range(low, high + 1)]
        assert absent == [number for number in range(5, 21) if number not in like]
        assert ranges.covers(5, 9) == like.issuperset(range(5, 10))


def test_a_copy_is_a_set_of_its_own() -> None:
    ranges = RangeSet()
    ranges.add(1, 3)
    other = ranges.copy()
    other.add(4, 5)
    ranges.clear()
    assert (list(ranges), list(other)) == ([], [(1, 5)])


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 4))), st.integers(-1, 40))
def test_what_is_before_a_number_is_removed_at_once(added: list[tuple[int, int]], number: int) -> None:
    ranges, like = RangeSet(), set[int]()
    for first, count in added:
        ranges.add(first, first + count)
        like.update(range(first, first + count + 1))
    ranges.remove_before(number)
    assert [each for low, high in ranges for each in range(low, high + 1)] == sorted(each for each in like if each >= number)
    assert not RangeSet().firsts
