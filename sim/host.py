"""A simulated host, which runs one machine and implements its ports."""

from collections.abc import Callable, Sequence
from functools import partial
from math import inf, isnan
from typing import TYPE_CHECKING, TypeVar

from mypy_extensions import mypyc_attr

from protocols.connection import Connection
from protocols.errors import ContractError, UsageError
from protocols.event_layer import outermost
from protocols.events import Event
from protocols.layer import handed_through
from protocols.machine import Address, Codec, Group, Machine, Offer, Packet, Sink
from protocols.rng import Rng
from protocols.snapshot import Snapshot
from protocols.storage import Change
from sim.addresses import address_at, name_and_port
from sim.disk import Disk
from sim.fault_shim import FaultShim
from sim.flight import Flight, MarkedFlight
from sim.idle import IDLE
from sim.processor import HostProcessor, InputQueue
from sim.tcp.end import TcpEnd
from sim.tcp.segment import Segment
from sim.tcp.states import OPEN
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

    __slots__ = ("accept", "endpoint", "on_event")
    trace: Callable[[str, object], None] | None = None
    epoch: float = 0.0
    """Simulated time begins at 1970-01-01 00:00 UTC."""

    def __init__(self, endpoint: "Endpoint", place: int) -> None:
        super().__init__(place)
        self.endpoint = endpoint
        self.on_event: Callable[[Event], None] = _ignore
        self.accept: Callable[[Offer], Sink | None] = _refuse

    @property
    def key(self) -> int:
        """That of the host's random numbers, `topologies.keys.stream_key`."""
        endpoint = self.endpoint
        return endpoint.stream_keys[self.place - endpoint.base]

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
        return float(self.endpoint.fabric.kernel.env._now)

    # Host

    def run(
        self, machine: Machine, on_event: Callable[[Event], None], accept: Callable[[Offer], Sink | None] | None = None
    ) -> None:
        """Start the machine; UsageError when one runs already."""
        if self.machine is not IDLE:
            raise UsageError(f"{self.name} runs a machine already")
        machine, on_event, accept = handed_through(machine, on_event, accept, self)
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

    def answer(self, verb: Callable[..., None], *args: object) -> None:
        """Give the machine an answer of its disk, as `call`; the time is simulated time, as of all inputs that may wait."""
        self.drain()
        self._input(lambda local: verb(*args, self.now))

    def snapshot(self) -> Snapshot:
        """Return the statistics of the machine now; nothing changes."""
        shim = self._fault_shim()
        now = self.now if shim is None else shim.clock.look(self.now)
        return Snapshot("host", self.name, parts=(outermost(self.machine, self.on_event).snapshot(now),))

    def stop(self) -> None:
        """End the machine: it leaves its groups, and receives and sends nothing any more."""
        endpoint = self.endpoint
        endpoint.fabric.accelerator.before_input(self.machine)
        self.leave_all()
        disk = endpoint.fabric.disks.get(self.place)
        if disk is not None:
            disk.forget_requests()
        endpoint.fabric.ports.close(self.place)
        shim = self._fault_shim()
        if shim is not None:
            shim.empty()
        self.machine = IDLE
        self.armed = inf
        endpoint.fabric.tcp.stop(self)

    def leave_all(self) -> None:
        """Leave all groups, as a kernel does whose sockets are closed."""
        endpoint = self.endpoint
        for group in endpoint.groups_of(self.member):
            endpoint.leave(self.member, group)
        endpoint.fabric.membership.forget(endpoint, self.member)

    def later(self, when: float, action: Callable[[], None]) -> None:
        """Run `action()` at `when` (seconds), or now if that is past. UsageError for nan, which no time comes after."""
        if isnan(when):
            raise UsageError("when: nan is not allowed; a number of seconds")
        self.endpoint.fabric.kernel.later(when, action)

    def address_of(self, name: str, port: int = 0) -> Address:
        """Return the address of the machine at a port of a host; UsageError when there is no such host."""
        topology = self.endpoint.fabric.topology
        return address_at(topology.member_name(*topology.member(name)), port)

    def open_port(self, port: int, codec: Callable[[], Codec] | None = None) -> None:
        """Use a port, whose messages a `codec` of its own encodes where bytes travel."""
        self.endpoint.fabric.ports.open(self.place, port, codec)

    def close_port(self, port: int) -> None:
        """Stop using a port: its groups are left, and its connections reset."""
        for group in self.endpoint.fabric.ports.groups_of(self.place, port):
            self.leave(group, port)
        self.endpoint.fabric.tcp.stop(self, port)

    def port_of(self, address: Address) -> int | None:
        """Return which port of this host has an address, None for those of other hosts."""
        name, port = name_and_port(address)
        return port if name == self.name else None

    def machine_time(self) -> float:
        """See `Host.machine_time`."""
        shim = self._fault_shim()
        return self.now if shim is None else shim.clock.read(self.now)

    def _fault_shim(self) -> FaultShim | None:
        """Return the fault shim, if the host has faults; the time of its machine is what the shim's clock shows."""
        shims = self.endpoint.fabric.fault_shims
        return shims.get(self.place) if shims else None

    def put_fault_shim(self) -> FaultShim:
        """Return the fault shim, put before the machine if there is none yet."""
        shims = self.endpoint.fabric.fault_shims
        shim = shims.get(self.place)
        if shim is None:
            shim = shims[self.place] = FaultShim(self, self)
            machine = self.machine
            if isinstance(machine, InputQueue):
                # The queue waits by simulated time, so the clock of the host is behind it.
                shim.inner, machine.inner = machine.inner, shim
            elif machine is not IDLE:
                shim.inner = machine
                self._replace_machine(shim)
        return shim

    def hold(self, connection: Connection) -> None:
        """Deliver no more messages of a connection before `release`; meanwhile its other end gets "full"."""
        self.put_fault_shim().hold(connection)

    def release(self, connection: Connection) -> None:
        """Deliver the messages of a connection again, those that waited after the present input."""
        self.later(self.now, lambda: self.put_fault_shim().let_go(connection, self.now))

    def _input(self, verb: Callable[..., T], *args: object) -> T:
        """Give the machine one input, and handle what it causes."""
        fabric = self.endpoint.fabric
        kernel = fabric.kernel
        nested, told = kernel.busy, fabric.tcp.told
        kernel.busy = True
        # What the machine writes in this input does not wait for the end of another one that caused it.
        fabric.tcp.told = None
        try:
            fabric.accelerator.before_input(self.machine)
            shim, now = self._fault_shim(), self.now
            result = verb(*args, now if shim is None else shim.clock.read(now))
            self.drain()
        finally:
            kernel.busy, fabric.tcp.told = nested, told
        if not nested:
            kernel.settle()
        return result

    def drain(self) -> None:
        """Deliver all pending events to the application, which may call meanwhile and then receives the rest first."""
        fabric = self.endpoint.fabric
        kernel = fabric.kernel
        waiting = kernel.with_events
        events = waiting.get(self)
        if events is None:
            return
        now = kernel.env._now
        if not isinstance(events, list):
            # Nearly always: no list to be worked off.
            del waiting[self]
            fabric.fingerprinter.notified(now, self.place, events)
            self.on_event(events)
            kernel.notified = True
            return
        while events:
            event: Event = events.pop(0) if isinstance(events, list) else events
            if not isinstance(events, list):
                del waiting[self]
            fabric.fingerprinter.notified(now, self.place, event)
            self.on_event(event)
            events = waiting.get(self)
        waiting.pop(self, None)
        kernel.notified = True

    def arrive(self, flight: Flight, lost_by: object, now: float) -> None:
        """Take a packet for this host alone; `lost_by` is empty."""
        del lost_by
        if flight.route.target is self or self.listens_to(flight):
            fabric = self.endpoint.fabric
            if isinstance(flight.message, Segment):
                if not fabric.fault_shims or not self._shuts_out(flight):
                    fabric.tcp.arrive(self, flight, now)
                return
            fabric.delivered += 1
            if fabric.on_delivery is not None:
                fabric.on_delivery(now, self.name, flight.message)
            fabric.accelerator.before_receive(self.machine, flight.message)
            if isinstance(flight, MarkedFlight):
                self.machine.receive_marked(flight.message, flight.source, flight.route.to, now)
            else:
                self.machine.receive(flight.message, flight.source, flight.route.to, now)

    def _shuts_out(self, flight: Flight) -> bool:
        """Return whether a fault shuts out the host that sent a segment; it may arrive when the fault is over."""
        shim, tcp = self._fault_shim(), self.endpoint.fabric.tcp
        return shim is not None and shim.shuts_out(flight, lambda now: tcp.arrive(self, flight, now))

    def listens_to(self, flight: Flight) -> bool:
        """Return whether the packet is for this host, or for a group it listens to."""
        route = flight.route
        return route.target is self or self.endpoint.listens(route.to, self.place - self.endpoint.base)

    # Ports

    def send(self, packet: Packet, port: int = 0) -> bool:
        """Put a packet on the host's link now, or on a connection; while the processor is busy, when it is free.

        A link is never full, since its queue is the limit; a connection is full when its buffer is. ContractError for a
        negative size.
        """
        to = packet.to
        if packet.size < 0:
            raise ContractError(f"{self.name} sends {packet.message.kind!r} with a size of {packet.size} bytes")
        if isinstance(to, Connection):
            if not isinstance(to, TcpEnd):
                raise ContractError(f"{self.name} sends on a connection of another world: {to!r}")
            if self.endpoint.processors is not None and self._is_delayed(partial(self._write_late, to, packet)):
                return to.is_full
            return to.write(packet.message, packet.size, self.endpoint.fabric.kernel.env._now)
        endpoint = self.endpoint
        if endpoint.processors is not None and self._is_delayed(partial(endpoint.transmit, self, packet, port)):
            return False
        endpoint.transmit(self, packet, port)
        return False

    def work(self, seconds: float) -> None:
        """See `Ports.work`."""
        self.processor.work(seconds, self.endpoint.fabric.kernel.env._now)

    def keep(self, octets: int, port: int = 0) -> None:
        """See `Ports.keep`."""
        self.endpoint.fabric.failures.keep(self.name, octets, port)

    def fail(self, reason: str) -> None:
        """See `Ports.fail`."""
        self.endpoint.fabric.failures.fail(self.name, reason)

    @property
    def processor(self) -> HostProcessor:
        """The host's processor, made when first asked for."""
        endpoint = self.endpoint
        processors = endpoint.processors
        if processors is None:
            processors = endpoint.processors = {}
        processor = processors.get(self.place)
        if processor is None:
            processor = processors[self.place] = HostProcessor(endpoint.fabric.kernel, self, self._replace_machine)
        return processor

    def _replace_machine(self, machine: Machine) -> None:
        """Run `machine`, which stands for the one that runs now and gets all its inputs."""
        endpoint = self.endpoint
        endpoint.fabric.accelerator.before_input(self.machine)
        self.machine = machine
        for group in endpoint.groups_of(self.member):
            endpoint.begin(self.member, group)

    def notify(self, event: Event) -> None:
        """Keep an event for the application until this input is over."""
        waiting = self.endpoint.fabric.kernel.with_events
        there = waiting.get(self)
        if there is None:
            waiting[self] = event
        elif isinstance(there, list):
            there.append(event)
        else:
            waiting[self] = [there, event]

    def alarm(self, when: float) -> None:
        """Move the machine's deadline earlier, to `when` by its own clock."""
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

    def _write_late(self, end: TcpEnd, packet: Packet) -> None:
        """Write what waited for the processor, unless the connection was closed meanwhile."""
        if end.state == OPEN:
            was_full = end.is_full
            end.write(packet.message, packet.size, self.now)
            # The machine may have been told "full", and then waits for `drained`.
            end.is_full = end.is_full or was_full

    def _is_delayed(self, action: Callable[[], None]) -> bool:
        """Return whether the processor is busy; if so, `action` is called when it is free."""
        processors = self.endpoint.processors
        processor = None if processors is None else processors.get(self.place)
        return processor is not None and processor.delay(action, self.endpoint.fabric.kernel.env._now)

    def listen(self, port: int = 0) -> None:
        """Accept connections for the machine at a port of the host; UsageError when another machine listens there."""
        self.endpoint.fabric.tcp.listen(self, port)

    def connect(self, peer: object, port: int = 0) -> Connection:
        """Begin a connection of the machine at a port of the host with the machine that listens at `peer`."""
        return self.endpoint.fabric.tcp.connect(self, peer, port)

    def hang_up(self, connection: Connection) -> None:
        """Close a connection when all that was sent on it has arrived."""
        assert isinstance(connection, TcpEnd), "a connection is that of a host of this network"
        end = connection
        if not self._is_delayed(lambda: end.hang_up(self.now)):
            end.hang_up(self.now)

    def segment_sent(self, packet: Packet) -> None:
        """Note that a segment of one of the host's connections is put on the network; only watched hosts do."""

    def store(self, changes: Sequence[Change], port: int = 0) -> int:
        """See `StoragePorts.store`; every port has records of its own."""
        return self.disk.store(self, changes, port)

    def fetch(self, first: bytes = b"", last: bytes | None = None, most: int | None = None, port: int = 0) -> int:
        """See `StoragePorts.fetch`."""
        return self.disk.fetch(self, first, last, most, port)

    @property
    def disk(self) -> Disk:
        """The host's disk, made when first asked for."""
        return self.endpoint.fabric.disk(self.place, self.endpoint.name, self.name)

    def join(self, group: Group, port: int = 0) -> None:
        """Receive what is sent to the group, from the next packet that arrives."""
        if self.endpoint.fabric.ports.join(self.place, port, group):
            self.endpoint.join(self.place - self.endpoint.base, group)

    def leave(self, group: Group, port: int = 0) -> None:
        """Receive it no more, from the next packet that arrives."""
        if self.endpoint.fabric.ports.leave(self.place, port, group):
            self.endpoint.leave(self.place - self.endpoint.base, group)
