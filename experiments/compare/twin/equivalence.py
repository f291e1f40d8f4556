"""Equivalence of paired measurements: two one-sided t tests (TOST), done as a confidence interval within a margin.

Two worlds are equivalent in a metric when the 90 % interval of the mean difference lies within the margin on both sides, which
is TOST at 5 % (D. Schuirmann, 1987). A large scatter or a single run can't show equivalence; it takes evidence.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum

from experiments.compare.paired import Difference, difference

__all__ = ["CONFIDENCE", "EquivalenceTest", "equivalence_test"]

CONFIDENCE = 0.9
"""Of the interval: two one-sided tests at 5 % each."""


@dataclass(frozen=True, slots=True)
class EquivalenceTest:
    """One metric in two worlds: means, mean difference (second - first) with its interval, and the margin either way."""

    first: float
    second: float
    gap: Difference
    margin: float

    @property
    def equivalent(self) -> bool:
        """Does the interval lie within the margin?"""
        return -self.margin <= self.gap.low and self.gap.high <= self.margin


def equivalence_test(
    first: Sequence[float], second: Sequence[float], relative: float, absolute: float = 0.0
) -> EquivalenceTest:
    """Compare paired values. The margin is `relative` of the first world's mean, or `absolute` where that is more."""
    mean = fsum(first) / len(first)
    margin = max(relative * abs(mean), absolute)
    return EquivalenceTest(mean, fsum(second) / len(second), difference(second, first, CONFIDENCE), margin)
