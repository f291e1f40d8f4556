"""Track the sequence numbers of one sender: gaps, late messages and duplicates."""

from protocols.serial import ahead

__all__ = ["SequenceTracker"]

_RESTART = 10_000
"""Smallest jump treated as a restart of the numbering or a pause of the capture instead of loss."""
_WINDOW = (1 << _RESTART) - 1


class SequenceTracker:
    """Extend one sender's 16-bit sequence numbers without wrap-around, and classify each message."""

    def __init__(self) -> None:
        self.late = self.duplicates = self.lost = 0
        """Late messages, duplicates, and all skipped numbers."""
        self._highest: int | None = None
        self._missing = 0
        """Bit n stands for the n-th number before the highest one, as far back as a message can be late."""

    @property
    def missing(self) -> int:
        """Number of messages that never arrived."""
        return self.lost - self.late

    def add(self, sequence: int) -> tuple[int, bool]:
        """Record a number; return (numbers skipped before it, whether it is a duplicate)."""
        if self._highest is None:
            self._highest = sequence
            return 0, False
        step = ahead(sequence, self._highest & 0xFFFF)
        if abs(step) >= _RESTART:
            self._highest += step % 0x10000
            self._missing = 0
            return 0, False
        if step > 0:
            self._missing = (self._missing << step | (1 << step) - 2) & _WINDOW
            self._highest += step
            self.lost += step - 1
            return step - 1, False
        if self._missing >> -step & 1:
            self._missing ^= 1 << -step
            self.late += 1
            return 0, False
        self.duplicates += 1
        return 0, True
