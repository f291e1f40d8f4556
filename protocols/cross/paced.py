"""Sources that send at their own pace, whatever the network does with it."""

from collections.abc import Callable
from math import inf, log
from typing import TypeAlias

from protocols.cross.messages import load_of
from protocols.machine import Address, Machine, Message, Packet, Ports
from protocols.rng import Rng

__all__ = ["Gaps", "PacedSource", "constant", "on_off", "poisson"]

Gaps: TypeAlias = Callable[[Rng], Callable[[], float]]
"""Given dice, a function that says how long to wait until the next packet."""


def constant(gap: float) -> Gaps:
    """A packet each `gap` seconds."""
    return lambda rng: lambda: gap


def poisson(gap: float) -> Gaps:
    """Exponential gaps of this mean."""
    return lambda rng: lambda: _exponential(rng, gap)


def on_off(gap: float, on: float, off: float) -> Gaps:
    """A packet each `gap` while on; on and off last exponential times of these means. Begins on."""

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
    """Sends packets of `size` bytes to `to` from `begin` to `end`, at gaps that `gaps` draws."""

    __slots__ = ("_begin", "_end", "_flow", "_gaps", "_next_gap", "_size", "_to", "sent")

    def __init__(self, ports: Ports, flow: int, to: Address, size: int, gaps: Gaps, begin: float, end: float = inf) -> None:
        super().__init__(ports)
        self._flow, self._to, self._size = flow, to, size
        self._begin, self._end = begin, end
        self._next_gap: Callable[[], float] = gaps(ports.rng)
        self.sent = 0

    def start(self, now: float) -> None:
        """Wait for the beginning."""
        self._due(max(now, self._begin))

    def receive(self, message: Message, source: Address, to: Address, now: float) -> None:
        """Nothing is of interest."""

    def wake(self, now: float) -> None:
        """Send what is due."""
        while self.deadline <= now:
            if self.deadline >= self._end:
                self.deadline = inf
                return
            self.ports.send(Packet(load_of(self._flow, self.sent, self._size), self._size, self._to))
            self.sent += 1
            self.deadline += self._next_gap()

    def counts(self) -> dict[str, int]:
        """Packets sent."""
        return {"cross_sent": self.sent}
