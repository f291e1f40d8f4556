"""A simulated host: runs one machine, and is its ports."""

from collections.abc import Callable
from math import inf
from typing import TYPE_CHECKING, Any, TypeVar, cast

from mypy_extensions import mypyc_attr

from protocols.errors import UsageError
from protocols.events import Event
from protocols.machine import Address, Group, Machine, Message, Offer, Packet, Ports, Sink
from protocols.rng import Rng, extend

if TYPE_CHECKING:
    from sim.endpoint import Endpoint
    from sim.fault_shim import FaultShim
    from sim.flight import Flight

__all__ = ["IDLE", "Idle", "SimHost"]

T = TypeVar("T")


def _refuse(offer: Offer) -> None:
    """Nobody wants any object."""
    del offer


def _leave_lockstep(machine: Any) -> None:
    """Make a fast machine independent, before an input of its own."""
    if getattr(machine, "fast_state", None) is not None:
        machine.leave_lockstep()


class Idle(Machine):
    """Stands where no machine runs yet, so that nobody has to ask."""

    __slots__ = ()

    def start(self, now: float) -> None:
        """Nothing."""

    def receive(self, message: Message, source: Address, to: Address, now: float) -> None:
        """Nothing."""

    def wake(self, now: float) -> None:
        """Nothing."""

    def counts(self) -> dict[str, int]:
        """Nothing."""
        return {}


IDLE = Idle(cast(Ports, None))


@mypyc_attr(allow_interpreted_subclasses=True)
class SimHost(Rng):
    """Implements `Host` and `Ports`. Made by `Network.host`; small, because there may be a million.

    It is its own stream of random numbers (`topologies.keys.stream_key`), for an object beside it would weigh 56 bytes.
    """

    __slots__ = ("accept", "armed", "events", "leaf", "machine", "on_event", "parked", "place")
    trace: Callable[[str, object], None] | None = None

    def __init__(self, leaf: "Endpoint", place: int) -> None:
        super().__init__(extend(leaf.stream_key, place - leaf.base) if leaf.counted else leaf.stream_key)
        self.leaf = leaf
        self.place = place
        """In `Topology.hosts`."""
        self.machine: Machine = IDLE
        self.armed = inf
        """When the pending wake-up comes."""
        self.parked = inf
        """A later time for which it is entered, too: that of before, until an earlier one was wanted."""
        self.events: list[Event] | None = None
        """What the application is not told yet."""
        self.on_event: Callable[[Event], None] = cast("Callable[[Event], None]", None)
        self.accept: Callable[[Offer], Sink | None] = _refuse

    @property
    def rng(self) -> Rng:
        """Itself."""
        return self

    @property
    def member(self) -> int:
        """The place within a counted group; 0 for a plain host."""
        return self.place - self.leaf.base

    @property
    def name(self) -> str:
        """As in `Topology.hosts`."""
        leaf = self.leaf
        return f"{leaf.name}{self.place - leaf.base + 1}" if leaf.counted else leaf.name

    @property
    def now(self) -> float:
        """Seconds since the run began."""
        return float(self.leaf.network.env.now)

    # Host

    def run(
        self, machine: Machine, on_event: Callable[[Event], None], accept: Callable[[Offer], Sink | None] | None = None
    ) -> None:
        """Start the machine; UsageError when one runs already."""
        if self.machine is not IDLE:
            raise UsageError(f"{self.name} runs a machine already")
        gate = self._gate()
        if gate is not None:
            gate.inner = machine
            machine = gate
        self.machine = machine
        self.on_event = on_event
        if accept is not None:
            self.accept = accept
        self._input(machine.start)
        if machine.deadline < self.armed:
            # A machine may set its first deadline while it is made, before the host knows it.
            self.arm(machine.deadline)
            self.leaf.network.settle()

    def call(self, verb: Callable[..., T], *args: object) -> T:
        """`verb(*args, now)`; events the application has not heard yet come first."""
        self.drain()
        return self._input(verb, *args)

    def stop(self) -> None:
        """End the machine: it leaves its groups, and hears and says nothing any more."""
        leaf = self.leaf
        _leave_lockstep(self.machine)
        for group in leaf.groups_of(self):
            leaf.leave(self, group)
        self.machine = IDLE
        self.armed = inf

    def later(self, when: float, action: Callable[[], None]) -> None:
        """Run `action()` at `when`, or now if that is past."""
        self.leaf.network.later(when, action)

    def _gate(self) -> "FaultShim | None":
        """What stands before the machine, if faults are at work here; the time of the machine is what its clock shows."""
        gates = self.leaf.network.gates
        return gates.get(self.place) if gates else None

    def _input(self, verb: Callable[..., T], *args: object) -> T:
        """One input of the machine, and what it causes."""
        network = self.leaf.network
        nested = network.busy
        network.busy = True
        try:
            _leave_lockstep(self.machine)
            gate, now = self._gate(), self.now
            result = verb(*args, now if gate is None else gate.clock.read(now))
            self.drain()
        finally:
            network.busy = nested
        if not nested:
            network.settle()
        return result

    def drain(self) -> None:
        """Tell the application everything; it may call meanwhile, and is then told the rest first."""
        events = self.events
        if events is None:
            return
        network = self.leaf.network
        now = network.env._now
        if len(events) == 1:
            # Nearly always: no list to be worked off.
            event, self.events = events[0], None
            network.fingerprinter.told(now, self.place, event)
            self.on_event(event)
            network.told = True
            return
        while self.events:
            event = self.events.pop(0)
            network.fingerprinter.told(now, self.place, event)
            self.on_event(event)
        self.events = None
        network.told = True

    def arrive(self, flight: "Flight", out: object, now: float) -> None:
        """A packet for this host alone is there; `out` is empty."""
        del out
        if self.hears(flight):
            self.leaf.network.delivered += 1
            _leave_lockstep(self.machine)
            self.machine.receive(flight.message, flight.source, flight.route.to, now)

    def hears(self, flight: "Flight") -> bool:
        """Is the packet for this host, or does it listen to the group?"""
        route = flight.route
        return route.target is self or self.leaf.listens(route.to, self.place)

    # Ports

    def send(self, packet: Packet) -> bool:
        """Put a packet on the host's link now. Never full: the queue of the link is the limit."""
        self.leaf.network.transmit(self, packet)
        return False

    def notify(self, event: Event) -> None:
        """Keep an event for the application until this input is over."""
        if self.events is None:
            self.events = [event]
            self.leaf.network.spoke.append(self)
        else:
            self.events.append(event)

    def alarm(self, when: float) -> None:
        """The machine wants to be woken earlier, by its own clock."""
        if self.leaf.network.gates:
            gate = self._gate()
            when = when if gate is None else gate.clock.when(when)
        self.arm(when)

    def arm(self, when: float) -> None:
        """Wake the machine at this simulated time, if it would be later else."""
        if when < self.armed:
            if self.armed < inf:
                self.parked = self.armed
            self.armed = when
            self.leaf.network.timers.fresh.append((when, self.place))

    def join(self, group: Group) -> None:
        """Hear what is sent to the group, from the next packet that arrives."""
        self.leaf.join(self, group)

    def leave(self, group: Group) -> None:
        """Hear it no more, from the next packet that arrives."""
        self.leaf.leave(self, group)
