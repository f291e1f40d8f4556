"""Decide in three ways whether a difference lies within a margin, from a few independent runs, and state the power of that.

Two hypotheses are tested against each other, each at level 5 %: the difference is within the margin (two one-sided t tests,
Schuirmann 1987), or beyond it. Both are decided by the 90 % interval: all of it within the margin shows equivalence, all of it
beyond the margin on one side shows a difference. Otherwise the runs are too few, or vary too much, to show either.
"""

from collections.abc import Callable
from enum import StrEnum
from functools import cache
from math import exp, inf, lgamma, log, sqrt
from statistics import NormalDist

from experiments.statistics.student import student_quantile

__all__ = [
    "CONFIDENCE",
    "MOST_RUNS",
    "POWER",
    "Verdict",
    "decide",
    "difference_power",
    "equivalence_power",
    "largest_sd",
    "runs_needed",
    "shown_excess",
]

CONFIDENCE = 0.9
"""Confidence level of the interval: one-sided tests at 5 %."""
POWER = 0.8
"""Probability of a decision that `largest_sd`, `shown_excess` and `runs_needed` ask for."""
MOST_RUNS = 1000
"""Largest number of runs of a comparison, and that `runs_needed` considers."""
STEPS = 400
"""Steps of the numerical integrals, which are accurate to 1e-6 then."""

_PHI = NormalDist().cdf


class Verdict(StrEnum):
    """What runs show about a difference and a margin."""

    EQUIVALENT = "equivalent"
    DIFFERENT = "different"
    NOT_SHOWN = "not shown"


def decide(low: float, high: float, margin: float, rounding: float = 0.0) -> Verdict:
    """Judge a difference by its 90 % interval; `rounding` is the error of its floating-point numbers."""
    bound = margin + rounding
    if -bound <= low and high <= bound:
        return Verdict.EQUIVALENT
    return Verdict.DIFFERENT if low > bound or high < -bound else Verdict.NOT_SHOWN


def equivalence_power(runs: int, mean: float, sd: float, margin: float) -> float:
    """Return the probability that `runs` normal differences of this mean and standard deviation show equivalence."""
    if sd == 0:
        return float(abs(mean) <= margin)
    root, t = sqrt(runs) / sd, student_quantile(0.5 + CONFIDENCE / 2, runs - 1)

    def given(ratio: float) -> float:
        room = margin * root - t * ratio
        return _PHI(room - mean * root) - _PHI(-room - mean * root) if room > 0 else 0.0

    return _average(given, runs - 1)


def difference_power(runs: int, excess: float, sd: float) -> float:
    """Return the probability that `runs` normal differences show a difference whose mean exceeds the margin by `excess`."""
    if sd == 0:
        return float(excess > 0)
    root, t = sqrt(runs) / sd, student_quantile(0.5 + CONFIDENCE / 2, runs - 1)
    return _average(lambda ratio: _PHI(excess * root - t * ratio), runs - 1)


def runs_needed(runs: int, mean: float, sd: float | None, margin: float) -> int | None:
    """Return how many runs would decide with probability POWER if mean and standard deviation are those observed in `runs`.

    None if more than MOST_RUNS would be needed, or the standard deviation is unknown.
    """
    excess = abs(mean) - margin
    if sd is None or excess == 0:
        return None

    def decided(number: int) -> bool:
        power = difference_power(number, excess, sd) if excess > 0 else equivalence_power(number, mean, sd, margin)
        return power >= POWER

    low, high = runs, runs + 1
    while not decided(high):
        if high >= MOST_RUNS:
            return None
        low, high = high, min(2 * high, MOST_RUNS)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if decided(middle) else (middle, high)
    return high


@cache
def largest_sd(runs: int) -> float:
    """Return the largest standard deviation, in margins, at which equal means are shown equivalent with probability POWER."""
    return _root(lambda sd: POWER - equivalence_power(runs, 0.0, sd, 1.0))


@cache
def shown_excess(runs: int) -> float:
    """Return by how many standard deviations a mean has to exceed the margin to be shown different with probability POWER."""
    return _root(lambda excess: difference_power(runs, excess, 1.0) - POWER)


def _root(rising: Callable[[float], float]) -> float:
    """Return the positive root of an increasing function, by bisection."""
    low, high = 0.0, 1.0
    while rising(high) < 0:
        high *= 2
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if rising(middle) < 0 else (low, middle)
    return (low + high) / 2


def _average(value: Callable[[float], float], freedom: int) -> float:
    """Return the mean of `value(S / sigma)` over the distribution of a sample standard deviation S of normal values."""
    # The density of S / sigma, a chi distribution; Simpson's rule over all but 1e-12 of it.
    constant = log(2) + freedom / 2 * log(freedom / 2) - lgamma(freedom / 2)
    low, high = max(0.0, 1 - 5.5 / sqrt(freedom)), 1 + 6.5 / sqrt(freedom)
    step, total = (high - low) / STEPS, 0.0
    for place in range(STEPS + 1):
        at = low + place * step
        density = exp(constant + (freedom - 1) * (log(at) if at else -inf if freedom > 1 else 0.0) - freedom * at * at / 2)
        total += (1 if place in (0, STEPS) else 4 if place % 2 else 2) * density * value(at)
    return total * step / 3
