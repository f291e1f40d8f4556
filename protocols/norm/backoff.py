"""The random back-off of NACKs and other feedback (RFC 5401 3.2.2)."""

from functools import lru_cache
from math import exp, inf, log
from typing import Final

__all__ = ["NEVER", "backoff"]

NEVER: Final = -inf
"""A time before all others, for what is not pending. One object, which all receivers share."""


def backoff(u: float, spread: float, group_size: float) -> float:
    """Return a back-off in seconds: truncated exponential over [0, spread], with most of its weight at the end.

    `u` is uniform in [0, 1); `group_size` is the estimate of how many receivers may send. In a large group the first of them
    sends early, which suppresses the others.
    """
    if spread <= 0.0:
        return 0.0
    rate, growth = _shape(group_size)
    return spread / rate * log(1.0 + u * growth)


@lru_cache(maxsize=64)
def _shape(group_size: float) -> tuple[float, float]:
    rate = log(group_size) + 1.0
    return rate, exp(rate) - 1.0
