"""Track the sequence numbers of one sender: gaps, late messages and duplicates."""

from protocols.serial import ahead

__all__ = ["SequenceTracker"]

_RESTART = 10_000
"""Smallest jump treated as a restart of the numbering or a pause of the capture instead of loss."""


class SequenceTracker:
    """Extend one sender's 16-bit sequence numbers without wrap-around, and classify each message."""

    def __init__(self) -> None:
        self.count = self.late = self.duplicates = self.lost = 0
        """Messages, late messages, duplicates, and all skipped numbers."""
        self._highest: int | None = None
        self._missing: set[int] = set()

    @property
    def missing(self) -> int:
        """Number of messages that never arrived."""
        return self.lost - self.late

    def add(self, sequence: int) -> tuple[int, bool]:
        """Record a number; return (numbers skipped before it, whether it is a duplicate)."""
        self.count += 1
        if self._highest is None:
            self._highest = sequence
            return 0, False
        step = ahead(sequence, self._highest & 0xFFFF)
        if abs(step) >= _RESTART:
            self._highest += step % 0x10000
            self._missing.clear()
            return 0, False
        number = self._highest + step
        if step > 0:
            self._missing.update(range(self._highest + 1, number))
            self._highest = number
            self.lost += step - 1
            return step - 1, False
        if number in self._missing:
            self._missing.discard(number)
            self.late += 1
            return 0, False
        self.duplicates += 1
        return 0, True
