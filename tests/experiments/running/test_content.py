"""Generated content is reproducible, has random access, and is never held in memory as a whole."""

import hashlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.running.content import Accounted, Extent, Generated, MemorySink, digest_of

SIZE = 200_000


@settings(deadline=None)
@given(st.integers(0, SIZE), st.integers(0, SIZE))
def test_any_part_equals_the_same_range_of_the_whole(start: int, end: int) -> None:
    start, end = sorted((start, end))
    source = Generated(SIZE, 1, "sender", 0)
    whole = source.read(0, SIZE)
    assert source.read(start, end - start) == whole[start:end]


def test_content_is_platform_independent() -> None:
    # Expected values: SHAKE-128 of the key and the block number, computed independently of the code under test.
    source = Generated(70_000, 5, "sender", 3)
    blocks = [hashlib.shake_128(source.key.to_bytes(8, "little") + n.to_bytes(8, "little")).digest(65_536) for n in (0, 1)]
    assert source.read(0, 70_000) == b"".join(blocks)[:70_000]
    assert digest_of(source) == hashlib.sha256(b"".join(blocks)[:70_000]).hexdigest()


def test_seed_sender_and_object_number_each_change_the_content() -> None:
    variants = [(1, "sender", 0), (2, "sender", 0), (1, "r1", 0), (1, "sender", 1)]
    assert len({Generated(64, seed, sender, number).read(0, 64) for seed, sender, number in variants}) == len(variants)


def test_an_extent_has_a_size_and_no_bytes() -> None:
    source = Extent(5)
    source.read(0, 5)
    assert source.size == 5


def test_a_memory_sink_discards_the_bytes_and_keeps_the_digest() -> None:
    sink = MemorySink(4)
    sink.write(2, b"cd")
    sink.write(0, memoryview(b"ab"))
    assert sink.read(1, 2) == b"bc"
    sink.commit(b"name")
    assert (sink.info, sink.sha256) == (b"name", hashlib.sha256(b"abcd").hexdigest())


def test_a_memory_sink_refuses_ranges_outside_the_object() -> None:
    with pytest.raises(OSError, match="outside"):
        MemorySink(4).write(3, b"xy")


def test_one_counting_sink_serves_all_receivers() -> None:
    sink = Accounted()
    sink.write(5, b"x")
    assert sink.read(5, 3) == bytes(3)
    sink.commit(b"")
    sink.abort()
