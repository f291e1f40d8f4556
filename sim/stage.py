"""Stages a packet goes through within a node or link: waits that land like any other packet, so no engine knows of them."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from sim.flight import Flight
    from sim.link import Arrivals

__all__ = ["Stage", "Then"]

Then: TypeAlias = "Callable[[Flight, float], None]"
"""What happens to a packet at a time."""


class Stage:
    """Keeps a packet that comes at `now` until `until(packet, now)`, any number at once; then `then` happens to it."""

    __slots__ = ("_then", "_until")

    def __init__(self, until: "Callable[[Flight, float], float]", then: Then) -> None:
        self._until = until
        self._then = then

    def carry(self, flight: "Flight", now: float, landings: "Arrivals") -> None:
        """The packet comes in; as a link would, for `Network.forward`."""
        landings.setdefault(self._until(flight, now), []).append((self, ()))

    def arrive(self, flight: "Flight", out: Sequence[int], now: float) -> None:
        """The packet goes on; as a place would."""
        del out
        self._then(flight, now)
