"""Packets and bytes per interval, by kind of message."""

from math import floor, log10
from typing import Any

__all__ = ["IntervalCounts", "nice_interval"]

_MOST = 60


def nice_interval(span: float) -> float:
    """The shortest of 1, 2, 5, 10, ... of which at most 60 cover a span of seconds."""
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
        """A message of so many bytes."""
        row = self.packets.get(kind)
        if row is None:
            row = self.packets[kind] = [0] * self.count
            self.octets[kind] = [0] * self.count
        # Captures of several interfaces are not always in order of time.
        place = min(max(int(time / self.interval), 0), self.count - 1)
        row[place] += 1
        self.octets[kind][place] += size

    def plain(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {"interval": self.interval, "packets": self.packets, "bytes": self.octets}
