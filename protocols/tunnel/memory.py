"""State of a tunnel: digests of packets carried already, and missing sequence numbers."""

from collections.abc import Hashable
from typing import Final

__all__ = ["LossMeter", "Memory"]

_JUMP: Final = 4096
"""Missing numbers in a row from which on a sender counts as restarted."""
_SOURCES: Final = 256
"""Senders whose numbers are followed; of more, the one followed longest is forgotten."""


class Memory:
    """Keys of packets, each remembered for a time, and at most `limit` of them."""

    __slots__ = ("_ends", "limit")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._ends: dict[Hashable, float] = {}

    def __len__(self) -> int:
        return len(self._ends)

    def add(self, key: Hashable, now: float, lifetime: float) -> bool:
        """Remember a key for `lifetime` seconds; return False, and change nothing, if it is remembered already."""
        ends = self._ends
        if ends.get(key, now) > now:
            return False
        ends.pop(key, None)
        ends[key] = now + lifetime
        while len(ends) > self.limit or ends[next(iter(ends))] <= now:
            del ends[next(iter(ends))]
        return True


class LossMeter:
    """Counts what came and what is missing, by sequence numbers of `bits` bits of several senders."""

    __slots__ = ("_before", "_mask", "_next", "lost", "received")

    def __init__(self, bits: int) -> None:
        self._mask = (1 << bits) - 1
        self._next: dict[Hashable, int] = {}
        self._before = 0, 0
        self.received = 0
        self.lost = 0
        """Numbers that are missing; one that comes late is not."""

    def take(self, sender: Hashable, number: int) -> None:
        """Note a number of a sender."""
        expected = self._next.get(sender)
        if expected is None and len(self._next) >= _SOURCES:
            del self._next[next(iter(self._next))]
        missing = 0 if expected is None else (number - expected) & self._mask
        self.received += 1
        if missing < _JUMP:
            self.lost += missing
        elif self._mask + 1 - missing < _JUMP:
            # It is late.
            self.lost = max(0, self.lost - 1)
            return
        self._next[sender] = (number + 1) & self._mask

    def since(self) -> tuple[int, int]:
        """Return how many came and how many are missing since the last call."""
        received, lost = self._before
        self._before = self.received, self.lost
        return self.received - received, max(0, self.lost - lost)
