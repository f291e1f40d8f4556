"""Equivalence of paired measurements by two one-sided t tests (TOST), as a confidence interval within a margin.

Two worlds are equivalent in a metric if the 90 % interval of the mean difference lies within the margin on both sides: TOST at
level 5 % (Schuirmann 1987). A large variance or a single pair cannot show equivalence.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum

from experiments.compare.paired import Difference, difference

__all__ = ["CONFIDENCE", "EquivalenceTest", "equivalence_test"]

CONFIDENCE = 0.9
"""Confidence level of the interval: two one-sided tests at 5 % each."""


@dataclass(frozen=True, slots=True)
class EquivalenceTest:
    """One metric in two worlds: means, mean difference (second - first) with its interval, and the margin on either side."""

    first: float
    second: float
    gap: Difference
    margin: float

    @property
    def equivalent(self) -> bool:
        """Whether the interval lies within the margin."""
        return -self.margin <= self.gap.low and self.gap.high <= self.margin


def equivalence_test(
    first: Sequence[float], second: Sequence[float], relative: float, absolute: float = 0.0
) -> EquivalenceTest:
    """Test paired values. The margin is `relative` times the first world's mean, but at least `absolute`."""
    mean = fsum(first) / len(first)
    margin = max(relative * abs(mean), absolute)
    return EquivalenceTest(mean, fsum(second) / len(second), difference(second, first, CONFIDENCE), margin)
