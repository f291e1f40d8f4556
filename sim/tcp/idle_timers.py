"""The keep-alive timers of all connections of a network, behind one event of SimPy's queue."""

from heapq import heappop, heappush
from typing import Final, Protocol

from sim.kernel import Kernel
from sim.queue_entry import QueueEntry, post

__all__ = ["TCP_TIMER", "Expiring", "IdleTimers"]

TCP_TIMER: Final = 3
"""SimPy priority of timers of connections: after the timers of machines at the same instant."""


class Expiring(Protocol):
    """The interface of an end of a connection to its timers."""

    order: int
    """Among the timers of one instant."""

    def expire(self, now: float) -> None:
        """Handle the timers that have expired."""


class IdleTimers:
    """A heap of times at which ends of connections check whether their peers are silent.

    Every connection has two such timers, and most have nothing else under way. The first one is in SimPy's queue, at the place
    where its own event would be.
    """

    __slots__ = ("_first", "_kernel", "_on_time", "_timers")

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        # Time (seconds), order and end.
        self._timers: list[tuple[float, int, Expiring]] = []
        self._on_time = (self._expire,)
        self._first: QueueEntry | None = None

    def add(self, end: Expiring, when: float) -> None:
        """Call `expire` of an end at `when` (seconds)."""
        timer = (when, end.order, end)
        heappush(self._timers, timer)
        if self._timers[0] is timer:
            self._post_first()

    def _post_first(self) -> None:
        when, order, _ = self._timers[0]
        self._first = QueueEntry(self._on_time, None)
        post(self._kernel.env, when, TCP_TIMER, order, self._first)

    def _expire(self, entry: QueueEntry) -> None:
        """Handle the first timer; an event is outdated if an earlier timer was added after it."""
        if entry is not self._first:
            return
        kernel = self._kernel
        kernel.busy = True
        self._first = None
        _, _, end = heappop(self._timers)
        end.expire(kernel.env._now)
        kernel.settle_inputs()
        if self._timers and self._first is None:
            self._post_first()
