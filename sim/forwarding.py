"""How packets get from a node to the places at the far ends of its links: one strategy object for each way to do it."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from heapq import heappush
from typing import Any

from mypy_extensions import mypyc_attr

from protocols.errors import ContractError
from sim.flight import Arrival, Arrivals, Carrier, Flight
from sim.kernel import Kernel
from sim.occurrence import ARRIVAL
from sim.timers import KernelHost

__all__ = ["Faulty", "Forwarding", "Grouped", "Single"]


@mypyc_attr(allow_interpreted_subclasses=True)
class Forwarding(ABC):
    """A way to forward packets; `Fabric.forwarding` is the one in use."""

    @abstractmethod
    def forward(self, flight: Flight, links: Sequence[Carrier], now: float) -> None:
        """Offer a packet to links and post the arrivals of its copies."""


class Grouped(Forwarding):
    """The fast engine's: one event for each distinct time at which copies arrive."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._env = kernel.env
        self._queue: list[Any] = kernel.env._queue
        self._callbacks = (self._on_arrival,)

    def forward(self, flight: Flight, links: Sequence[Carrier], now: float) -> None:
        """See `Forwarding`."""
        arrivals: Arrivals = {}
        for link in links:
            link.carry(flight, now, arrivals)
        order, queue = flight.order, self._queue
        for when in arrivals:
            order += 1
            heappush(queue, (when, ARRIVAL, order, Arrival(self._callbacks, flight, arrivals[when])))
        flight.order = order

    def _on_arrival(self, arrival: Arrival) -> None:
        kernel, flight, now = self._kernel, arrival.content, self._env._now
        with_events = kernel.with_events
        kernel.busy = True
        for place, lost_by in arrival.places:
            if with_events:
                # Two copies may arrive at one host at once; the application receives the events of the first before the second.
                kernel.drain()
            place.arrive(flight, lost_by, now)
        kernel.settle_inputs()


class Single(Forwarding):
    """The strict engine's: one event for each copy; checks that machines announce earlier deadlines.

    A machine that moves its deadline to an earlier time without `Ports.alarm` raises ContractError.
    """

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._env = kernel.env
        self._queue: list[Any] = kernel.env._queue
        self._callbacks = (self._on_arrival,)

    def forward(self, flight: Flight, links: Sequence[Carrier], now: float) -> None:
        """See `Forwarding`."""
        arrivals: Arrivals = {}
        for link in links:
            link.carry(flight, now, arrivals)
        for when, places in arrivals.items():
            for place in places:
                flight.order = order = flight.order + 1
                heappush(self._queue, (when, ARRIVAL, order, Arrival(self._callbacks, flight, [place])))

    def _on_arrival(self, arrival: Arrival) -> None:
        ((place, lost_by),) = arrival.places
        self._kernel.busy = True
        place.arrive(arrival.content, lost_by, self._env._now)
        if isinstance(place, KernelHost):
            # Not a `Machine` to the compiler: a fault shim computes its deadline.
            machine: Any = place.machine
            if machine.deadline < place.armed:
                raise ContractError(f"{place.name} did not announce that its deadline moved earlier")
        self._kernel.settle()


class Faulty(Forwarding):
    """Forwards by another strategy, but not over links that are down."""

    def __init__(self, inner: Forwarding) -> None:
        self._inner = inner
        self.down: list[Carrier] = []
        """Links that are down, once for each fault."""
        self.dropped = 0
        """Packets that were to go over such a link."""

    def forward(self, flight: Flight, links: Sequence[Carrier], now: float) -> None:
        """See `Forwarding`."""
        if self.down:
            up = [link for link in links if link not in self.down]
            self.dropped += len(links) - len(up)
            links = up
        self._inner.forward(flight, links, now)
