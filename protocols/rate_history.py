"""Rates of counters over several times at once, with the highest of each: what consoles and monitors show of any protocol.

There is no clock here: the caller gives the time of each sample. The arithmetic is that of `protocols.snapshot.Rates`.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from protocols.snapshot import increase

__all__ = ["WINDOWS", "Flow", "Rate", "RateHistory"]

WINDOWS: Final = (0.0, 60.0, 300.0)
"""Seconds over which rates are means; 0: since the sample before."""
_THINNED: Final = 120
"""Samples that are kept for a window, about."""


class Rate(NamedTuple):
    """A rate per second, the highest that it was, and when, in seconds of the samples' clock or in words; None: never."""

    current: float = 0.0
    peak: float = 0.0
    peak_at: float | str | None = None


@dataclass(frozen=True, slots=True)
class Flow:
    """A counter: its value, and its rates over each of `WINDOWS`."""

    total: float
    rates: tuple[Rate, ...]


NONE: Final = Flow(0, (Rate(),) * len(WINDOWS))
"""A counter of which nothing is known."""


class RateHistory:
    """Rates of the counters of one part of a protocol, from samples.

    A counter that is smaller than before has begun anew, and counts from 0; so does one that is new. Where the samples go back
    less far than a window, a rate is the mean since the first of them. Rates need two samples.
    """

    __slots__ = ("_latest", "_sums", "_windows", "flows")

    def __init__(self, windows: Sequence[float] = WINDOWS) -> None:
        self._windows = [(window, deque[tuple[float, dict[str, float]]]()) for window in windows]
        self._latest: Mapping[str, float] = {}
        # What each counter has increased by since the first sample.
        self._sums: dict[str, float] = {}
        self.flows: dict[str, Flow] = {}
        """The counters with their rates, as of the last sample."""

    def add(self, at: float, counters: Mapping[str, float], when: str | None = None) -> None:
        """Take a sample of all counters, made at `at` seconds, `when` in words for peaks.

        One that is not later than the last counts for nothing.
        """
        newest = self._windows[0][1]
        if newest and at <= newest[-1][0]:
            return
        for name, value in counters.items():
            step = increase(value, self._latest.get(name, 0)) if newest else 0
            self._sums[name] = self._sums.get(name, 0) + step
        self._latest = dict(counters)
        sums = dict(self._sums)
        bases = [_take(samples, window, at, sums) for window, samples in self._windows]
        self.flows = {name: self._flow(name, total, at, bases, when) for name, total in counters.items()}

    def _flow(
        self, name: str, total: float, at: float, bases: Sequence[tuple[float, Mapping[str, float]]], when: str | None
    ) -> Flow:
        known = self.flows.get(name, NONE).rates
        rates = []
        for place, (since, before) in enumerate(bases):
            rate = (self._sums[name] - before.get(name, 0)) / (at - since) if at > since else 0.0
            earlier = known[place] if place < len(known) else Rate()
            if rate > earlier.peak:
                rates.append(Rate(rate, rate, at if when is None else when))
            else:
                rates.append(Rate(rate, earlier.peak, earlier.peak_at))
        return Flow(total, tuple(rates))


def _take(
    samples: deque[tuple[float, dict[str, float]]], window: float, at: float, sums: dict[str, float]
) -> tuple[float, dict[str, float]]:
    """Add a sample to those of a window, and return the one since which its rate counts."""
    while len(samples) > 1 and samples[1][0] <= at - window:
        samples.popleft()
    if len(samples) < 2 or at - samples[-1][0] >= window / _THINNED or not window:
        samples.append((at, sums))
    return samples[0]
