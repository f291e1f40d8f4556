"""Count packets and bytes per time interval and kind of message."""

from math import floor, log10
from typing import Any

__all__ = ["IntervalCounts", "nice_interval"]

_MOST = 60


def nice_interval(span: float) -> float:
    """Return the shortest interval of 1, 2, 5, 10, ... times a power of ten that divides a span of seconds into at most 60."""
    least = max(span / _MOST, 1e-6)
    power = 10.0 ** floor(log10(least))
    return next(step * power for step in (1, 2, 5, 10) if step * power >= least * (1 - 1e-9))


class IntervalCounts:
    """Counts in intervals of equal length from the first message on."""

    def __init__(self, span: float) -> None:
        self.interval = nice_interval(span)
        self.count = int(span / self.interval) + 1
        self.packets: dict[str, list[int]] = {}
        self.octets: dict[str, list[int]] = {}

    def add(self, kind: str, time: float, size: int) -> None:
        """Count a message of `size` bytes."""
        row = self.packets.get(kind)
        if row is None:
            row = self.packets[kind] = [0] * self.count
            self.octets[kind] = [0] * self.count
        # Captures of several interfaces may be out of time order.
        place = min(max(int(time / self.interval), 0), self.count - 1)
        row[place] += 1
        self.octets[kind][place] += size

    def plain(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {"interval": self.interval, "packets": self.packets, "bytes": self.octets}
