"""Bounds on memory and work of an inspection, so that no capture costs more than in proportion to its size."""

__all__ = ["DetailBudget"]

_FREE_BYTES = 16_000_000
_FREE_STEPS = 50_000
_BYTES_PER_STEP = 16


class DetailBudget:
    """Memory in bytes and work in steps that may be spent: a constant part, and a part in proportion to the bytes read.

    A message of a few bytes can request thousands of blocks or name a symbol far beyond all others. Real captures stay far
    below the bound; what exceeds it is counted and not tracked.
    """

    __slots__ = ("_bytes", "_steps", "refused")

    def __init__(self) -> None:
        self._bytes = _FREE_BYTES
        self._steps = _FREE_STEPS
        self.refused = 0
        """How often something was not tracked, since this was last set to 0."""

    def read(self, octets: int) -> None:
        """Enlarge the budget by what a message of so many bytes allows."""
        self._bytes += octets
        self._steps += octets // _BYTES_PER_STEP

    def memory(self, octets: int) -> bool:
        """Spend memory; return False, and spend nothing, if that is more than is left."""
        if octets > self._bytes:
            self.refused += 1
            return False
        self._bytes -= octets
        return True

    def work(self, steps: int) -> bool:
        """Spend work; return False, and spend nothing, if that is more than is left."""
        if steps > self._steps:
            self.refused += 1
            return False
        self._steps -= steps
        return True
