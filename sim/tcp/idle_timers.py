"""The keep-alive timers of all connections of a network, behind one event of SimPy's queue."""

from abc import ABC, abstractmethod
from heapq import heappop, heappush
from typing import Final

from sim.kernel import Kernel
from sim.queue_entry import QueueEntry, post

__all__ = ["TCP_TIMER", "Expiring", "IdleTimers"]

TCP_TIMER: Final = 3
"""SimPy priority of timers of connections: after the timers of machines at the same instant."""


class Expiring(ABC):
    """The interface of an end of a connection to its timers. The ends themselves are in the heap, without an entry for each."""

    __slots__ = ()

    idle_at: float
    """When its idle timer expires, in seconds; it does not change before."""
    order: int
    """Among the timers of one instant."""

    def __lt__(self, other: "Expiring") -> bool:
        return (self.idle_at, self.order) < (other.idle_at, other.order)

    @abstractmethod
    def expire_idle(self, now: float) -> None:
        """Handle that its idle timer has expired."""


class IdleTimers:
    """A heap of ends of connections, by the times at which they check whether their peers are silent.

    Every connection has two such timers, and most have nothing else under way. The first one is in SimPy's queue, at the place
    where its own event would be.
    """

    __slots__ = ("_first", "_kernel", "_on_time", "_timers")

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._timers: list[Expiring] = []
        self._on_time = (self._expire,)
        self._first: QueueEntry | None = None

    def add(self, end: Expiring) -> None:
        """Call `expire_idle` of an end at its `idle_at`."""
        heappush(self._timers, end)
        if self._timers[0] is end:
            self._post_first()

    def _post_first(self) -> None:
        end = self._timers[0]
        self._first = QueueEntry(self._on_time, None)
        post(self._kernel.queue, end.idle_at, TCP_TIMER, end.order, self._first)

    def _expire(self, entry: QueueEntry) -> None:
        """Handle the first timer; an event is outdated if an earlier timer was added after it."""
        if entry is not self._first:
            return
        kernel = self._kernel
        kernel.busy = True
        self._first = None
        heappop(self._timers).expire_idle(kernel.env._now)
        kernel.settle_inputs()
        if self._timers and self._first is None:
            self._post_first()
