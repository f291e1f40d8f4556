"""Partition of an object into blocks (RFC 5052 9.1)."""

from itertools import accumulate
from math import ceil

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocols.norm.messages import Data
from protocols.norm.partition import Partition
from protocols.norm.wire.codec import NormCodec
from tests.support.captures import udp_payloads


def lengths(partition: Partition) -> list[int]:
    return [partition.length(block) for block in range(partition.blocks)]


@pytest.mark.parametrize(
    ("size", "segment", "block", "expected"),
    [
        (118, 1, 64, [59, 59]),
        (101, 1, 30, [26, 25, 25, 25]),
        (30_001, 300, 30, [26, 25, 25, 25]),
        (20_000, 1400, 64, [15]),
        (1, 1400, 64, [1]),
        (0, 1400, 64, []),
    ],
)
def test_block_lengths_equal_those_observed_of_nrl_norm(size: int, segment: int, block: int, expected: list[int]) -> None:
    assert lengths(Partition(size, segment, block)) == expected


@settings(deadline=None, derandomize=True)
@given(size=st.integers(0, 100_000), segment=st.integers(1, 2000), block=st.integers(1, 255))
def test_the_partition_is_that_of_the_rfc(size: int, segment: int, block: int) -> None:
    partition = Partition(size, segment, block)
    assert partition.segments == ceil(size / segment)
    assert partition.blocks == ceil(partition.segments / block)
    cut = lengths(partition)
    assert sum(cut) == partition.segments
    assert cut == sorted(cut, reverse=True), "the larger blocks come first"
    assert not cut or (cut[0] <= block and cut[0] - cut[-1] <= 1)


@settings(deadline=None, derandomize=True)
@given(size=st.integers(1, 20_000), segment=st.integers(20, 500), block=st.integers(1, 255))
def test_segments_are_numbered_and_sized_without_gaps(size: int, segment: int, block: int) -> None:
    partition = Partition(size, segment, block)
    firsts = [partition.first(number) for number in range(partition.blocks)]
    assert firsts == [0, *accumulate(lengths(partition))][:-1]
    payloads = [partition.payload(index) for index in range(partition.segments)]
    assert sum(payloads) == size
    assert set(payloads[:-1]) <= {segment}
    for number, first in enumerate(firsts):
        assert partition.vector(number) == max(payloads[first : first + partition.length(number)])


def test_block_lengths_equal_those_recorded() -> None:
    codec = NormCodec()
    messages = [codec.decode(data) for data in udp_payloads("fec129_loss")]
    seen = {(m.block, m.block_length) for m in messages if isinstance(m, Data)}
    partition = next(m.fti for m in messages if isinstance(m, Data) and m.fti).partition
    assert seen == set(enumerate(lengths(partition)))
