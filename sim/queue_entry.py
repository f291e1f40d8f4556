"""The simulator's own entries of SimPy's event queue, and their order at one instant.

At one instant, actions of users' processes and of `later` come first, then arrivals of packets, then timers of machines by
place of the host, then timers of connections (`sim.tcp.idle_timers.TCP_TIMER`). Arrivals of one instant are ordered by (place
of the host that sent the packet, order in which that host sent), which does not depend on how an engine groups its work.
"""

from collections.abc import Callable
from heapq import heappush
from typing import Any, Final

from simpy import Environment

__all__ = ["ARRIVAL", "TIMER", "QueueEntry", "post"]

ARRIVAL: Final = 1
TIMER: Final = 2
"""SimPy priorities; NORMAL is 1 too."""


class QueueEntry:
    """A small event with one callback: the part of SimPy's `Event` that SimPy's loop uses. It may be posted again."""

    __slots__ = ("callbacks", "content")
    _ok = True

    def __init__(self, callbacks: tuple[Callable[[Any], None], ...], content: Any) -> None:
        # SimPy's own step sets this to None.
        self.callbacks: Any = callbacks
        self.content = content

    def __lt__(self, other: object) -> bool:
        # Time, priority and order tell all events apart, except cancelled ones from those that replaced them.
        return False


def post(env: Environment, when: float, priority: int, order: int, entry: QueueEntry) -> None:
    """Put an entry into SimPy's queue at exactly `when`, which `schedule(delay=...)` might miss by rounding."""
    heappush(env._queue, (when, priority, order, entry))  # type: ignore[misc]
