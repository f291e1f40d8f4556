"""A fair queue over the source addresses of packets, for a host that receives more than it can process."""

from collections import deque
from collections.abc import Callable
from heapq import heappop, heappush
from typing import Generic, TypeVar

__all__ = ["FairQueue"]

T = TypeVar("T")

ENTRY = 512
"""Bytes that an entry counts for in addition to its packets."""


class FairQueue(Generic[T]):
    """Entries by source. `serve` takes one of the source whose entries took the least time so far: start-time fair queueing.

    Sources may fill `limit` bytes together; when these are full, each has room up to an equal part of as many bytes again. The
    caller drops what arrives of a source without room (`has_room`). A source that needs less than its share of the time waits
    for at most one entry of each other source, and loses nothing (Goyal, Vin and Cheng 1996).
    """

    __slots__ = ("_limit", "_now", "_octets", "_order", "_queues", "_taken", "_total", "_turns")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._queues: dict[str, deque[tuple[int, T]]] = {}
        """Entries with their bytes; no source without entries."""
        self._octets: dict[str, int] = {}
        self._total = 0
        self._taken: dict[str, float] = {}
        self._order: list[tuple[float, int, str]] = []
        """A heap of the sources that have entries: time taken, a number to break ties, source."""
        self._turns = 0
        self._now = 0.0
        """The time taken of the source that was served last; new sources begin there."""

    def __bool__(self) -> bool:
        return bool(self._queues)

    def has_room(self, source: str) -> bool:
        """Return whether there is room left, for all sources or in this source's part."""
        return self._total < self._limit or self._octets.get(source, 0) * (len(self._queues) + 1) < self._limit

    def push(self, source: str, octets: int, entry: T, packets: int = 1) -> None:
        """Add an entry of so many bytes and packets."""
        queue = self._queues.get(source)
        if queue is None:
            queue = self._queues[source] = deque()
            self._octets[source] = 0
            self._taken[source] = self._now
            self._wait(source)
        octets += ENTRY * packets
        self._octets[source] += octets
        self._total += octets
        queue.append((octets, entry))

    def serve(self, process: Callable[[T], T | None], clock: Callable[[], float]) -> None:
        """Process an entry of the source that took the least time, and charge it the time by `clock`; there must be one.

        `process` returns what is left of the entry for the source's next turn; None for nothing.
        """
        taken, _, source = heappop(self._order)
        self._now = taken
        queue = self._queues[source]
        octets, entry = queue.popleft()
        rest: T | None = None
        begin = clock()
        try:
            rest = process(entry)
        finally:
            self._taken[source] += clock() - begin
            if rest is None:
                self._octets[source] -= octets
                self._total -= octets
            else:
                queue.appendleft((octets, rest))
            if queue:
                self._wait(source)
            else:
                del self._queues[source], self._octets[source], self._taken[source]

    def clear(self) -> None:
        """Drop all entries."""
        self.__init__(self._limit)  # type: ignore[misc]

    def _wait(self, source: str) -> None:
        self._turns += 1
        heappush(self._order, (self._taken[source], self._turns, source))
