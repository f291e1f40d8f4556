"""The retransmission time-out of TCP (RFC 6298)."""

from typing import Final

__all__ = ["FIRST", "LEAST", "MOST", "RttEstimator"]

FIRST: Final = 1.0
"""Time-out before the first measurement, in seconds."""
LEAST: Final = 0.2
"""Least time-out in seconds. RFC 6298 asks for one second; Linux and most others use 0.2."""
MOST: Final = 60.0
"""Largest time-out in seconds."""


class RttEstimator:
    """Smoothed round-trip time, its variation, and the retransmission time-out, in seconds.

    `granularity` is the least that is added to the smoothed round-trip time.
    """

    __slots__ = ("_variation", "granularity", "smoothed", "timeout")

    def __init__(self, granularity: float = 0.0) -> None:
        self.granularity = granularity
        self.smoothed: float | None = None
        self._variation = 0.0
        self.timeout = FIRST

    def measure(self, rtt: float) -> None:
        """Take a measurement of a packet that was sent once."""
        if self.smoothed is None:
            self.smoothed, self._variation = rtt, rtt / 2
        else:
            self._variation += (abs(self.smoothed - rtt) - self._variation) / 4
            self.smoothed += (rtt - self.smoothed) / 8
        self.timeout = max(LEAST, self.smoothed + max(self.granularity, 4 * self._variation))

    def back_off(self) -> None:
        """Double the time-out after it expired."""
        self.timeout = min(2 * self.timeout, MOST)
