"""Several machines on one host, each at a port of its own: each has a component host, which is its `Host` and its `Ports`."""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeVar

from protocols.connection import Connection
from protocols.errors import UsageError
from protocols.events import Event
from protocols.hosting import SeveralPortsHost
from protocols.inner_ports import InnerPorts
from protocols.layer import Layer, handed_through
from protocols.machine import Address, Codec, Group, Machine, Message, Offer, Packet, Sink
from protocols.rng import Rng
from protocols.storage import Change

__all__ = ["ComponentHost", "CompositeMachine"]

T = TypeVar("T")


class _AtPort:
    """The ports of a host, used from one of its ports."""

    def __init__(self, host: SeveralPortsHost, port: int) -> None:
        self._host = host
        self._port = port
        self.rng: Rng = host.rng

    @property
    def trace(self) -> Callable[[str, object], None] | None:
        return self._host.trace

    @trace.setter
    def trace(self, function: Callable[[str, object], None] | None) -> None:
        self._host.trace = function

    @property
    def epoch(self) -> float:
        return self._host.epoch

    def send(self, packet: Packet) -> object:
        return self._host.send(packet, self._port)

    def join(self, group: Group) -> None:
        self._host.join(group, self._port)

    def leave(self, group: Group) -> None:
        self._host.leave(group, self._port)

    def notify(self, event: Event) -> None:
        self._host.notify(event)

    def alarm(self, when: float) -> None:
        self._host.alarm(when)

    def accept(self, offer: Offer) -> Sink | None:
        return self._host.accept(offer)

    def work(self, seconds: float) -> None:
        self._host.work(seconds)

    def keep(self, octets: int) -> None:
        self._host.keep(octets, self._port)

    def fail(self, reason: str) -> None:
        self._host.fail(reason)

    def listen(self) -> None:
        self._host.listen(self._port)

    def connect(self, peer: object) -> Connection:
        return self._host.connect(peer, self._port)

    def hang_up(self, connection: Connection) -> None:
        self._host.hang_up(connection)

    def hold(self, connection: Connection) -> None:
        self._host.hold(connection)

    def release(self, connection: Connection) -> None:
        self._host.release(connection)

    def store(self, changes: Sequence[Change]) -> int:
        return self._host.store(changes, self._port)

    def fetch(self, first: bytes = b"", last: bytes | None = None, most: int | None = None) -> int:
        return self._host.fetch(first, last, most, self._port)


class ComponentHost(InnerPorts):
    """The host and the ports of one of several machines."""

    def __init__(self, composite: "CompositeMachine", name: str, port: int) -> None:
        super().__init__(composite, name, _AtPort(composite.host, port), port=port)
        self._composite = composite

    @property
    def now(self) -> float:
        """Seconds since the run began."""
        return self._composite.host.now

    def machine_time(self) -> float:
        """See `Host.machine_time`."""
        return self.now

    def run(
        self, machine: Machine, on_event: Callable[[Event], None], accept: Callable[[Offer], Sink | None] | None = None
    ) -> None:
        """Start a machine. UsageError if this component runs one."""
        if self.machine is not None:
            raise UsageError("this component runs a machine already")
        self.machine, self.on_event, self.accepting = handed_through(machine, on_event, accept, self)
        self.call(self.machine.start)

    def call(self, verb: Callable[..., T], *args: object) -> T:
        """Call `verb(*args, now)` as an input of the machine and return its result."""
        result: T = self._composite.host.call(self._composite.relay, verb, args)
        return result

    def later(self, when: float, action: Callable[[], None]) -> None:
        """Run `action()` at `when` seconds, or now if that is past."""
        self._composite.host.later(when, action)

    def address_of(self, name: str, port: int = 0) -> Address:
        """See `Host.address_of`."""
        return self._composite.host.address_of(name, port)

    def join(self, group: Group) -> None:
        """See `Ports.join`."""
        self._composite.changed()
        super().join(group)

    def leave(self, group: Group) -> None:
        """See `Ports.leave`."""
        self._composite.changed()
        super().leave(group)

    def stop(self) -> None:
        """Remove the component: it leaves its groups, its connections are reset, and its machine gets no further inputs."""
        self._composite.forget(self)


