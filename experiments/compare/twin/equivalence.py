"""Test one metric of paired runs: whether its mean difference is within a margin, beyond it, or not shown to be either."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import fsum

from experiments.compare.paired import Difference, difference
from experiments.statistics.intervals import TOLERANCE
from experiments.statistics.verdicts import CONFIDENCE, Verdict, decide, runs_needed

__all__ = ["EquivalenceTest", "equivalence_test"]


@dataclass(frozen=True)
class EquivalenceTest:
    """One metric in two worlds: means, mean difference (second - first) with its 90 % interval, the margin on either side."""

    first: float
    second: float
    gap: Difference
    margin: float

    @property
    def verdict(self) -> Verdict:
        """The verdict: equivalent if the interval lies within the margin, different if it lies beyond, else not shown."""
        rounding = TOLERANCE * max(abs(self.first), abs(self.second))
        return decide(self.gap.low, self.gap.high, self.margin, rounding)

    @cached_property
    def runs_needed(self) -> int | None:
        """Number of pairs for a decision at the observed mean and variance; None if decided, unknown or too many."""
        if self.verdict is not Verdict.NOT_SHOWN:
            return None
        return runs_needed(self.gap.pairs, self.gap.mean, self.gap.sd, self.margin)


def equivalence_test(
    first: Sequence[float], second: Sequence[float], relative: float, absolute: float = 0.0
) -> EquivalenceTest:
    """Test paired values, one of each world per pair of runs.

    The margin is `relative` times the mean of the first world, but at least `absolute`.
    """
    means = fsum(first) / len(first), fsum(second) / len(second)
    margin = max(relative * abs(means[0]), absolute)
    return EquivalenceTest(*means, difference(second, first, CONFIDENCE), margin)
