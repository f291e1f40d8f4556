"""16-bit sequence numbers are unwrapped without limit."""

import random

from hypothesis import given
from hypothesis import strategies as st

from experiments.inspection.sequence import SequenceTracker


@given(st.integers(0, 65_535), st.sets(st.integers(1, 3000)), st.integers(0, 1000))
def test_losses_are_counted_despite_local_reordering(first: int, lost: set[int], seed: int) -> None:
    numbers = [number for number in range(3002) if number not in lost]
    rng, view = random.Random(seed), SequenceTracker()
    for at in range(1, len(numbers) - 2):
        if rng.random() < 0.1:
            numbers[at], numbers[at + 1] = numbers[at + 1], numbers[at]
    for number in numbers:
        assert not view.add((first + number) & 0xFFFF)[1]
    assert (view.missing, view.duplicates) == (len(lost), 0)


def test_a_repeated_number_is_a_duplicate() -> None:
    view = SequenceTracker()
    assert [view.add(number) for number in (5, 6, 6, 5, 9, 7, 7)] == [
        (0, False),
        (0, False),
        (0, True),
        (0, True),
        (2, False),
        (0, False),
        (0, True),
    ]
    assert (view.missing, view.late, view.duplicates) == (1, 1, 3)


def test_a_jump_of_thousands_restarts_the_numbering_without_losses() -> None:
    view = SequenceTracker()
    for number in (5, 40_000, 40_001, 3):
        assert view.add(number) == (0, False)
    assert view.missing == 0
