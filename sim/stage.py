"""Stages of a packet within a node or link: waits that end by an arrival, so the engines have no code for them."""

from collections.abc import Callable, Sequence
from typing import TypeAlias

from sim.flight import Arrivals, Flight

__all__ = ["Stage", "Then"]

Then: TypeAlias = Callable[[Flight, float], None]
"""Called with a packet and the time (seconds) at which it goes on."""


class Stage:
    """Holds any number of packets, each from `now` until `until(packet, now)`; then calls `then(packet, time)`."""

    __slots__ = ("_then", "_until")

    def __init__(self, until: Callable[[Flight, float], float], then: Then) -> None:
        self._until = until
        self._then = then

    def carry(self, flight: Flight, now: float, arrivals: Arrivals) -> None:
        """Take a packet, as a link does."""
        arrivals.setdefault(self._until(flight, now), []).append((self, ()))

    def arrive(self, flight: Flight, lost_by: Sequence[int], now: float) -> None:
        """Pass the packet on, as a place does."""
        del lost_by
        self._then(flight, now)
