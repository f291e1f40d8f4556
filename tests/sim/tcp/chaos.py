"""A network that treats segments by any pattern of loss, duplication and delay, with links that fail."""

import os
from collections.abc import Sequence
from typing import Final

from sim.flight import Carrier, Flight, Forwarding
from sim.network import Network
from sim.tcp.segment import Segment

__all__ = ["EXAMPLES", "Chaos"]

EXAMPLES: Final = int(os.environ.get("MCASTLAB_TCP_EXAMPLES", "300"))
"""How many patterns are tried."""


class Chaos(Forwarding):
    """Treats the segments that hosts send by a pattern, one entry for each; those after its end go through.

    0 delivers a segment, 1 drops it, 2 duplicates it, and n > 2 delays it by 10 ms * 2^(n - 3).
    """

    def __init__(self, network: Network, pattern: Sequence[int]) -> None:
        self._network = network
        self._inner = network.fabric.forwarding
        self._pattern = pattern
        self._next = 0
        network.fabric.forwarding = self

    def forward(self, flight: Flight, links: Sequence[Carrier], now: float) -> None:
        """See `Forwarding`."""
        # The lower bits of a packet's order count where it has been.
        is_new = flight.order & 0xFFFFFF == 0
        if not is_new or not isinstance(flight.message, Segment) or self._next >= len(self._pattern):
            self._inner.forward(flight, links, now)
            return
        what = self._pattern[self._next]
        self._next += 1
        if what > 2:
            later = now + 0.01 * 2 ** (what - 3)
            self._network.later(later, lambda: self._inner.forward(flight, links, later))
            return
        for _ in range((1, 0, 2)[what]):
            self._inner.forward(flight, links, now)
