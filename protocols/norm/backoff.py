"""The random back-off of NACKs and other feedback (RFC 5401 3.2.2)."""

from functools import lru_cache
from math import exp, inf, log

__all__ = ["NEVER", "backoff"]

NEVER = -inf
"""A time in the past, before all others: one number for all who wait for nothing."""


def backoff(u: float, spread: float, group_size: float) -> float:
    """Seconds to wait before speaking: truncated exponential over [0, spread], most of it late.

    `u` is uniform in [0, 1); `group_size` is the estimate of how many may speak. The first of a large group speaks early
    and the others hear it before their own time comes.
    """
    if spread <= 0.0:
        return 0.0
    rate, growth = _shape(group_size)
    return spread / rate * log(1.0 + u * growth)


@lru_cache(maxsize=64)
def _shape(group_size: float) -> tuple[float, float]:
    rate = log(group_size) + 1.0
    return rate, exp(rate) - 1.0
