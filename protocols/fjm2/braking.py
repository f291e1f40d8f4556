"""How a publisher follows the brakes of its site's tunnel: the rate grows by addition and shrinks by multiplication.

The thesis has no flow control, and names the overshoot of the router that follows (5.5.3). What to do about it is ours.
"""

from math import inf
from typing import Final

from protocols.tunnel.messages import FULL_SHARE, Brake

__all__ = ["Braking"]

LEAST: Final = 64
"""The share of the configured rate that is the lowest is 1 / LEAST."""
FIRST: Final = 2
"""The first brake that is heard sets the rate to 1 / FIRST of the configured one, from which it is found anew."""
FACTOR: Final = 1.05
"""Factor of the rate at each BRAKE until one reports congestion."""
STEP: Final = 0.004
"""By this share of the configured rate it grows afterwards."""
LOSS: Final = 0.002
RING: Final = 0.5
"""Shares of lost packets and of the ring from which on a BRAKE means congestion."""
HOLD: Final = 0.25
"""Share of the ring in use from which on the rate does not grow."""
MARGIN: Final = 0.97
FIRST_MARGIN: Final = 0.94
"""The rate that gets through is multiplied by this; after the search by less, since queues are full then."""
DELAY: Final = 0.15
"""Seconds beside a GRTT until reported losses are those of a lower rate."""
DRAIN: Final = 1.0
"""Seconds beside these for a full ring, or queues as long, to drain after the rate was lowered."""
SILENCE: Final = 1.0
"""Seconds without a BRAKE after which the rate is the configured one again."""


class Braking:
    """The rate in bytes per second of a publisher that receives BRAKE, at most `top`."""

    __slots__ = ("_before", "_cut_at", "_heard_at", "_is_searching", "_top", "_worst", "rate")

    def __init__(self, top: float) -> None:
        self._top = self.rate = top
        self._heard_at = self._cut_at = -inf
        self._is_searching = False
        self._before = top
        self._worst = 0.0

    def hear(self, brake: Brake, is_sending: bool, grtt: float, now: float) -> None:
        """Update the rate by a BRAKE; it grows only while `is_sending`, since an unused rate is not tested.

        Reports that come within `grtt` + `DELAY` seconds of a reduction, and the time in which the ring drains, are about the
        rate before it: they lower that rate once, by the largest share of losses among them.
        """
        if self._heard_at == -inf:
            self.rate, self._is_searching = self._top / FIRST, True
        self._heard_at = now
        lost, ring = brake.lost / FULL_SHARE, brake.ring / FULL_SHARE
        if lost > LOSS or ring > RING:
            if now >= self._cut_at + DELAY + grtt + ring * DRAIN:
                self._cut_at, self._worst = now, 0.0
                self._before = self.rate * (FIRST_MARGIN if self._is_searching else MARGIN)
            self._worst = max(self._worst, lost, (ring - RING) / 2)
            self.rate = min(self.rate, self._before * (1 - self._worst))
            self._is_searching = False
        elif is_sending and ring <= HOLD:
            self.rate = self.rate * FACTOR if self._is_searching else self.rate + STEP * self._top
        self.rate = min(self._top, max(self.rate, self._top / LEAST))

    def is_over(self, now: float) -> bool:
        """Return whether brakes were heard and have ceased; the rate is the configured one again then."""
        if self._heard_at == -inf or now < self._heard_at + SILENCE:
            return False
        self._heard_at, self.rate = -inf, self._top
        return True
