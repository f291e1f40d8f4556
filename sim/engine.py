"""What the simulator puts into SimPy's queue, and the timers of all machines behind one SimPy event.

Order of things at one instant: first what users' processes and `later` actions do, then packets that arrive, then timers by
place of the host. Packets of one instant come in order of (place of the host that sent them, when that host sent them), which
does not depend on how the engine groups its work.
"""

from collections.abc import Callable
from heapq import heapify, heappop, heappush
from math import inf
from typing import TYPE_CHECKING, Any

from simpy import Environment

from protocols.errors import LivelockError

if TYPE_CHECKING:
    from sim.host import SimHost

__all__ = ["Occurrence", "Timers", "post"]

ARRIVAL, TIMER = 1, 2
"""SimPy priorities; NORMAL is 1 too."""
_BULK = 32


class Occurrence:
    """The slim event: as much of SimPy's Event as its loop looks at, with one callback; restored, it can be posted again."""

    __slots__ = ("callbacks", "content")
    _ok = True

    def __init__(self, callbacks: tuple[Callable[[Any], None], ...], content: Any) -> None:
        self.callbacks = callbacks
        self.content = content


def post(env: Environment, when: float, priority: int, order: int, occurrence: Occurrence) -> None:
    """Put an occurrence into SimPy's queue at exactly `when`, which `schedule(delay=...)` might miss by rounding."""
    heappush(env._queue, (when, priority, order, occurrence))  # type: ignore[misc]


class Timers:
    """Wakes machines. A heap of (when, place of the host); a host's one pending wake-up is the entry equal to its `armed`.

    Entries die lazily: an earlier deadline leaves the old entry stale, a later one is looked up when the entry is reached. Dead
    entries at the front are cleared before SimPy is asked for an event, in bulk when there are many.
    """

    def __init__(self, env: Environment, hosts: "list[SimHost | None]", settle: Callable[[], None]) -> None:
        self._env = env
        self._hosts = hosts
        self._settle = settle
        self.spoke: list[SimHost] = []
        """Hosts with events their applications have not heard."""
        self._heap: list[tuple[float, int]] = []
        self._tick_at = inf
        self._callbacks = (self._on_tick,)
        self._tick = Occurrence(self._callbacks, None)
        self.fresh: list[tuple[float, int]] = []
        """Wake-ups asked for since the last `flush`."""

    def flush(self) -> None:
        """Take in the fresh wake-ups and see to it that SimPy comes back for the first."""
        heap, fresh = self._heap, self.fresh
        if len(fresh) > _BULK and len(fresh) > len(heap) >> 3:
            heap.extend(fresh)
            heapify(heap)
        else:
            for entry in fresh:
                heappush(heap, entry)
        fresh.clear()
        if heap and heap[0][0] < self._tick_at:
            self._aim()

    def _aim(self) -> None:
        """See to it that SimPy comes back for the first entry that lives."""
        when, place = self._heap[0]
        host = self._hosts[place]
        assert host is not None
        if host.armed != when or host.machine.deadline > when:
            when = self._first()
        if when < self._tick_at:
            self._post_tick(when)

    def _current(self, entry: tuple[float, int]) -> tuple[float, int] | None:
        """The entry itself while it lives, the one in its place when the deadline only moved later, None when there is none."""
        when, place = entry
        host = self._hosts[place]
        assert host is not None
        if host.armed != when:
            return None
        later = host.machine.deadline
        if later <= when:
            return entry
        host.armed = later
        return (later, place) if later < inf else None

    def _first(self) -> float:
        """The time of the first entry that lives. Dead ones before it go, and all others too when these are many."""
        heap = self._heap
        for _ in range(_BULK):
            if not heap:
                return inf
            entry = heap[0]
            current = self._current(entry)
            if current is entry:
                return entry[0]
            heappop(heap)
            if current is not None:
                heappush(heap, current)
        heap[:] = [current for entry in heap if (current := self._current(entry)) is not None]
        heapify(heap)
        return heap[0][0] if heap else inf

    def _post_tick(self, when: float) -> None:
        tick = self._tick
        if self._tick_at < inf:
            # The tick on its way comes too late; it stays in SimPy's queue and is ignored when it comes.
            tick = self._tick = Occurrence(self._callbacks, None)
        else:
            tick.callbacks = self._callbacks
        self._tick_at = when
        env = self._env
        now = env._now
        heappush(env._queue, (when if when > now else now, TIMER, next(env._eid), tick))  # type: ignore[misc]

    def _on_tick(self, tick: Occurrence) -> None:
        if tick is not self._tick:
            return
        self._tick_at = inf
        now, heap, hosts = self._env._now, self._heap, self._hosts
        while heap and heap[0][0] <= now:
            when, place = heappop(heap)
            host = hosts[place]
            assert host is not None
            if host.armed != when:
                continue
            machine = host.machine
            host.armed = inf
            later = machine.deadline
            if later <= now:
                if machine.seat.pace is not None:
                    machine.alone()
                machine.wake(now)
                later = machine.deadline
                if later <= now:
                    raise LivelockError(f"{host.name} asks at {now!r} to be woken at {later!r}")
            if later < host.armed:
                host.armed = later
                heappush(heap, (later, place))
        if self.spoke or self.fresh:
            self._settle()
        elif heap:
            self._aim()
