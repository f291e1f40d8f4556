"""Open-loop sources: constant, Poisson and on/off traffic without congestion control."""

from collections.abc import Callable
from math import inf, log
from typing import TypeAlias

from protocols.cross.messages import load_of
from protocols.machine import Address, Machine, Message, Packet, Ports
from protocols.rng import Rng

__all__ = ["Gaps", "PacedSource", "constant", "on_off", "poisson"]

Gaps: TypeAlias = Callable[[Rng], Callable[[], float]]
"""Maps a random stream to a function that returns the time to the next packet, in seconds."""


def constant(gap: float) -> Gaps:
    """Return constant interarrival times of `gap` seconds."""
    return lambda rng: lambda: gap


def poisson(gap: float) -> Gaps:
    """Return exponentially distributed interarrival times with mean `gap` seconds."""
    return lambda rng: lambda: _exponential(rng, gap)


def on_off(gap: float, on: float, off: float) -> Gaps:
    """Return interarrival times of an on/off source: a packet every `gap` seconds during on periods.

    On and off periods are exponentially distributed with means `on` and `off`, in seconds. The source starts in an on period.
    """

    def gaps(rng: Rng) -> Callable[[], float]:
        left = _exponential(rng, on)

        def next_gap() -> float:
            nonlocal left
            wait, needed = 0.0, gap
            while needed > left:
                needed -= left
                wait += left + _exponential(rng, off)
                left = _exponential(rng, on)
            left -= needed
            return wait + needed

        return next_gap

    return gaps


def _exponential(rng: Rng, mean: float) -> float:
    return -mean * log(1.0 - rng.uniform())


class PacedSource(Machine):
    """Sends packets of `size` bytes of UDP payload to `to` from `begin` to `end` (seconds), at random gaps."""

    __slots__ = ("_begin", "_end", "_flow", "_gaps", "_next_gap", "_size", "_to", "sent")

    def __init__(self, ports: Ports, flow: int, to: Address, size: int, gaps: Gaps, begin: float, end: float = inf) -> None:
        super().__init__(ports)
        self._flow, self._to, self._size = flow, to, size
        self._begin, self._end = begin, end
        self._next_gap: Callable[[], float] = gaps(ports.rng)
        self.sent = 0

    def start(self, now: float) -> None:
        """Set the timer for the first packet."""
        self._due(max(now, self._begin))

    def receive(self, message: Message, source: Address, to: Address, now: float) -> None:
        """Ignore all messages."""

    def wake(self, now: float) -> None:
        """Send the packets that are due."""
        while self.deadline <= now:
            if self.deadline >= self._end:
                self.deadline = inf
                return
            self.ports.send(Packet(load_of(self._flow, self.sent, self._size), self._size, self._to))
            self.sent += 1
            self.deadline += self._next_gap()

    def counts(self) -> dict[str, int]:
        """Return the packets sent."""
        return {"cross_sent": self.sent}
