"""Bit masks of symbols as Python integers: bit n stands for symbol n."""

from collections.abc import Iterator

__all__ = ["bit_runs", "lowest", "without_lowest"]


def lowest(mask: int, count: int) -> int:
    """Return the `count` lowest set bits of a mask."""
    return mask ^ without_lowest(mask, count)


def without_lowest(mask: int, count: int) -> int:
    """Return the mask without its `count` lowest set bits."""
    for _ in range(count):
        mask &= mask - 1
    return mask


def bit_runs(mask: int) -> Iterator[tuple[int, int]]:
    """Yield the runs of set bits, lowest first, as inclusive ranges."""
    start = 0
    while mask >> start:
        rest = mask >> start
        start += (rest & -rest).bit_length() - 1
        tail = ~(mask >> start)
        end = start + (tail & -tail).bit_length() - 2
        yield start, end
        start = end + 1
