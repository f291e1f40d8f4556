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
    if group_size != _shape.group_size:
        _shape.set(group_size)
    return spread / _shape.rate * log(1.0 + u * _shape.growth)


class _Shape:
    """The shape of the distribution for the group size that was used last."""

    __slots__ = ("group_size", "growth", "rate")

    def __init__(self) -> None:
        self.set(1.0)

    def set(self, group_size: float) -> None:
        """Compute the shape for a group size."""
        self.group_size = group_size
        self.rate = log(group_size) + 1.0
        self.growth = exp(self.rate) - 1.0


_shape: Final = _Shape()
