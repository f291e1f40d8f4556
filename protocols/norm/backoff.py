"""The random back-off of NACKs and other feedback (RFC 5401 3.2.2)."""

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
    shape = _latest.shape
    if group_size != shape.group_size:
        shape = _latest.shape = _Shape(group_size)
    return spread / shape.rate * log(1.0 + u * shape.growth)


class _Shape:
    """The shape of the distribution for a group size."""

    __slots__ = ("group_size", "growth", "rate")

    def __init__(self, group_size: float) -> None:
        self.group_size = group_size
        self.rate = log(group_size) + 1.0
        self.growth = exp(self.rate) - 1.0


class _Latest:
    """The shape that was used last; simulated receivers of a sender have the same group size.

    It is replaced and never modified, because sessions may run in threads.
    """

    __slots__ = ("shape",)

    def __init__(self) -> None:
        self.shape = _Shape(1.0)


_latest: Final = _Latest()
