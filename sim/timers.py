"""The timers of all machines, behind one event of SimPy's queue."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from heapq import heapify, heappop, heappush
from math import inf
from typing import TYPE_CHECKING, Any, Final

from mypy_extensions import mypyc_attr

from protocols.errors import LivelockError
from protocols.machine import Machine
from protocols.rng import Rng
from sim.idle import IDLE
from sim.queue_entry import TIMER, QueueEntry

if TYPE_CHECKING:
    from sim.kernel import Kernel

__all__ = ["KernelHost", "Timers"]

_BULK: Final = 32


@mypyc_attr(allow_interpreted_subclasses=True)
class KernelHost(Rng, ABC):
    """The interface of a host to the kernel: the machine it runs, and the wake-ups entered for it.

    The host is its own stream of random numbers, because a separate object would cost 56 bytes for each host. Subclasses
    compute the key, which would cost 36 bytes more: few random numbers are drawn.
    """

    __slots__ = ("armed", "machine", "parked", "place")

    def __init__(self, place: int) -> None:
        super().__init__(None)
        self.place = place
        """In `Topology.hosts`."""
        self.machine: Machine = IDLE
        self.armed = inf
        """When the pending wake-up comes (seconds)."""
        self.parked = inf
        """A later time with an entry of this host, left from before an earlier wake-up was requested."""

    @property
    @abstractmethod
    def name(self) -> str:
        """As in `Topology.hosts`."""

    @abstractmethod
    def arm(self, when: float) -> None:
        """Wake the machine at this simulated time, unless an earlier wake-up is pending."""

    @abstractmethod
    def drain(self) -> None:
        """Deliver all pending events to the application."""


class Timers:
    """Wakes machines at their deadlines, by a heap of times with the hosts to be woken at each.

    The pending wake-up of a host is the entry at its `armed`. Hosts with the same wake-up time share an entry: thousands of
    receivers check for a silent sender at once. Entries are cancelled lazily: an earlier deadline leaves the old entry stale,
    and a later one is found when the old entry is reached. Stale entries at the front are removed before the event in SimPy's
    queue is posted, in bulk when there are many.

    `expire(host, now)` is called for a machine whose deadline has come. LivelockError when its deadline is still not later than
    `now` afterwards.
    """

    def __init__(self, kernel: "Kernel", hosts: list[KernelHost | None], expire: Callable[[KernelHost, float], None]) -> None:
        self._kernel = kernel
        self._env = kernel.env
        self._queue, self._orders = kernel.queue, kernel.env._eid
        self._hosts = hosts
        self._expire = expire
        # A heap of times, and the places of the hosts to be woken then: a list when there are several.
        self._times: list[float] = []
        self._places: dict[float, int | list[int]] = {}
        self._tick_at = inf
        self._callbacks = (self._on_tick,)
        self._tick = QueueEntry(self._callbacks, None)
        self.requests: list[tuple[float, int]] = []
        """Wake-ups requested since the last `flush`, as (time in seconds, place)."""

    def flush(self) -> None:
        """Enter the requested wake-ups, and post an event for the first one."""
        times, requests = self._times, self.requests
        for when, place in requests:
            self._enter(when, place)
        requests.clear()
        if times and times[0] < self._tick_at:
            self._post_first()

    def _enter(self, when: float, place: int) -> None:
        """Add a host to the entry of a time; a new one is made if need be."""
        places = self._places
        there = places.get(when)
        if there is None:
            places[when] = place
            heappush(self._times, when)
        elif type(there) is list:
            there.append(place)
        else:
            places[when] = [there, place]  # type: ignore[list-item]

    def _post_first(self) -> None:
        """Post an event for the first valid entry, unless an earlier one is posted."""
        when = self._first()
        if when >= self._tick_at:
            return
        tick = self._tick
        if self._tick_at < inf:
            # The tick in SimPy's queue is too late; it stays there and is ignored.
            tick = self._tick = QueueEntry(self._callbacks, None)
        else:
            tick.callbacks = self._callbacks
        self._tick_at = when
        now = self._env._now
        heappush(self._queue, (when if when > now else now, TIMER, next(self._orders), tick))

    def _is_valid(self, when: float, place: int) -> bool:
        """Return whether the host is still to be woken then; if its deadline moved later, it is entered at that time."""
        host = self._hosts[place]
        assert host is not None
        if host.parked == when:
            # This entry may be removed now.
            host.parked = inf
        if host.armed != when:
            return False
        # Not a `Machine` to the compiler: a fault shim computes its deadline.
        machine: Any = host.machine
        later: float = machine.deadline
        if later <= when:
            return True
        self._move(host, later)
        return False

    def _move(self, host: KernelHost, later: float) -> None:
        """Set the pending wake-up of a host to this time, for which it may have an entry already."""
        host.armed = later
        if later != host.parked and later < inf:
            self._enter(later, host.place)

    def _is_stale(self, when: float) -> bool:
        """Return whether no host is to be woken then. Removes stale hosts from the end of the entry."""
        there = self._places[when]
        if type(there) is not list:
            return not self._is_valid(when, there)  # type: ignore[arg-type]
        while there:
            if self._is_valid(when, there[-1]):
                return False
            there.pop()
        return True

    def _first(self) -> float:
        """Return the time of the first valid entry; removes stale ones before it, and all stale ones when these are many."""
        times, places = self._times, self._places
        for _ in range(_BULK):
            if not times:
                return inf
            when = times[0]
            there = places[when]
            # As `_is_stale` for an entry of one host, which nearly all are, without a call.
            if self._is_valid(when, there) if type(there) is int else not self._is_stale(when):
                return when
            # A host whose deadline moved later has an entry further back now.
            heappop(times)
            del places[when]
        for when in list(places):
            if self._is_stale(when):
                del places[when]
        times[:] = places
        heapify(times)
        return times[0] if times else inf

    def _on_tick(self, tick: QueueEntry) -> None:
        if tick is not self._tick:
            return
        self._tick_at = inf
        kernel, now, times = self._kernel, self._env._now, self._times
        kernel.busy = True
        while times and times[0] <= now:
            when = heappop(times)
            there = self._places.pop(when)
            if type(there) is int:
                self._wake(there, when, now)
            else:
                for place in sorted(there):  # type: ignore[arg-type]
                    self._wake(place, when, now)
        kernel.settle_inputs()
        if times and self._tick_at == inf:
            self._post_first()

    def _wake(self, place: int, when: float, now: float) -> None:
        host = self._hosts[place]
        assert host is not None
        if host.armed != when:
            return
        machine: Any = host.machine
        host.armed = inf
        later: float = machine.deadline
        if later <= now:
            self._expire(host, now)
            later = machine.deadline
            if not later > now:
                # Nor is nan.
                raise LivelockError(f"{host.name} is due at {later!r} after its wake-up at {now!r}; it must be due later")
        if later < host.armed:
            self._move(host, later)
