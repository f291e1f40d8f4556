"""The simulator's own entries of SimPy's event queue, and their order at one instant.

At one instant, actions of users' processes and of `later` come first, then arrivals of packets, then timers of machines by
place of the host, then timers of connections (`sim.tcp.idle_timers.TCP_TIMER`). Arrivals of one instant are ordered by (delta
cycle, place of the host that sent the packet, order in which that host sent), which does not depend on how an engine groups its
work. The delta cycle is 0, but for what takes no time: the arrival of a packet that was sent in answer to an arrival of the
same instant, and an action that was scheduled then, are one cycle behind it. So no answer overtakes copies of what it answers.
"""

from collections.abc import Callable
from heapq import heappush
from typing import Any, Final

__all__ = ["ARRIVAL", "TIMER", "QueueEntry", "next_delta", "post"]

ARRIVAL: Final = 1
TIMER: Final = 2
"""SimPy priorities; NORMAL is 1 too."""
_FIRST_ARRIVAL: Final = 1 << 80
"""The least order of an arrival."""
_DELTA_BITS: Final = 120
"""The bits of an order below the number of its delta cycle."""


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


def post(queue: list[Any], when: float, priority: int, order: int, entry: QueueEntry) -> None:
    """Put an entry into SimPy's queue, at exactly `when`, which `schedule(delay=...)` might miss by rounding."""
    heappush(queue, (when, priority, order, entry))


def next_delta(order: int) -> int:
    """Return what is added to the order of an effect that takes no time, of an event with this order and priority ARRIVAL."""
    return 0 if order < _FIRST_ARRIVAL else ((order >> _DELTA_BITS) + 1) << _DELTA_BITS
