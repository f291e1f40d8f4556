"""The rate at which a receiver gets a sender's packets (RFC 4654 2.2)."""

from typing import Final

__all__ = ["ReceiveRate"]

SHORTEST: Final = 0.1
"""Seconds over which the rate is measured at the least, as in NRL NORM: a few packets of a batch say little."""


class ReceiveRate:
    """Measures bytes per second between arrivals that are a round-trip time or more apart; `value` is 0 before the first."""

    __slots__ = ("_began", "_octets", "highest", "value")

    def __init__(self) -> None:
        self.value = self.highest = 0.0
        """The last rate measured, and the highest; bytes per second."""
        self._began: float | None = None
        self._octets = 0

    def arrived(self, octets: int, now: float, rtt: float) -> None:
        """Count a packet of so many bytes; `rtt` is in seconds."""
        if self._began is None:
            # The first packet only begins the time in which the others are counted.
            self._began = now
            return
        self._octets += octets
        elapsed = now - self._began
        if elapsed < max(rtt, SHORTEST):
            return
        self.value = self._octets / elapsed
        self.highest = max(self.highest, self.value)
        self._began, self._octets = now, 0
