"""Several machines on one host: each has a component host, which is its `Host` and its `Ports`."""

from collections import deque
from collections.abc import Callable
from math import inf
from typing import Any, TypeVar

from protocols.errors import UsageError
from protocols.events import Event
from protocols.hosting import PortsHost
from protocols.machine import Address, Group, Machine, Message, Offer, Packet, Sink
from protocols.rng import Rng

__all__ = ["ComponentHost", "CompositeMachine"]

T = TypeVar("T")


class ComponentHost:
    """The host and the ports of one of several machines; `takes` says whether a message is delivered to this machine."""

    def __init__(self, composite: "CompositeMachine", name: str, takes: Callable[[Message], bool]) -> None:
        self._composite = composite
        self.takes = takes
        self.rng: Rng = composite.host.rng.fork(name) if name else composite.host.rng
        """Random stream of the component; one without a name has the host's own, which further components leave unchanged."""
        self.machine: Machine | None = None
        self.on_event: Callable[[Event], None] | None = None
        self._accept: Callable[[Offer], Sink | None] | None = None
        self.groups: dict[Group, None] = {}

    @property
    def trace(self) -> Callable[[str, object], None] | None:
        """The trace function of the host."""
        return self._composite.host.trace

    @trace.setter
    def trace(self, function: Callable[[str, object], None] | None) -> None:
        self._composite.host.trace = function

    def is_for(self, message: Message, to: Address) -> bool:
        """Whether a message sent to this address is delivered to this machine."""
        return self.takes(message) and (type(to) is not Group or to in self.groups)

    # Host

    @property
    def now(self) -> float:
        """Seconds since the run began."""
        return self._composite.host.now

    def run(
        self, machine: Machine, on_event: Callable[[Event], None], accept: Callable[[Offer], Sink | None] | None = None
    ) -> None:
        """Start a machine. UsageError if this component runs one."""
        if self.machine is not None:
            raise UsageError("this component runs a machine already")
        self.machine, self.on_event, self._accept = machine, on_event, accept
        self.call(machine.start)

    def call(self, verb: Callable[..., T], *args: object) -> T:
        """Call `verb(*args, now)` as an input of the machine and return its result."""
        result: T = self._composite.host.call(self._composite.relay, verb, args)
        return result

    def later(self, when: float, action: Callable[[], None]) -> None:
        """Run `action()` at `when` seconds, or now if that is past."""
        self._composite.host.later(when, action)

    def stop(self) -> None:
        """Remove the component: its machine gets no further inputs."""
        for group in list(self.groups):
            self.leave(group)
        self._composite.forget(self)

    # Ports

    def send(self, packet: Packet) -> object:
        """Send a packet through the host; the result is true when the network is full."""
        return self._composite.host.send(packet)

    def notify(self, event: Event) -> None:
        """Report an event to the application of this component."""
        self._composite.pending_events.append(self)
        self._composite.host.notify(event)

    def alarm(self, when: float) -> None:
        """Move the deadline of the composite to `when` seconds if it is later."""
        self._composite.earlier(when)

    def join(self, group: Group) -> None:
        """Join a group."""
        self.groups[group] = None
        self._composite.changed()
        self._composite.host.join(group)

    def leave(self, group: Group) -> None:
        """Leave a group; the host leaves it when no component is a member."""
        self.groups.pop(group, None)
        self._composite.changed()
        if not self._composite.is_member(group):
            self._composite.host.leave(group)

    def accept(self, offer: Offer) -> Sink | None:
        """Return the sink for an offered object, or None to refuse it."""
        return None if self._accept is None else self._accept(offer)


class CompositeMachine(Machine):
    """A machine that runs several machines on one host.

    A multicast is delivered to the components that joined its group, a unicast to all; `takes` of a component must
    accept it, too.
    """

    __slots__ = ("components", "host", "on_change", "pending_events")

    def __init__(self, host: Any) -> None:
        super().__init__(host)
        self.host: PortsHost = host
        self.components: list[ComponentHost] = []
        self.pending_events: deque[ComponentHost] = deque()
        """The components whose events the host has not yet delivered, in order of the events."""
        self.on_change: list[Callable[[], None]] = []
        """Called, once, when the components or their groups are about to change."""
        host.run(self, self._on_event)

    def component(self, name: str, takes: Callable[[Message], bool]) -> ComponentHost:
        """Add a component for a machine."""
        component = ComponentHost(self, name, takes)
        self.components.append(component)
        return component

    def start(self, now: float) -> None:
        """Do nothing: components start their machines."""

    def receive(self, message: Message, source: Address, to: Address, now: float) -> None:
        """Deliver a message to the components that take it."""
        self.deliver(message, source, to, now)

    def deliver(self, message: Message, source: Address, to: Address, now: float, without: ComponentHost | None = None) -> None:
        """Deliver a message to the components that take it, but one."""
        for component in list(self.components):
            if component is not without and component.machine is not None and component.is_for(message, to):
                component.machine.receive(message, source, to, now)

    def wake(self, now: float) -> None:
        """Wake the machines whose deadline is reached."""
        for component in list(self.components):
            if component.machine is not None and component.machine.deadline <= now:
                component.machine.wake(now)
        self.deadline = self._first_deadline()

    def resume(self, now: float) -> None:
        """Resume every machine."""
        for component in list(self.components):
            if component.machine is not None:
                component.machine.resume(now)

    def relay(self, verb: Callable[..., T], args: tuple[object, ...], now: float) -> T:
        """Call `verb(*args, now)` of one of the machines, as an input of this machine."""
        result = verb(*args, now)
        # A machine may have set its first deadline in its constructor, before it was registered here.
        self.earlier(self._first_deadline())
        return result

    def earlier(self, when: float) -> None:
        """Move the deadline to `when` seconds if it is later."""
        if when < self.deadline:
            self._due(when)

    def is_member(self, group: Group) -> bool:
        """Return whether any component is a member of the group."""
        return any(group in component.groups for component in self.components)

    def forget(self, component: ComponentHost) -> None:
        """Remove a component."""
        self.components.remove(component)

    def changed(self) -> None:
        """Tell those who asked for it that a component joins or leaves a group."""
        callbacks, self.on_change = self.on_change, []
        for callback in callbacks:
            callback()

    def counts(self) -> dict[str, int]:
        """Return the sums of the counters of all machines."""
        total: dict[str, int] = {}
        for component in self.components:
            for name, count in ({} if component.machine is None else component.machine.counts()).items():
                total[name] = total.get(name, 0) + count
        return total

    def _first_deadline(self) -> float:
        machines = (component.machine for component in self.components)
        return min((machine.deadline for machine in machines if machine is not None), default=inf)

    def _on_event(self, event: Event) -> None:
        component = self.pending_events.popleft()
        assert component.on_event is not None
        component.on_event(event)
