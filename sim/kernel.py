"""When things happen in a network: SimPy's queue, the inputs of one moment, and what these cause."""

import gc
from abc import ABC, abstractmethod
from collections.abc import Callable
from heapq import heappop
from math import inf
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from mypy_extensions import mypyc_attr
from simpy import Environment

from sim.engine import ARRIVAL, Occurrence, Timers, post

if TYPE_CHECKING:
    from sim.fast.lookahead import Lookahead
    from sim.host import SimHost

__all__ = ["Kernel"]

GC_THRESHOLD = 50_000

_place_of = attrgetter("place")


@mypyc_attr(allow_interpreted_subclasses=True)
class Kernel(ABC):
    """Time of a network. `hosts` are those made so far, by place."""

    def __init__(self, environment: Environment, hosts: "list[SimHost | None]") -> None:
        self.env = environment
        self.events = 0
        """SimPy events processed by `run`."""
        self.key: tuple[Any, ...] = (0.0, 0, 0)
        """Time, priority and order of the event under way, or of where time stands: what comes before has happened."""
        self.busy = False
        """Is an input under way, after which `settle` comes?"""
        self.spoke: list[SimHost] = []
        """Hosts with events their applications have not heard."""
        self.told = False
        """Has an application heard something since the last `settle`?"""
        self.unsettled: list[Lookahead] = []
        """Those that may have more to carry, or somebody to tell, when the present input is over."""
        self.timers = Timers(self, hosts)
        self._fresh = self.timers.fresh
        self._queue: list[Any] = environment._queue
        self._over: Callable[[], bool] | None = None
        self._finished = False
        self._due = (self._on_due,)

    @abstractmethod
    def look_ahead(self, host: "SimHost") -> None:
        """The host's machine had an input, and may foresee what it sends."""

    # The inputs of one moment

    def later(self, when: float, action: Callable[[], None]) -> None:
        """Run `action()` at `when`, or now if that is past."""
        post(self.env, max(when, self.env.now), ARRIVAL, next(self.env._eid), Occurrence(self._due, action))

    def _on_due(self, occurrence: Occurrence) -> None:
        self.busy = True
        occurrence.content()
        self.told = True
        self.settle()

    def settle(self) -> None:
        """After the inputs of one moment: applications hear their events in order of place, timers are set."""
        self.busy = True
        if self.spoke:
            self.tell()
        if self.unsettled:
            for lookahead in self.unsettled:
                lookahead.settle()
            self.unsettled.clear()
        if self._fresh:
            self.timers.flush()
        self.busy = False
        if self.told:
            self.told = False
            if self._over is not None and self._over():
                self._finished = True

    def settle_inputs(self) -> None:
        """As `settle`, when nobody may have said anything."""
        if self.spoke or self._fresh or self.unsettled:
            self.settle()
        else:
            self.busy = False

    def tell(self) -> None:
        """Applications hear their events in order of place."""
        while self.spoke:
            spoke = sorted(self.spoke, key=_place_of) if len(self.spoke) > 1 else self.spoke.copy()
            self.spoke.clear()
            for host in spoke:
                host.drain()

    # Running

    def run(self, until: float = inf, over: Callable[[], bool] | None = None) -> None:
        """Until `over()` is true, `until`, or nothing is left to happen; may be called again to go on.

        `over` is asked at the beginning and whenever applications were told something or a `later` action was done. Events at
        exactly `until` are left for the next call; time then stands at `until`.
        """
        env, queue = self.env, self._queue
        self._over = over
        self._finished = over is not None and over()
        thresholds = gc.get_threshold()
        # A run makes millions of short-lived objects and hardly a cycle; to look for cycles as usual costs a twentieth.
        gc.set_threshold(max(thresholds[0], GC_THRESHOLD), *thresholds[1:])
        try:
            while not self._finished and queue:
                key = queue[0]
                when, _, _, event = key
                if when >= until:
                    break
                self.events += 1
                self.key = key
                if isinstance(event, Occurrence):
                    # What `env.step()` does, without what our own events never need.
                    heappop(queue)
                    env._now = when
                    event.callbacks[0](event)
                else:
                    env.step()
        finally:
            gc.set_threshold(*thresholds)
            self._over = None
        if not self._finished and env.now < until < inf:
            # Nothing is left to happen before; `env.run` would leave an event of its own behind.
            env._now = until
            self.key = (until, -1, 0)

    def step(self) -> bool:
        """Let the next thing happen; False when nothing is left to happen."""
        if not self._queue:
            return False
        self.events += 1
        self.key = self._queue[0]
        self.env.step()
        return True

    @property
    def now(self) -> float:
        """Simulated seconds since the run began."""
        return float(self.env.now)

    @property
    def next_at(self) -> float:
        """When the next thing happens; inf when nothing is left."""
        return self._queue[0][0] if self._queue else inf

    def pause(self) -> None:
        """Let the `run` under way end after the present event; to be called from an application or a SimPy process."""
        self._finished = True
