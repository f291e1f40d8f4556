"""The requests of a subscriber for what it misses of one publisher: random delay, suppression, retries and giving up."""

from bisect import bisect_right
from dataclasses import dataclass
from math import inf
from typing import Final

from protocols.distributor.config import DOUBLED, DistributorConfig
from protocols.rng import Rng

__all__ = ["MOST_RANGES", "NO_REQUESTS", "Range", "Requests"]

MOST_RANGES: Final = 1024
"""Ranges of missing numbers of a publisher from which on no more are made."""

Range = tuple[int, int]
"""First and last number."""


@dataclass(slots=True)
class _Missing:
    """Consecutive numbers that are missing: when they are requested next (seconds), and how often they were."""

    low: int
    high: int
    next_at: float
    tries: int = 0

    @property
    def size(self) -> int:
        """How many numbers there are."""
        return self.high - self.low + 1


_NOTHING: Final[list[_Missing]] = []
"""An empty list of ranges, shared by all instances that miss nothing; never modified."""


class Requests:
    """What is missing, as disjoint ranges in ascending order.

    Only `config.requested` numbers are requested at the same time, the lowest first. A request of another subscriber counts as
    an own one for what both miss.
    """

    __slots__ = ("_config", "_is_limited", "_missing", "_requested", "_rng", "due_at", "suppressed")

    def __init__(self, config: DistributorConfig, rng: Rng) -> None:
        self._config = config
        self._rng = rng
        self._missing = _NOTHING
        # How many of the missing numbers were requested, and whether others wait for them.
        self._requested = 0
        self._is_limited = False
        self.due_at = inf
        """When `requests` may have something to do, in seconds; inf for never."""
        self.suppressed = 0
        """Numbers that were not requested at their time, because another subscriber had done it."""

    def __len__(self) -> int:
        """Return the number of ranges."""
        return len(self._missing)

    @property
    def is_full(self) -> bool:
        """Whether no further ranges are to be made."""
        return len(self._missing) >= MOST_RANGES

    def splits(self, number: int) -> bool:
        """Return whether this number lies within a range, so that removing it would make two ranges."""
        index = bisect_right(self._missing, number, key=_low_of) - 1
        return index >= 0 and self._missing[index].low < number < self._missing[index].high

    def _divides(self, number: int) -> bool:
        """Return whether a range holds both this number and the one before."""
        index = bisect_right(self._missing, number, key=_low_of) - 1
        return index >= 0 and self._missing[index].low < number <= self._missing[index].high

    def _wait(self) -> float:
        """Return a random wait before a request, in seconds."""
        return self._config.request_delay * self._rng.uniform()

    def miss(self, low: int, high: int, now: float) -> None:
        """Add numbers, which are higher than all before them."""
        when = now + self._wait()
        if not self._missing:
            self._missing = []
        self._missing.append(_Missing(low, high, when))
        if not self._is_limited:
            self.due_at = min(self.due_at, when)

    def served(self, number: int) -> None:
        """Remove a number that has arrived."""
        if self._missing:
            self._cut(number, number)
            self._look_again()

    def refused(self, low: int, high: int) -> list[Range]:
        """Remove numbers that will not come; return those that were missing."""
        gone = [(item.low, item.high) for item in self._cut(low, high)]
        self._look_again()
        return gone

    def all_refused(self) -> list[Range]:
        """Remove all numbers, and return them; those of a publisher that was heard after a wrap may be negative."""
        missing = self._missing
        return self.refused(missing[0].low, missing[-1].high) if missing else []

    def heard(self, low: int, high: int, now: float) -> None:
        """Take the request of another subscriber, in place of own ones that wait their random time.

        While no further ranges are to be made, one that would divide a range is ignored.
        """
        if self.is_full and (self._divides(low) or self._divides(high + 1)):
            return
        found = self._cut(low, high)
        for item in found:
            if item.next_at <= now + self._config.request_delay:
                self.suppressed += item.size
                self._try(item, now)
            self._requested += item.size if item.tries else 0
        if found:
            place = bisect_right(self._missing, found[0].low, key=_low_of)
            self._missing[place:place] = found

    def requests(self, now: float) -> tuple[list[Range], list[Range]]:
        """Return what is to be requested now, and what is given up because it was requested too often."""
        asked: list[Range] = []
        # First of all, since that makes room for other requests.
        lost = [item for item in self._missing if item.next_at <= now and item.tries > self._config.retries]
        self._requested -= sum([item.size for item in lost])
        kept: list[_Missing] = []
        self._is_limited = False
        for item in self._missing:
            if item.next_at > now:
                kept.append(item)
            elif item.tries <= self._config.retries:
                kept += self._ask(item, now, asked)
        self._missing = kept
        self.due_at = min([item.next_at for item in kept if item.tries or not self._is_limited], default=inf)
        return asked, [(item.low, item.high) for item in lost]

    def _ask(self, item: _Missing, now: float, asked: list[Range]) -> list[_Missing]:
        """Request a range that is due, as far as there is room; return it in as many parts as that makes."""
        room = item.size if item.tries else self._config.requested - self._requested
        if room <= 0:
            self._is_limited = True
            return [item]
        parts = [item]
        if item.size > room:
            self._is_limited = True
            parts.append(_Missing(item.low + room, item.high, item.next_at))
            item.high = item.low + room - 1
        self._requested += 0 if item.tries else item.size
        self._try(item, now)
        _append(asked, item.low, item.high)
        return parts

    def _try(self, item: _Missing, now: float) -> None:
        """Count a request for a range, and set the time of the next one."""
        item.next_at = now + self._config.timeout * 2.0 ** min(item.tries, DOUBLED) + self._wait()
        item.tries += 1

    def _cut(self, low: int, high: int) -> list[_Missing]:
        """Remove numbers, and return those that were there; `_requested` is without them."""
        missing = self._missing
        found: list[_Missing] = []
        left: list[_Missing] = []
        index = max(bisect_right(missing, low, key=_low_of) - 1, 0)
        end = bisect_right(missing, high, key=_low_of)
        for item in missing[index:end]:
            if item.high < low:
                left.append(item)
                continue
            if low <= item.low and item.high <= high:
                found.append(item)
                self._requested -= item.size if item.tries else 0
                continue
            part = _Missing(max(item.low, low), min(item.high, high), item.next_at, item.tries)
            found.append(part)
            self._requested -= part.size if part.tries else 0
            left += [
                _Missing(first, last, item.next_at, item.tries)
                for first, last in ((item.low, low - 1), (high + 1, item.high))
                if first <= last
            ]
        missing[index:end] = left
        return found

    def _look_again(self) -> None:
        """Have what waits requested when half of what was requested has come."""
        if not self._missing:
            self.due_at = inf
            self._is_limited = False
        elif self._is_limited and 2 * self._requested <= self._config.requested:
            self.due_at = -inf


NO_REQUESTS: Final = Requests(DistributorConfig(), Rng(0))
"""The requests of all subscribers that have missed nothing; nothing is added to it."""


def _low_of(item: _Missing) -> int:
    return item.low


def _append(ranges: list[Range], low: int, high: int) -> None:
    """Add a range, as one with the last if it follows it."""
    if ranges and ranges[-1][1] == low - 1:
        ranges[-1] = (ranges[-1][0], high)
    else:
        ranges.append((low, high))
