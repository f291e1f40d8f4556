"""Publishers with a defect in how they answer requests."""

from collections.abc import Sequence

from protocols.distributor.answers import MOST_RANGES, Answers
from protocols.distributor.identity import endpoint_of
from protocols.distributor.messages import Nak
from protocols.distributor.publisher import DistributorPublisher
from protocols.distributor.wire import size_of

__all__ = ["InvertedNakPublisher", "UnmergedPublisher"]


class _UnmergedAnswers(Answers):
    """Answers every request for itself, whatever waits already."""

    __slots__ = ()

    def request(self, low: int, high: int, now: float) -> bool:
        """Add all numbers; return whether there was room."""
        if len(self._due) >= MOST_RANGES:
            return False
        self._due.append((now + self._holdback, low, high))
        return True

    def take(self) -> int:
        """Remove the next number and return it; there must be one."""
        due, first, last = self._due.popleft()
        if first < last:
            self._due.appendleft((due, first + 1, last))
        return first


class UnmergedPublisher(DistributorPublisher):
    """Does not merge requests while it holds retransmissions back."""

    __slots__ = ()
    answers_type = _UnmergedAnswers


class InvertedNakPublisher(DistributorPublisher):
    """States what has left the cache only while the cache is empty, and then without the numbers."""

    __slots__ = ()

    def _refuse(self, gone: Sequence[int], now: float) -> None:
        if not len(self._cache) and len(gone) == 1:
            self._counts["naks_sent"] += 1
            nak = Nak(self._source, *endpoint_of(self._group), ())
            self._transmit(nak, size_of(nak), now)
