"""Machines that stand on other machines: a `Layer` owns inner machines, each with ports of its own.

To its host a layer is one machine with one port, one deadline and one set of groups. Events of an inner machine are handled by
the layer, which may use it, change it, or pass it on to the application.
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import TypeVar

from mypy_extensions import mypyc_attr

from protocols.connection import Connection, Reason
from protocols.event_layer import Accept, EventLayer, MachineClock, OnEvent, outermost
from protocols.events import Event
from protocols.inner_ports import InnerPorts
from protocols.machine import Address, Group, Machine, Message, Packet, Ports
from protocols.snapshot import Snapshot
from protocols.storage import Record

__all__ = ["Layer", "handed_through", "unheard"]

T = TypeVar("T")

_ROUNDS = 100
"""How often one wake-up looks for inner machines that are due, because one of them made another due."""


@dataclass(frozen=True, slots=True)
class _OwnMulticast:
    """A multicast of one inner machine, which another one is to receive."""

    message: Message
    to: Group


@mypyc_attr(allow_interpreted_subclasses=True)
class Layer(Machine):
    """A machine that owns inner machines, made with `inner`, and gives each the inputs that are meant for it.

    A multicast goes to the machines that joined its group, another datagram to all, what concerns a connection to the machine
    that made it or listens, and records to the machine that asked for them. A subclass extends inputs by overriding them, and
    has a deadline of its own by `set_timer` and `expire`.
    """

    __slots__ = (
        "_events",
        "_inner",
        "_is_hearing",
        "_now",
        "_timer",
        "connections",
        "hears_itself",
        "kept",
        "tickets",
    )

    def __init__(self, ports: Ports, hears_itself: bool = False) -> None:
        super().__init__(ports)
        self.hears_itself = hears_itself
        """Whether inner machines receive the multicasts of each other, which a host does not bring back."""
        self._inner: list[InnerPorts] = []
        self._now = 0.0
        self._events: deque[tuple[InnerPorts, Event | _OwnMulticast]] = deque()
        self._is_hearing = False
        self._timer = inf
        self.connections: dict[Connection, InnerPorts] = {}
        """The inner machines of the connections that are not closed."""
        self.kept: dict[InnerPorts, int] = {}
        """Bytes that inner machines without a bound keep."""
        self.tickets: dict[int, InnerPorts] = {}
        """The inner machines of the tickets of storage that were not answered."""

    def inner(
        self, name: str, make: Callable[[Ports], T], heard: Callable[[Event, float], None], accept: Accept | None = None
    ) -> T:
        """Make an inner machine on ports of its own, by `make(ports)`, and return it.

        `name` is that of its random stream. `heard(event, now)` is called with its events, after the input that caused them;
        it may call the machines of this layer. `accept` answers its offers; None declines all.
        """
        ports = InnerPorts(self, name, self.ports, name.encode() + b"\0")
        ports.accepting = accept
        self._inner.append(ports)
        machine = make(ports)
        assert isinstance(machine, Machine)

        def hear(event: Event) -> None:
            heard(event, self._now)

        ports.machine, ports.on_event, ports.accepting = handed_through(machine, hear, accept, self)
        return machine

    # Inputs

    def start(self, now: float) -> None:
        """Start the inner machines, in the order in which they were made."""
        for machine in self.machines():
            self.give(machine.start, now)
        # A machine may have set its first deadline while it was made.
        self.earlier(self._first_deadline())

    def receive(self, message: Message, source: Address, to: Address, now: float) -> None:
        """Give a message to the inner machines it is for."""
        if isinstance(to, Connection):
            inner = self.connections.get(to)
            if inner is not None:
                self._give(inner, "receive", message, source, to, now)
            return
        for inner in self.addressed(source, to):
            self._give(inner, "receive", message, source, to, now)

    def wake(self, now: float) -> None:
        """Wake the inner machines whose deadline is reached, and those that become due by it."""
        for _ in range(_ROUNDS):
            due = [machine for machine in self.machines() if machine.deadline <= now]
            if not due and self._timer > now:
                break
            for machine in due:
                self.give(machine.wake, now)
            if self._timer <= now:
                self._timer = inf
                self.expire(now)
        self.deadline = self._first_deadline()

    def resume(self, now: float) -> None:
        """Resume every inner machine."""
        for machine in self.machines():
            self.give(machine.resume, now)

    def opened(self, connection: Connection, now: float) -> None:
        """Give a connection to the machine that made it, or to the one that listens."""
        inner = self.connections.get(connection) or self.listener(connection.port)
        if inner is not None:
            self.connections[connection] = inner
            self._give(inner, "opened", connection, now)

    def drained(self, connection: Connection, now: float) -> None:
        """See `Machine.drained`."""
        inner = self.connections.get(connection)
        if inner is not None:
            self._give(inner, "drained", connection, now)

    def closed(self, connection: Connection, reason: Reason, now: float) -> None:
        """See `Machine.closed`."""
        inner = self.connections.pop(connection, None)
        if inner is not None:
            self._give(inner, "closed", connection, reason, now)

    def stored(self, ticket: int, now: float) -> None:
        """See `Machine.stored`."""
        inner = self.tickets.pop(ticket, None)
        if inner is not None:
            self._give(inner, "stored", ticket, now)

    def fetched(self, ticket: int, records: Sequence[Record], now: float) -> None:
        """See `Machine.fetched`."""
        inner = self.tickets.pop(ticket, None)
        if inner is not None:
            self._give(inner, "fetched", ticket, inner.own(records), now)

    def counts(self) -> dict[str, int]:
        """Return the sums of the counters of the inner machines."""
        total: dict[str, int] = {}
        for machine in self.machines():
            for name, count in machine.counts().items():
                total[name] = total.get(name, 0) + count
        return total

    def held(self) -> dict[str, tuple[int, int]]:
        """Return the state kept by the inner machines, and the sums of their limits."""
        total: dict[str, tuple[int, int]] = {}
        for machine in self.machines():
            for name, (kept, limit) in machine.held().items():
                before = total.get(name, (0, 0))
                total[name] = before[0] + kept, before[1] + limit
        return total

    def snapshot(self, now: float) -> Snapshot:
        """Return the statistics of the inner machines and their layers, each as a part with its number as its name."""
        inner = [outermost(made.machine, made.on_event).snapshot(now) for made in self._inner if made.machine is not None]
        return Snapshot("session", parts=[replace(each, name=each.name or str(place)) for place, each in enumerate(inner)])

    # What subclasses use

    def machines(self) -> list[Machine]:
        """Return the inner machines."""
        return [inner.machine for inner in self._inner if inner.machine is not None]

    def give(self, verb: Callable[..., T], *args: object) -> T:
        """Call `verb(*args)` of an inner machine, then handle the events it caused; the last argument is `now`."""
        result = verb(*args)
        now = args[-1]
        assert isinstance(now, (int, float))
        self._hear(now)
        return result

    def set_timer(self, when: float) -> None:
        """Have `expire` called at `when` (seconds; inf: never), in the place of the time set before."""
        self._timer = when
        self.earlier(when)

    def expire(self, now: float) -> None:
        """Do what is due by `set_timer`."""

    # What inner ports, hosts and subclasses of the mechanism use

    def machine_time(self) -> float:
        """Return the time of the input whose events are handled, in seconds: that of the inner machines."""
        return self._now

    def heard_through(self, on_event: OnEvent, clock: MachineClock) -> OnEvent:
        """Return where the events go that this machine gives to its host; see `handed_through`."""
        del clock
        return on_event

    def notified(self, inner: InnerPorts, event: Event) -> None:
        """Keep an event of an inner machine until its input is over."""
        self._events.append((inner, event))

    def send_heard(self, inner: InnerPorts, packet: Packet) -> object:
        """Send a packet of an inner machine; the others receive a multicast when the input is over. See `hears_itself`."""
        if type(packet.to) is Group:
            event = _OwnMulticast(packet.message, packet.to)
            self._events.extend((other, event) for other in self._inner if other is not inner and packet.to in other.groups)
        return inner.out.send(packet)

    def earlier(self, when: float) -> None:
        """Move the deadline to `when` seconds if it is later."""
        if when < self.deadline:
            self._due(when)

    def is_member(self, group: Group, port: int) -> bool:
        """Return whether any machine at the port is a member of the group."""
        return any(inner.port == port and group in inner.groups for inner in self._inner)

    def listener(self, port: int) -> InnerPorts | None:
        """Return the ports of the machine that listens at a port, None for none."""
        del port
        return next((inner for inner in self._inner if inner.is_listening), None)

    def addressed(self, source: Address, to: Address) -> list[InnerPorts]:
        """Return the ports of the machines that a datagram is for."""
        del source
        return [inner for inner in self._inner if to in inner.groups] if type(to) is Group else list(self._inner)

    def _give(self, inner: InnerPorts, verb: str, *args: object) -> None:
        if inner.machine is not None:
            self.give(getattr(inner.machine, verb), *args)

    def _hear(self, now: float) -> None:
        """Handle all events in order; handlers may cause further ones."""
        if self._is_hearing:
            return
        self._is_hearing, self._now = True, now
        try:
            while self._events:
                inner, event = self._events.popleft()
                if not isinstance(event, _OwnMulticast):
                    assert inner.on_event is not None
                    inner.on_event(event)
                elif inner.machine is not None:
                    inner.machine.receive(event.message, None, event.to, now)
        finally:
            self._is_hearing = False

    def _first_deadline(self) -> float:
        return min([self._timer, *(machine.deadline for machine in self.machines())])


def unheard(event: Event, now: float) -> None:
    """Raise AssertionError: what `Layer.inner` is given as `heard` where no events of the machine come to it."""
    raise AssertionError(f"{event} at {now}, of a machine without events for its layer")


def handed_through(
    machine: Machine, on_event: OnEvent, accept: Accept | None, clock: MachineClock
) -> tuple[Machine, OnEvent, Accept | None]:
    """Return the machine a host runs in place of a given one, and where events and offers go; called by every host."""
    while isinstance(machine, EventLayer):
        on_event, accept = machine.between(on_event, accept, clock)
        machine = machine.inner
    if isinstance(machine, Layer):
        on_event = machine.heard_through(on_event, clock)
    return machine, on_event, accept
