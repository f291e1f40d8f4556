"""Requests for retransmission that wait at a publisher: requests for the same segments are merged while they wait."""

from collections import deque
from math import inf

from protocols.range_set import RangeSet

__all__ = ["Answers"]

MOST_RANGES = 4096
"""Ranges that wait at the same time; further requests are dropped, and repeated by who sent them."""


class Answers:
    """Numbers of segments, each due `holdback` seconds after the first request for it."""

    __slots__ = ("_due", "_holdback", "_waiting")

    def __init__(self, holdback: float) -> None:
        self._holdback = holdback
        self._due: deque[tuple[float, int, int]] = deque()
        # The same numbers as a set.
        self._waiting = RangeSet()

    def __len__(self) -> int:
        return len(self._due)

    @property
    def due_at(self) -> float:
        """When the next number is due, in seconds; inf for none."""
        return self._due[0][0] if self._due else inf

    @property
    def next(self) -> int:
        """The next number; there must be one."""
        return self._due[0][1]

    def request(self, low: int, high: int, now: float) -> bool:
        """Add the numbers that do not wait already; return whether there were any."""
        added = [(now + self._holdback, first, last) for first, last in self._waiting.gaps(low, high)]
        if len(self._due) + len(added) > MOST_RANGES:
            return False
        for _, first, last in added:
            self._waiting.add(first, last)
        self._due.extend(added)
        return bool(added)

    def take(self) -> int:
        """Remove the next number and return it; there must be one."""
        due, first, last = self._due.popleft()
        if first < last:
            self._due.appendleft((due, first + 1, last))
        self._waiting.remove(first)
        return first
