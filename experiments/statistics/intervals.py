"""Confidence intervals of the mean of a few independent runs, inside the range that the quantity can take.

They are score intervals. With m the mean, s the standard deviation of n runs and t Student's quantile with n - 1 degrees of
freedom, the interval holds every mu with

    (m - mu)^2 <= t^2 s^2/n * V(mu)/V(m).

V says how the variance of a quantity of this range changes with its mean: 1 for a quantity without bounds, which gives
Student's interval; mu for one that is not negative; mu (top - mu) for one between 0 and top. The latter is Wilson's interval
(1927) with t^2 V(m)/s^2 instead of the number of trials, as Korn and Graubard (1998) use it for samples whose elements depend
on each other.
"""

from math import isfinite, sqrt
from statistics import NormalDist
from typing import Literal, NamedTuple, TypeAlias

from experiments.statistics.student import student_quantile

__all__ = ["TOLERANCE", "Interval", "Kind", "does_not_vary", "mean_interval"]

Kind: TypeAlias = Literal["real", "positive", "count", "fraction", "outcome"]
"""The range of a quantity.

*real*: any number; *positive*: not negative; *count*: a number of random events; *fraction*: between 0 and 1; *outcome*: what
happened (1) or not (0), or a share of such. A count or an outcome that was at the end of its range in all runs may still
differ in another run (`mean_interval`).
"""

TOLERANCE = 1e-9
"""Relative standard deviation up to which runs do not vary: what remains is rounding of floating-point numbers."""


class Interval(NamedTuple):
    """Ends of a confidence interval."""

    low: float
    high: float


def does_not_vary(mean: float, sd: float) -> bool:
    """Return whether a standard deviation is zero but for rounding."""
    return sd <= TOLERANCE * abs(mean)


def mean_interval(
    mean: float, sd: float | None, runs: int, kind: Kind = "real", confidence: float = 0.95, top: float = 1.0
) -> Interval | None:
    """Return the confidence interval of a mean; None for a single run.

    `sd` is the sample standard deviation over the runs. `top` is the largest value of a fraction or an outcome.

    Runs that do not vary have an interval of width 0, with two exceptions. No event in `runs` runs is possible when the mean is
    above 0, so a count has the score interval of a Poisson mean, 0 to z^2/runs; likewise an outcome that was equal in all runs
    has Wilson's interval, at most z^2/(runs + z^2) wide. Values outside the range of their kind have Student's interval.
    """
    if sd is None or runs < 2 or not isfinite(sd):
        return None
    if does_not_vary(mean, sd):
        return _of_equal_runs(mean, runs, kind, NormalDist().inv_cdf(0.5 + confidence / 2), top)
    square = student_quantile(0.5 + confidence / 2, runs - 1) ** 2 * sd**2 / runs
    if kind == "real" or mean <= 0 or (kind in ("fraction", "outcome") and mean >= top):
        return Interval(mean - sqrt(square), mean + sqrt(square))
    if kind in ("positive", "count"):
        # The product of the ends is mean^2.
        half = square / mean / 2
        high = mean + half + sqrt(2 * half * mean + half**2)
        return Interval(mean**2 / high, high)
    return _of_share(mean / top, square / (mean * (top - mean)), top)


def _of_share(share: float, ratio: float, top: float) -> Interval:
    """Return the ends where (share - mu)^2 = ratio mu (1 - mu), times `top`."""
    reach = sqrt(ratio**2 + 4 * ratio * share * (1 - share))
    low, high = ((2 * share + ratio + side * reach) / (2 * (1 + ratio)) for side in (-1, 1))
    return Interval(max(0.0, low) * top, min(1.0, high) * top)


def _of_equal_runs(mean: float, runs: int, kind: Kind, z: float, top: float) -> Interval:
    """Return the interval of runs that do not vary; `z` is the normal quantile."""
    width = z**2 / (runs + z**2) * top
    if kind == "count" and mean == 0:
        return Interval(0.0, z**2 / runs)
    if kind == "outcome" and mean == 0:
        return Interval(0.0, width)
    if kind == "outcome" and mean == top:
        return Interval(top - width, top)
    return Interval(mean, mean)
