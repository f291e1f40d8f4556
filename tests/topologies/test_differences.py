"""Differences of single links, compared with a dictionary of counts."""

import tracemalloc
from collections import Counter
from random import Random

import pytest

from topologies.differences import Differences


@pytest.mark.parametrize("seed", range(20))
def test_differences_are_those_of_a_counter(seed: int) -> None:
    rng, differences, counts = Random(seed), Differences(), Counter[tuple[int, int]]()
    for _ in range(2000):
        identity, member = rng.randrange(1000), rng.randrange(4)
        if rng.random() < 0.1:
            count = min(rng.randrange(1, 40), 256 - identity % 256)
            differences.leave_out(identity, count, member)
            counts.subtract((each, member) for each in range(identity, identity + count))
        else:
            step = rng.choice((-1, 1))
            counts[identity, member] += step
            assert differences.change(identity, member, step) == counts[identity, member]
        for each in (identity, rng.randrange(1000)):
            found = {member: difference for member, difference in differences.of(each) if difference}
            assert found == {member: counts[each, member] for member in range(4) if counts[each, member]}
            assert differences.among(each, 1) is any((each, member) in counts for member in range(4))


def test_packets_that_one_link_carries_alone_take_few_bytes_each() -> None:
    differences, packets = Differences(), 100_000
    tracemalloc.start()
    for identity in range(packets):
        differences.change(identity, 7, 1)
    used, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert used < 3 * packets
