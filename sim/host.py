"""A simulated host: runs one machine, and is its ports."""

from collections.abc import Callable
from math import inf
from typing import TYPE_CHECKING, TypeVar

from mypy_extensions import mypyc_attr

from protocols.errors import UsageError
from protocols.events import Event
from protocols.machine import Group, Machine, Offer, Packet, Sink
from protocols.rng import Rng, extend
from sim.fault_shim import FaultShim
from sim.flight import Flight
from sim.idle import IDLE
from sim.timers import KernelHost

if TYPE_CHECKING:
    from sim.endpoint import Endpoint

__all__ = ["SimHost"]

T = TypeVar("T")


def _refuse(offer: Offer) -> Sink | None:
    """Refuse every object."""
    del offer
    return None


def _ignore(event: Event) -> None:
    """Ignore every event."""
    del event


@mypyc_attr(allow_interpreted_subclasses=True)
class SimHost(KernelHost):
    """Implements `Host` and `Ports`. Made by `Network.host`; small, because there may be a million."""

    __slots__ = ("accept", "endpoint", "events", "on_event")
    trace: Callable[[str, object], None] | None = None

    def __init__(self, endpoint: "Endpoint", place: int) -> None:
        key = endpoint.stream_key
        super().__init__(extend(key, place - endpoint.base) if endpoint.counted else key, place)
        self.endpoint = endpoint
        self.events: list[Event] | None = None
        """Events the application has not received."""
        self.on_event: Callable[[Event], None] = _ignore
        self.accept: Callable[[Offer], Sink | None] = _refuse

    @property
    def rng(self) -> Rng:
        """The host itself."""
        return self

    @property
    def member(self) -> int:
        """The number within a counted group; 0 for a plain host."""
        return self.place - self.endpoint.base

    @property
    def name(self) -> str:
        """As in `Topology.hosts`."""
        endpoint = self.endpoint
        return f"{endpoint.name}{self.place - endpoint.base + 1}" if endpoint.counted else endpoint.name

    @property
    def now(self) -> float:
        """Seconds since the run began."""
        return float(self.endpoint.fabric.kernel.env.now)

    # Host

    def run(
        self, machine: Machine, on_event: Callable[[Event], None], accept: Callable[[Offer], Sink | None] | None = None
    ) -> None:
        """Start the machine; UsageError when one runs already."""
        if self.machine is not IDLE:
            raise UsageError(f"{self.name} runs a machine already")
        shim = self._fault_shim()
        if shim is not None:
            shim.inner = machine
            machine = shim
        self.machine = machine
        self.on_event = on_event
        if accept is not None:
            self.accept = accept
        self._input(machine.start)
        if machine.deadline < self.armed:
            # A machine may set its first deadline while it is made, before it has a host.
            self.arm(machine.deadline)
            self.endpoint.fabric.kernel.settle()

    def call(self, verb: Callable[..., T], *args: object) -> T:
        """Call `verb(*args, now)`; the application first receives the events it has not received yet."""
        self.drain()
        return self._input(verb, *args)

    def stop(self) -> None:
        """End the machine: it leaves its groups, and receives and sends nothing any more."""
        endpoint = self.endpoint
        endpoint.fabric.accelerator.before_input(self.machine)
        for group in endpoint.groups_of(self.member):
            endpoint.leave(self.member, group)
        self.machine = IDLE
        self.armed = inf

    def later(self, when: float, action: Callable[[], None]) -> None:
        """Run `action()` at `when` (seconds), or now if that is past."""
        self.endpoint.fabric.kernel.later(when, action)

    def _fault_shim(self) -> FaultShim | None:
        """The fault shim, if the host has faults; the time of its machine is what the shim's clock shows."""
        shims = self.endpoint.fabric.fault_shims
        return shims.get(self.place) if shims else None

    def _input(self, verb: Callable[..., T], *args: object) -> T:
        """Give the machine one input, and handle what it causes."""
        fabric = self.endpoint.fabric
        kernel = fabric.kernel
        nested = kernel.busy
        kernel.busy = True
        try:
            fabric.accelerator.before_input(self.machine)
            shim, now = self._fault_shim(), self.now
            result = verb(*args, now if shim is None else shim.clock.read(now))
            self.drain()
        finally:
            kernel.busy = nested
        if not nested:
            kernel.settle()
        return result

    def drain(self) -> None:
        """Deliver all pending events to the application, which may call meanwhile and then receives the rest first."""
        events = self.events
        if events is None:
            return
        fabric = self.endpoint.fabric
        kernel = fabric.kernel
        now = kernel.env._now
        if len(events) == 1:
            # Nearly always: no list to be worked off.
            event, self.events = events[0], None
            fabric.fingerprinter.notified(now, self.place, event)
            self.on_event(event)
            kernel.notified = True
            return
        while self.events:
            event = self.events.pop(0)
            fabric.fingerprinter.notified(now, self.place, event)
            self.on_event(event)
        self.events = None
        kernel.notified = True

    def arrive(self, flight: Flight, lost_by: object, now: float) -> None:
        """Take a packet for this host alone; `lost_by` is empty."""
        del lost_by
        if self.listens_to(flight):
            fabric = self.endpoint.fabric
            fabric.delivered += 1
            if fabric.on_delivery is not None:
                fabric.on_delivery(now, self.name, flight.message)
            fabric.accelerator.before_receive(self.machine, flight.message)
            self.machine.receive(flight.message, flight.source, flight.route.to, now)

    def listens_to(self, flight: Flight) -> bool:
        """Whether the packet is for this host, or for a group it listens to."""
        route = flight.route
        return route.target is self or self.endpoint.listens(route.to, self.place - self.endpoint.base)

    # Ports

    def send(self, packet: Packet) -> bool:
        """Put a packet on the host's link now. Never full: the queue of the link is the limit."""
        self.endpoint.transmit(self, packet)
        return False

    def notify(self, event: Event) -> None:
        """Keep an event for the application until this input is over."""
        if self.events is None:
            self.events = [event]
            self.endpoint.fabric.kernel.with_events.append(self)
        else:
            self.events.append(event)

    def alarm(self, when: float) -> None:
        """The machine's deadline moved earlier, to `when` by its own clock."""
        if self.endpoint.fabric.fault_shims:
            shim = self._fault_shim()
            when = when if shim is None else shim.clock.when(when)
        self.arm(when)

    def arm(self, when: float) -> None:
        """Wake the machine at this simulated time, unless an earlier wake-up is pending."""
        if when < self.armed:
            if self.armed < inf:
                self.parked = self.armed
            self.armed = when
            self.endpoint.fabric.timers.requests.append((when, self.place))

    def join(self, group: Group) -> None:
        """Receive what is sent to the group, from the next packet that arrives."""
        self.endpoint.join(self.place - self.endpoint.base, group)

    def leave(self, group: Group) -> None:
        """Receive it no more, from the next packet that arrives."""
        self.endpoint.leave(self.place - self.endpoint.base, group)
