"""Occurrences of identities are counted like in a dictionary of single ones, in a fraction of its memory."""

import tracemalloc
from collections import Counter
from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from topologies.repeats import Repeats, count_occurrence

IDENTITIES = st.sampled_from([0, 1, 255, 256, 257, 1 << 63, (1 << 64) - 1])


@given(st.lists(st.tuples(IDENTITIES, st.integers(1, 200)), max_size=20))
def test_occurrences_are_those_of_a_plain_count(came: list[tuple[int, int]]) -> None:
    repeats, plain = Repeats(), Counter[int]()
    for identity, times in came:
        for _ in range(times):
            plain[identity] += 1
            assert repeats.count(identity) == plain[identity] + 1
    for identity in (0, 1, 255, 256, 257, 1 << 63, (1 << 64) - 1):
        assert repeats.occurrences(identity) == plain[identity] + 1


def test_each_identity_is_counted() -> None:
    seen, repeats = dict[int, int](), Repeats()
    assert [count_occurrence(seen, repeats, identity) for identity in (5, 5, 300, 5, 300)] == [1, 2, 1, 3, 2]


def memory(count: Callable[[int], object]) -> int:
    """Return the bytes taken by three more occurrences of four segments of each of 10,000 objects."""
    tracemalloc.start()
    for _ in range(3):
        for identity in range(0, 10_000 << 32, 1 << 32):
            for symbol in range(4):
                count(identity + symbol)
    used, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return used


def test_identities_that_are_used_again_take_little_memory() -> None:
    plain = Counter[int]()
    assert memory(Repeats().count) < memory(lambda identity: plain.update((identity,))) / 2
