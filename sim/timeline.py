"""Sorts what watchers report: by time, then by node, then in the order of the reports."""

from bisect import bisect_left
from collections.abc import Callable
from math import inf
from operator import itemgetter
from typing import Generic, TypeVar

__all__ = ["Timeline"]

T = TypeVar("T")
_BATCH = 20_000
_TIME, _ORDER = itemgetter(0), itemgetter(0, 1, 2)


class Timeline(Generic[T]):
    """Takes items with a time that may lie in the future, and passes them to `write(time, item)` in order of (time, place).

    Memory is bounded by the number of packets in flight: an item is passed on once nothing earlier can be added.
    """

    def __init__(self, write: Callable[[float, T], None]) -> None:
        self._write = write
        self._items: list[tuple[float, int, int, T]] = []
        self._serial = 0
        self._limit = _BATCH

    def add(self, now: float, when: float, place: int, item: T) -> None:
        """Add an item for time `when`, reported at `now` (seconds); `now` never decreases and is not after `when`."""
        self._serial += 1
        self._items.append((when, place, self._serial, item))
        if len(self._items) >= self._limit:
            self._flush(now)
            self._limit = len(self._items) + _BATCH

    def _flush(self, before: float) -> None:
        items = self._items
        items.sort(key=_ORDER)
        done = bisect_left(items, before, key=_TIME)
        for when, _, _, item in items[:done]:
            self._write(when, item)
        del items[:done]

    def end(self, now: float) -> None:
        """Pass on the rest, without items after `now`."""
        self._items = [entry for entry in self._items if entry[0] <= now]
        self._flush(inf)
