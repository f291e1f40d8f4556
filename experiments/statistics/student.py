"""Student's t distribution, for commands that run without scipy (tests compare both)."""

from functools import cache
from math import atan, cos, isfinite, pi, sin, sqrt
from statistics import NormalDist

__all__ = ["MANY", "student", "student_quantile"]

MANY = 200
"""Degrees of freedom above which a series is used; the exact sum has as many terms as degrees of freedom."""


def student(t: float, freedom: int) -> float:
    """Return P(T <= t) of Student's t distribution with integer degrees of freedom (Abramowitz and Stegun 26.7.3, 26.7.4)."""
    angle = atan(t / sqrt(freedom))
    square, term, total = cos(angle) ** 2, 1.0, 0.0
    if freedom % 2:
        term = cos(angle)
    for k in range(1 if freedom % 2 else 0, freedom - 1, 2):
        total += term
        term *= square * (k + 1) / (k + 2)
    inner = 2 / pi * (angle + sin(angle) * total) if freedom % 2 else sin(angle) * total
    return 0.5 + inner / 2


@cache
def student_quantile(p: float, freedom: int) -> float:
    """Return the quantile of Student's t distribution for a probability 0.5 <= p < 1, by bisection."""
    if freedom > MANY:
        return _near_normal(NormalDist().inv_cdf(p), freedom)
    low, high = 0.0, 1.0
    while student(high, freedom) < p and isfinite(high):
        high *= 2.0
    for _ in range(100):
        middle = (low + high) / 2
        if student(middle, freedom) < p:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _near_normal(z: float, freedom: int) -> float:
    """Return Student's quantile from the normal quantile z (Abramowitz and Stegun 26.7.5); accurate to 1e-8 above MANY."""
    cubic = (z**3 + z) / (4 * freedom)
    fifth = (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)
    return z + cubic + fifth + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * freedom**3)
