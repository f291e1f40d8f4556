"""The kernel of the simulation: the clock, the event queue, and the settling of the inputs of one instant.

Time is SimPy's. The kernel processes SimPy's queue, and runs what one input causes: applications receive their events in order
of place, then timers are set.
"""

import gc
from abc import ABC, abstractmethod
from collections.abc import Callable
from heapq import heappop, heappush
from math import inf
from operator import attrgetter
from typing import Any, Final

from mypy_extensions import mypyc_attr, trait
from simpy import Environment

from protocols.events import Event
from sim.queue_entry import ARRIVAL, QueueEntry, next_delta, post
from sim.timers import KernelHost, Timers

__all__ = ["Kernel", "Pending"]

GC_THRESHOLD: Final = 50_000

_place_of: Final = attrgetter("place")


@mypyc_attr(allow_interpreted_subclasses=True)
@trait
class Pending(ABC):
    """Work to be done once when the present input is over."""

    @abstractmethod
    def settle(self) -> None:
        """Do it; may not add to `Kernel.pending`."""


class Kernel:
    """The time of one network.

    `hosts` are those made so far, by place. `expire(host, now)` handles the deadline of a host's machine.
    """

    def __init__(
        self, environment: Environment, hosts: list[KernelHost | None], expire: Callable[[KernelHost, float], None]
    ) -> None:
        self.env = environment
        self.hosts = hosts
        self.events = 0
        """SimPy events processed by `run`."""
        self.key: tuple[Any, ...] = (0.0, 0, 0)
        """Time, priority and order of the present event, or of the point up to which all events were processed."""
        self.busy = False
        """Whether an input is being handled, after which `settle` follows."""
        self.with_events: dict[KernelHost, Event | list[Event]] = {}
        """Events that applications have not received, by host; a list when there are several."""
        self.notified = False
        """Whether an application has received an event since the last `settle`."""
        self.pending: list[Pending] = []
        """Work to be done when the present input is over."""
        self.queue: list[Any] = environment._queue
        """SimPy's heap of events."""
        self.timers = Timers(self, hosts, expire)
        self._requests = self.timers.requests
        self._over: Callable[[], bool] | None = None
        self._finished = False
        self._on_action = (self._act,)

    # The inputs of one instant

    def later(self, when: float, action: Callable[[], None]) -> None:
        """Run `action()` at `when` (seconds), or now if that is past."""
        now, order = self.env._now, next(self.env._eid)
        if when <= now:
            when = now
            if self.key[1] == ARRIVAL and self.key[0] == now:
                order += next_delta(self.key[2])
        post(self.queue, when, ARRIVAL, order, QueueEntry(self._on_action, action))

    def _act(self, entry: QueueEntry) -> None:
        self.busy = True
        entry.content()
        self.notified = True
        self.settle()

    def settle(self) -> None:
        """End the inputs of one instant: deliver events to applications in order of place, then set timers."""
        self.busy = True
        if self.with_events:
            self.drain()
        if self.pending:
            for work in self.pending:
                work.settle()
            self.pending.clear()
        if self._requests:
            self.timers.flush()
        self.busy = False
        if self.notified:
            self.notified = False
            if self._over is not None and self._over():
                self._finished = True

    def settle_inputs(self) -> None:
        """As `settle`, after inputs that seldom cause anything."""
        if self.with_events or self._requests or self.pending:
            self.settle()
        else:
            self.busy = False

    def drain(self) -> None:
        """Deliver pending events to applications in order of place."""
        while self.with_events:
            for host in sorted(self.with_events, key=_place_of):
                host.drain()
            if not self.with_events:
                # A dictionary keeps the memory of entries that were deleted.
                self.with_events.clear()

    # Running

    def run(self, until: float = inf, over: Callable[[], bool] | None = None) -> None:
        """Process events until `over()` is true, until `until` (seconds), or until none is left; may be called again.

        `over` is called at the beginning and whenever applications received events or a `later` action was run. Events at
        exactly `until` are left for the next call; time then stands at `until`.
        """
        env, queue = self.env, self.queue
        self._over = over
        self._finished = over is not None and over()
        thresholds = gc.get_threshold()
        # A run makes millions of short-lived objects and hardly a cycle; to look for cycles as usual costs a twentieth.
        gc.set_threshold(max(thresholds[0], GC_THRESHOLD), *thresholds[1:])
        try:
            # Not `while queue`: CPython 3.11 specialises a function that is called once only at an unconditional jump back.
            while True:
                if self._finished or not queue:
                    break
                key: tuple[Any, ...] = heappop(queue)
                when, event = key[0], key[3]
                if when >= until:
                    heappush(queue, key)
                    break
                self.key = key
                self.events += 1
                if isinstance(event, QueueEntry):
                    # What `env.step()` does, without what our own events never need.
                    env._now = when
                    event.callbacks[0](event)
                else:
                    heappush(queue, key)
                    env.step()
        finally:
            gc.set_threshold(*thresholds)
            self._over = None
        if not self._finished and env.now < until < inf:
            # Nothing is left to happen before; `env.run` would leave an event of its own behind.
            env._now = until
            self.key = (until, -1, 0)

    def step(self) -> bool:
        """Process the next event; False when none is left."""
        if not self.queue:
            return False
        self.events += 1
        self.key = self.queue[0]
        self.env.step()
        return True

    @property
    def next_at(self) -> float:
        """The time of the next event (seconds); inf when none is left."""
        return self.queue[0][0] if self.queue else inf

    def pause(self) -> None:
        """End the `run` in progress after the present event; to be called from an application or a SimPy process."""
        self._finished = True
