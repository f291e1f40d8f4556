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
    from sim.kernel import Kernel

__all__ = ["Occurrence", "Timers", "post"]

ARRIVAL, TIMER = 1, 2
"""SimPy priorities; NORMAL is 1 too."""
_BULK = 32


class Occurrence:
    """The slim event: as much of SimPy's Event as its loop looks at, with one callback; restored, it can be posted again."""

    __slots__ = ("callbacks", "content")
    _ok = True

    def __init__(self, callbacks: tuple[Callable[[Any], None], ...], content: Any) -> None:
        # SimPy's own step takes them away.
        self.callbacks: Any = callbacks
        self.content = content

    def __lt__(self, other: object) -> bool:
        # Time, priority and order tell all events apart but dead ones from those that took their place.
        return False


def post(env: Environment, when: float, priority: int, order: int, occurrence: Occurrence) -> None:
    """Put an occurrence into SimPy's queue at exactly `when`, which `schedule(delay=...)` might miss by rounding."""
    heappush(env._queue, (when, priority, order, occurrence))  # type: ignore[misc]


class Timers:
    """Wakes machines. A host's one pending wake-up is the entry equal to its `armed`.

    Hosts to be woken at one time share an entry: thousands look for a silent sender at the same time. Entries die lazily: an
    earlier deadline leaves the old one stale, a later one is looked up when it is reached. Dead entries at the front go before
    SimPy is asked for an event, in bulk when there are many.
    """

    def __init__(self, schedule: "Kernel", hosts: "list[SimHost | None]") -> None:
        self._schedule = schedule
        self._env = schedule.env
        self._hosts = hosts
        # A heap of times, and the places of the hosts to be woken then: a list when there are several.
        self._times: list[float] = []
        self._places: dict[float, int | list[int]] = {}
        self._tick_at = inf
        self._callbacks = (self._on_tick,)
        self._tick = Occurrence(self._callbacks, None)
        self.fresh: list[tuple[float, int]] = []
        """Wake-ups asked for since the last `flush`."""

    def flush(self) -> None:
        """Take in the fresh wake-ups and see to it that SimPy comes back for the first."""
        times, fresh = self._times, self.fresh
        new = [when for when, place in fresh if self._enter(when, place)]
        if len(new) > _BULK and len(new) > len(times) >> 3:
            times.extend(new)
            heapify(times)
        else:
            for when in new:
                heappush(times, when)
        fresh.clear()
        if times and times[0] < self._tick_at:
            self._aim()

    def _enter(self, when: float, place: int) -> bool:
        """Note that a host is to be woken; True when nobody else was at that time."""
        there = self._places.get(when)
        if there is None:
            self._places[when] = place
            return True
        if type(there) is list:
            there.append(place)
        else:
            self._places[when] = [there, place]  # type: ignore[list-item]
        return False

    def _aim(self) -> None:
        """See to it that SimPy comes back for the first entry that lives."""
        when = self._first()
        if when < self._tick_at:
            self._post_tick(when)

    def _lives(self, when: float, place: int) -> bool:
        """Is the host to be woken then? If its deadline only moved later, it is entered there."""
        host = self._hosts[place]
        assert host is not None
        if host.parked == when:
            # It is not any more, if this entry goes.
            host.parked = inf
        if host.armed != when:
            return False
        # Not a `Machine` to the compiler: a gate computes its deadline (`sim.fault_shim`).
        machine: Any = host.machine
        later: float = machine.deadline
        if later <= when:
            return True
        self._move(host, later)
        return False

    def _move(self, host: "SimHost", later: float) -> None:
        """The host is to be woken at this time, for which it may be entered already."""
        host.armed = later
        if later != host.parked and later < inf and self._enter(later, host.place):
            heappush(self._times, later)

    def _is_dead(self, when: float) -> bool:
        """Is nobody to be woken then? Clears the dead from the end of the entry."""
        there = self._places[when]
        if type(there) is not list:
            return not self._lives(when, there)  # type: ignore[arg-type]
        while there:
            if self._lives(when, there[-1]):
                return False
            there.pop()
        return True

    def _first(self) -> float:
        """The time of the first entry that lives. Dead ones before it go, and all others too when these are many."""
        times, places = self._times, self._places
        for _ in range(_BULK):
            if not times:
                return inf
            when = times[0]
            there = places[when]
            # As `_is_dead` for the one there is nearly always, without a call.
            if self._lives(when, there) if type(there) is int else not self._is_dead(when):
                return when
            # An entry that only moved is behind it now.
            heappop(times)
            del places[when]
        for when in list(places):
            if self._is_dead(when):
                del places[when]
        times[:] = places
        heapify(times)
        return times[0] if times else inf

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
        schedule, now, times = self._schedule, self._env._now, self._times
        schedule.busy = True
        while times and times[0] <= now:
            when = heappop(times)
            there = self._places.pop(when)
            for place in sorted(there) if type(there) is list else (there,):
                self._wake(place, when, now)  # type: ignore[arg-type]
        schedule.settle_inputs()
        if times and self._tick_at == inf:
            self._aim()

    def _wake(self, place: int, when: float, now: float) -> None:
        host = self._hosts[place]
        assert host is not None
        if host.armed != when:
            return
        machine: Any = host.machine
        host.armed = inf
        later: float = machine.deadline
        if later <= now:
            plans_bursts = getattr(machine, "plans_bursts", False)
            if getattr(machine, "fast_state", None) is not None and machine.fast_state.coordinator is not None:
                machine.wake_in_lockstep(now)
            if plans_bursts:
                # It may go on as it did.
                self._schedule.look_ahead(host)
            if machine.deadline <= now:
                machine.wake(now)
                if plans_bursts:
                    self._schedule.look_ahead(host)
            later = machine.deadline
            if later <= now:
                raise LivelockError(f"{host.name} asks at {now!r} to be woken at {later!r}")
        if later < host.armed:
            self._move(host, later)
