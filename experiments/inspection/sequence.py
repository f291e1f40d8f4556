"""The sequence numbers of one sender as they come by: what is missing, late or there twice."""

from protocols.serial import ahead

__all__ = ["SequenceTracker"]

_RESTART = 10_000
"""A jump as wide as this is no loss: the numbering began anew or the capture paused."""


class SequenceTracker:
    """Follows one sender's 16-bit numbers without end: `heard` says what a number means."""

    def __init__(self) -> None:
        self.count = self.late = self.duplicates = self.lost = 0
        """Messages, those that came late, those that came twice, and all numbers that were skipped."""
        self._highest: int | None = None
        self._missing: set[int] = set()

    @property
    def missing(self) -> int:
        """How many never came."""
        return self.lost - self.late

    def heard(self, sequence: int) -> tuple[int, bool]:
        """(numbers skipped before this one, whether the message came before)."""
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
