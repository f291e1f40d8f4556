"""The segments a receiver of TCP holds beyond a gap, and the ranges it reports of them (RFC 2018)."""

from typing import Final

from sim.tcp.segment import Segment

__all__ = ["NOTHING_EARLY", "Reassembly"]

_MOST_RANGES = 3
"""Ranges that have room beside time stamps."""
_NO_SEGMENTS: Final[dict[int, Segment]] = {}
_NO_RANGES: Final[list[tuple[int, int]]] = []
"""Those of ends that lost nothing; nothing is added to them."""


class Reassembly:
    """Segments that arrived before earlier ones. Segments overlap only as repetitions of a whole.

    Ends that lost nothing share `NOTHING_EARLY`; `own` returns one to which segments may be added.
    """

    __slots__ = ("_ranges", "early")

    def __init__(self) -> None:
        self.early = _NO_SEGMENTS
        """By their first byte."""
        # Ranges (first byte, first byte behind), the one that grew last first.
        self._ranges = _NO_RANGES

    def own(self) -> "Reassembly":
        """Return this one, or a new one in the place of `NOTHING_EARLY`."""
        return Reassembly() if self is NOTHING_EARLY else self

    def put(self, segment: Segment) -> bool:
        """Keep a segment; returns False for one that is kept already."""
        first, behind = segment.number, segment.end
        if first in self.early:
            self._report((first, behind))
            return False
        if not self.early:
            self.early = {}
        self.early[first] = segment
        rest = []
        for known in self._ranges:
            if known[1] == first:
                first = known[0]
            elif known[0] == behind:
                behind = known[1]
            else:
                rest.append(known)
        self._ranges = [(first, behind), *rest]
        return True

    def _report(self, part: tuple[int, int]) -> None:
        """Report the range of a repeated segment first, since the ACK before may have been lost."""
        for place, (first, behind) in enumerate(self._ranges):
            if first <= part[0] < behind:
                self._ranges.insert(0, self._ranges.pop(place))
                return

    def take(self, number: int) -> list[Segment]:
        """Remove and return the segments that follow byte `number` without a gap."""
        found: list[Segment] = []
        while True:
            segment = self.early.pop(number, None)
            if segment is None:
                break
            found.append(segment)
            number = segment.end
        if found:
            self._ranges = [known for known in self._ranges if known[0] >= number]
        return found

    def ranges(self) -> tuple[tuple[int, int], ...]:
        """Return the ranges to report, at most three."""
        return tuple(self._ranges[:_MOST_RANGES])


NOTHING_EARLY: Final = Reassembly()
"""That of all ends at which no segment arrived before an earlier one; never modified."""
