"""Sets of integers kept as ranges: their cost is that of the ranges, however many numbers they hold."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import Final

__all__ = ["RangeSet"]

_EMPTY: Final[list[int]] = []
"""The lists of every empty set, to which nothing is added: a sender has several such sets for each object."""


class RangeSet:
    """A set of integers as sorted, disjoint, inclusive ranges; neighbouring ranges are one.

    `firsts` holds the first number of each range, and is empty if the set is.
    """

    __slots__ = ("_lasts", "firsts")

    def __init__(self, firsts: list[int] | None = None, lasts: list[int] | None = None) -> None:
        self.firsts = firsts or _EMPTY
        self._lasts = lasts or _EMPTY

    def copy(self) -> "RangeSet":
        """Return a set of its own with the same numbers."""
        return RangeSet(self.firsts[:], self._lasts[:])

    def add(self, first: int, last: int) -> None:
        """Add all numbers from `first` to `last`."""
        firsts, lasts = self.firsts, self._lasts
        if not firsts:
            self.firsts, self._lasts = [first], [last]
            return
        low, high = bisect_left(lasts, first - 1), bisect_right(firsts, last + 1)
        if low < high:
            first, last = min(first, firsts[low]), max(last, lasts[high - 1])
        firsts[low:high] = [first]
        lasts[low:high] = [last]

    def remove(self, number: int) -> None:
        """Remove a number of the set."""
        firsts, lasts = self.firsts, self._lasts
        index = bisect_left(lasts, number)
        first, last = firsts[index], lasts[index]
        rest = [span for span in ((first, number - 1), (number + 1, last)) if span[0] <= span[1]]
        firsts[index : index + 1] = [span[0] for span in rest]
        lasts[index : index + 1] = [span[1] for span in rest]

    def remove_before(self, number: int) -> None:
        """Remove all numbers before this one."""
        index = bisect_left(self._lasts, number)
        if index:
            del self.firsts[:index], self._lasts[:index]
        if self.firsts and self.firsts[0] < number:
            self.firsts[0] = number

    def clear(self) -> None:
        """Remove all numbers."""
        self.firsts = self._lasts = _EMPTY

    def covers(self, first: int, last: int) -> bool:
        """Return whether all numbers from `first` to `last` are in the set."""
        index = bisect_right(self.firsts, first) - 1
        return index >= 0 and last <= self._lasts[index]

    def gaps(self, first: int, last: int) -> Iterator[tuple[int, int]]:
        """Yield the ranges between `first` and `last` that are not in the set, lowest first."""
        firsts, lasts = self.firsts, self._lasts
        for index in range(bisect_left(lasts, first), bisect_right(firsts, last)):
            if first < firsts[index]:
                yield first, firsts[index] - 1
            first = lasts[index] + 1
        if first <= last:
            yield first, last

    @property
    def lowest(self) -> int:
        """The lowest number; the set must not be empty."""
        return self.firsts[0]

    def __contains__(self, number: int) -> bool:
        index = bisect_right(self.firsts, number) - 1
        return index >= 0 and number <= self._lasts[index]

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return zip(self.firsts, self._lasts, strict=True)

    def __len__(self) -> int:
        """Return the number of ranges."""
        return len(self.firsts)
