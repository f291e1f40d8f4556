"""The retransmission cache of a publisher: first in, first out, limited in bytes and in age."""

from collections import deque

from protocols.distributor.messages import Segment

__all__ = ["RetransmissionCache"]


class RetransmissionCache:
    """Segments by consecutive numbers, at most `limit` bytes of datagrams, none older than `age` seconds."""

    __slots__ = ("_age", "_entries", "_limit", "first", "octets")

    def __init__(self, limit: int, age: float) -> None:
        self._limit = limit
        self._age = age
        self._entries: deque[tuple[Segment, int, float]] = deque()
        self.first = 1
        """The number of the oldest segment, or of the next one to come while there is none."""
        self.octets = 0

    def __len__(self) -> int:
        return len(self._entries)

    def add(self, segment: Segment, size: int, now: float) -> None:
        """Keep the next segment; the oldest ones leave until it fits."""
        self._entries.append((segment, size, now))
        self.octets += size
        self.purge(now)

    def purge(self, now: float) -> None:
        """Drop what is beyond the limits."""
        entries = self._entries
        while entries and (self.octets > self._limit or entries[0][2] < now - self._age):
            self.octets -= entries.popleft()[1]
            self.first += 1

    def get(self, number: int) -> tuple[Segment, int] | None:
        """Return a segment and the size of its datagram, None for one that is not kept."""
        index = number - self.first
        if not 0 <= index < len(self._entries):
            return None
        segment, size, _ = self._entries[index]
        return segment, size