class CompositeMachine(Layer):
    """A machine that runs several machines on one host, told apart by port and connection.

    A multicast is delivered to the components that joined its group, except the one that sent it; another datagram to the
    component at whose port it arrives. Components start their machines themselves, and events go to their applications.
    """

    __slots__ = ("_notifying", "host", "on_change")

    def __init__(self, host: Any) -> None:
        super().__init__(host)
        self.host: SeveralPortsHost = host
        # The components whose events the host has not yet delivered, in order of the events.
        self._notifying: deque[ComponentHost] = deque()
        self.on_change: list[Callable[[], None]] = []
        """Called, once, when the components or their groups are about to change."""
        host.run(self, self._on_event)

    @property
    def components(self) -> list[ComponentHost]:
        """The components, in the order in which they were added."""
        return [inner for inner in self._inner if isinstance(inner, ComponentHost)]

    def component(self, name: str, codec: Callable[[], Codec] | None = None, port: int | None = None) -> ComponentHost:
        """Add a component for a machine with a random stream of this name; the one without a name has that of the host.

        It gets the `port`, None: the number of components before it. `codec` makes the codec of its messages; None: as at
        port 0. UsageError for a port that is in use.
        """
        number = len(self._inner) if port is None else port
        if any(inner.port == number for inner in self._inner):
            raise UsageError(f"port {number} is in use by another component")
        self.host.open_port(number, codec)
        component = ComponentHost(self, name, number)
        self._inner.append(component)
        return component

    def start(self, now: float) -> None:
        """Do nothing: components start their machines."""

    def receive_marked(self, message: Message, source: Address, to: Address, now: float) -> None:
        """Deliver a datagram that a queue marked to the components that it is for."""
        self.deliver(message, source, to, now, None, "receive_marked")

    def deliver(
        self,
        message: Message,
        source: Address,
        to: Address,
        now: float,
        without: ComponentHost | None,
        verb: Literal["receive", "receive_marked"] = "receive",
    ) -> None:
        """Deliver a datagram to the components that it is for, but one."""
        for inner in self.addressed(source, to):
            if inner is not without:
                self._give(inner, verb, message, source, to, now)

    def changed(self) -> None:
        """Call the functions in `on_change`, since a component is about to join or leave a group."""
        callbacks, self.on_change = self.on_change, []
        for callback in callbacks:
            callback()

    def relay(self, verb: Callable[..., T], args: tuple[object, ...], now: float) -> T:
        """Call `verb(*args, now)` of one of the machines, as an input of this machine."""
        result = verb(*args, now)
        # A machine may have set its first deadline in its constructor, before it was registered here.
        self.earlier(self._first_deadline())
        return result

    def notified(self, inner: InnerPorts, event: Event) -> None:
        """Give an event of a component to the host, and note which component it comes from."""
        assert isinstance(inner, ComponentHost)
        self._notifying.append(inner)
        self.host.notify(event)

    def listener(self, port: int) -> InnerPorts | None:
        """Return the component that listens at a port, None for none."""
        return next((inner for inner in self._inner if inner.is_listening and inner.port == port), None)

    def addressed(self, source: Address, to: Address) -> list[InnerPorts]:
        """Return the components that a datagram is for."""
        if type(to) is Group:
            own = self.host.port_of(source)
            return [inner for inner in self._inner if to in inner.groups and inner.port != own]
        port = self.host.port_of(to)
        return [inner for inner in self._inner if inner.port == port]

    def forget(self, component: ComponentHost) -> None:
        """Remove a component and close its port."""
        self.changed()
        self.kept.pop(component, None)
        self.connections = {key: inner for key, inner in self.connections.items() if inner is not component}
        self.tickets = {key: inner for key, inner in self.tickets.items() if inner is not component}
        self._inner.remove(component)
        self.host.close_port(component.port)

    def _on_event(self, event: Event) -> None:
        component = self._notifying.popleft()
        assert component.on_event is not None
        component.on_event(event)
