"""The rate at which a receiver gets a sender's packets (RFC 4654 2.2)."""

from typing import Final

__all__ = ["ReceiveRate"]

SHORTEST: Final = 0.1
"""Seconds over which the rate is measured at the least, as in NRL NORM: a few packets of a batch say little."""
LEAST_PACKETS: Final = 6
"""Packets with content over which the rate is measured at the least."""


class ReceiveRate:
    """Measures bytes per second between arrivals of content that are a round-trip time and some packets apart.

    `value` is the higher one of the last two measurements, 0 before the first: of a few packets, the intervals vary, and some
    packets may be lost (RFC 5348 4.3 takes the maximum of some measurements, too).
    """

    __slots__ = ("_began", "_last", "_octets", "_packets", "highest", "value")

    def __init__(self) -> None:
        self.value = self.highest = 0.0
        """The rate of late, and the highest so far; bytes per second."""
        self._last = 0.0
        self._began: float | None = None
        self._octets = self._packets = 0

    def arrived(self, octets: int, now: float, rtt: float, is_content: bool) -> None:
        """Count a message of so many bytes; `rtt` is in seconds."""
        if self._began is None:
            # The first packet only begins the time in which the others are counted.
            self._began = now if is_content else None
            return
        self._octets += octets
        self._packets += is_content
        elapsed = now - self._began
        if not is_content or self._packets < LEAST_PACKETS or elapsed < max(rtt, SHORTEST):
            return
        rate = self._octets / elapsed
        self.value, self._last = max(rate, self._last), rate
        self.highest = max(self.highest, rate)
        self._began, self._octets, self._packets = now, 0, 0
