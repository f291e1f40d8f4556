"""Paired differences of two variants measured with common random numbers, with Student t intervals."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum, inf, sqrt

from experiments.statistics.student import student_quantile

__all__ = ["Difference", "difference"]


@dataclass(frozen=True, slots=True)
class Difference:
    """Mean difference of pairs with its standard deviation and confidence interval.

    A single pair has an infinite interval and no standard deviation. Differences that do not vary have an interval of width 0.
    """

    mean: float
    low: float
    high: float
    pairs: int
    sd: float | None = None

    @property
    def clear(self) -> bool:
        """Whether the confidence interval excludes zero."""
        return not self.low <= 0.0 <= self.high


def difference(ours: Sequence[float], theirs: Sequence[float], confidence: float = 0.95) -> Difference:
    """Return the mean of ours - theirs with its Student t interval, for normal and independent differences."""
    gaps = [a - b for a, b in zip(ours, theirs, strict=True)]
    n = len(gaps)
    mean = fsum(gaps) / n
    if n < 2:
        return Difference(mean, -inf, inf, n)
    sd = sqrt(fsum((gap - mean) ** 2 for gap in gaps) / (n - 1))
    reach = student_quantile(0.5 + confidence / 2, n - 1) * sd / sqrt(n)
    return Difference(mean, mean - reach, mean + reach, n, sd)
