"""A host with a manual clock. It asserts the contract: a machine that breaks a rule fails the test at that input."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from heapq import heappop, heappush
from math import inf
from typing import TypeVar

from experiments.contract.fake_disk import FakeDisk
from experiments.contract.recorder import Recorder
from experiments.contract.rules import ConnectionRules, check_event, check_packet
from protocols.connection import Connection, Reason
from protocols.errors import LivelockError, UsageError
from protocols.events import Event
from protocols.layer import handed_through
from protocols.machine import Address, Codec, Group, Machine, Message, Offer, Packet, Sink
from protocols.rng import Rng, key_of
from protocols.storage import Change, Record
from sim.addresses import address_at, name_and_port

__all__ = ["FakeHost"]

T = TypeVar("T")


class FakeHost(Recorder):
    """Run one machine and be its ports. Assert after every input that the machine announced each earlier deadline.

    `deliver`, `turn`, `open`, `drain`, `close` and `call` are inputs; each takes or uses `now` (seconds), which never
    decreases. Wake-ups come up to `late` seconds late, as on a busy computer. A `bench.Bench` connects several hosts.
    """

    def __init__(self, name: str, *, seed: int = 0, late: float = 0.0) -> None:
        super().__init__()
        self.name = name
        self.rng = Rng(key_of(seed, "node", name))
        self.now = 0.0
        self.late = late
        self.machine: Machine | None = None
        self.on_send: Callable[[Packet, int], object] = lambda packet, port: None
        """Called with each packet sent, and its port; the bench sets it. A true result: the connection is full."""
        self.on_connect: Callable[[Connection], None] = lambda connection: None
        self.on_hang_up: Callable[[Connection], None] = lambda connection: None
        self.on_reset: Callable[[Connection], None] = lambda connection: None
        """Called with each connection that was not closed when its machine was removed."""
        self.on_release: Callable[[Connection], None] = lambda connection: None
        self.damage: Callable[[Message], Iterable[Message]] = lambda message: ()
        """Called with each message that is delivered; returns damaged copies that are delivered after it."""
        self.rules = ConnectionRules(name)
        self.codecs: dict[int, Codec] = {}
        """The codecs of ports that have one of their own."""
        self.members: dict[Group, list[int]] = {}
        """The ports that joined each group."""
        self.disk = FakeDisk()
        self.sync = 0.001
        """Seconds in which a batch becomes durable, and in which records are read."""
        self.transcript: list[tuple[float, str]] = []
        """(time in seconds, kind of packet or repr of event), in order."""
        self._lateness = Rng(key_of(seed, "late", name))
        self._known = inf
        self._armed = inf
        self._timers: list[tuple[float, int, Callable[[], None]]] = []
        self._timer_count = 0
        self._delivered = 0
        self._life = 0
        self._inside = self._draining = False
        self._on_event: Callable[[Event], None] = lambda event: None

    # Host

    def run(
        self,
        machine: Machine,
        on_event: Callable[[Event], None] = lambda event: None,
        accept: Callable[[Offer], Sink | None] | None = None,
    ) -> None:
        """Start the machine. When `accept` is None, this host accepts every object into memory; other hosts accept none."""
        assert self.machine is None, f"{self.name} already runs a machine"
        accept = self.accepting if accept is None else accept
        running, self._on_event, accepting = handed_through(machine, on_event, accept, self)
        self.machine = running
        assert accepting is not None
        self.accepting = accepting
        self._known = inf
        self._input(lambda: running.start(self.now))

    def machine_time(self) -> float:
        """See `Host.machine_time`."""
        return self.now

    def call(self, verb: Callable[..., T], *args: object) -> T:
        """Call `verb(*args, now)` as an input of the machine and return its result; the application then gets the events."""
        return self._input(lambda: verb(*args, self.now))

    def later(self, when: float, action: Callable[[], None]) -> None:
        """Run `action()` at `when` seconds."""
        self._timer_count += 1
        heappush(self._timers, (when, self._timer_count, action))

    def address_of(self, name: str, port: int = 0) -> Address:
        """Return the address of the machine at a port of a host: the name, or a `sim.addresses.HostPort`."""
        return address_at(name, port)

    def stop(self) -> None:
        """Remove the machine: it leaves its groups, its connections are reset, and it gets no further inputs."""
        self.machine = None
        self._armed = inf
        self._life += 1
        self.groups.clear()
        self.members.clear()
        self.listening.clear()
        self.disk.crash(keep=len(self.disk.pending))
        self._reset(list(self.rules.states))

    def crash(self, keep: int = 0) -> None:
        """Remove the machine; of the batches that are not durable the first `keep` become so. `run` starts it again."""
        self.disk.crash(keep)
        self.stop()

    def open_port(self, port: int, codec: Callable[[], Codec] | None = None) -> None:
        """Use a port, whose messages are encoded by a codec of its own."""
        if codec is not None:
            self.codecs[port] = codec()

    def close_port(self, port: int) -> None:
        """Leave the groups of a port, and reset its connections."""
        for group in [group for group, ports in self.members.items() if port in ports]:
            self.leave(group, port)
        if port in self.listening:
            self.listening.remove(port)
        self._reset([connection for connection in self.rules.states if connection.port == port])

    def port_of(self, address: Address) -> int | None:
        """Return the port of this host that an address names, None for other hosts."""
        name, port = name_and_port(address)
        return port if name == self.name else None

    # Ports that differ from the recorder's

    def send(self, packet: Packet, port: int = 0) -> bool:
        """Record the packet and pass it on; return True when the network, or the connection, is full now."""
        check_packet(self.name, packet)
        connection = packet.to
        if isinstance(connection, Connection):
            self.rules.send(connection)
            assert connection.port == port, (
                f"{self.name} sends from port {port} on {connection}, a connection of {connection.port}"
            )
        self.transcript.append((self.now, packet.message.kind))
        full = bool(self.on_send(packet, port)) | super().send(packet, port)
        if full and isinstance(connection, Connection):
            self.rules.fill(connection)
        return full

    def notify(self, event: Event) -> None:
        """Record the event."""
        check_event(self.name, event)
        super().notify(event)

    def alarm(self, when: float) -> None:
        """Move the pending wake-up to `when` seconds if it is later."""
        super().alarm(when)
        self._known = min(self._known, when)
        self._armed = min(self._armed, self._delayed(when))

    def join(self, group: Group, port: int = 0) -> None:
        """Join the group. AssertionError if it is joined already."""
        ports = self.members.setdefault(group, [])
        assert port not in ports, f"{self.name} joins {group} twice"
        ports.append(port)
        if len(ports) == 1:
            super().join(group)

    def leave(self, group: Group, port: int = 0) -> None:
        """Leave the group."""
        ports = self.members[group]
        ports.remove(port)
        if not ports:
            del self.members[group]
            super().leave(group)

    def listen(self, port: int = 0) -> None:
        """Accept connections. UsageError if a machine listens there already."""
        if port in self.listening:
            raise UsageError(f"{self.name}: a machine listens at port {port} already")
        super().listen(port)

    def connect(self, peer: object, port: int = 0) -> Connection:
        """Begin a connection."""
        connection = super().connect(peer, port)
        self.rules.connect(connection)
        self.on_connect(connection)
        return connection

    def hang_up(self, connection: Connection) -> None:
        """Close a connection; `closed` follows. AssertionError for one that is closed or hung up already."""
        self.rules.hang_up(connection)
        super().hang_up(connection)
        self.on_hang_up(connection)

    def store(self, changes: Sequence[Change], port: int = 0) -> int:
        """Make a batch durable, which takes `sync` seconds."""
        ticket = super().store(changes, port)
        self.disk.store(port, changes)
        self.later(self.now + self.sync, partial(self._durable, self._life, ticket))
        return ticket

    def fetch(self, first: bytes = b"", last: bytes | None = None, most: int | None = None, port: int = 0) -> int:
        """Read records, which takes `sync` seconds; what is stored meanwhile is not among them."""
        ticket = super().fetch(first, last, most, port)
        records = self.disk.read(port, first, last, most)
        self.later(self.now + self.sync, partial(self._fetched, self._life, ticket, records))
        return ticket

    # Clock

    @property
    def due(self) -> float:
        """Time in seconds of the next timer or wake-up; inf for none."""
        return min(self._armed, self._timers[0][0]) if self._timers else self._armed

    def turn(self, now: float) -> None:
        """Advance the clock to `now` seconds; run the application's timers that are due, then the machine's wake-up."""
        self._advance(now)
        while self._timers and self._timers[0][0] <= now:
            heappop(self._timers)[2]()
        machine = self.machine
        if machine is None or self._armed > now:
            return
        if machine.deadline <= now:
            self.wake(now)
        self._armed = self._delayed(machine.deadline)

    def wake(self, now: float) -> None:
        """Wake the machine, whether or not its deadline is reached."""
        self._running()
        self._advance(now)
        self._input(self._woken)

    def _woken(self) -> None:
        machine = self._running()
        machine.wake(self.now)
        # Checked before the application gets the events: its calls may set a deadline that is due at once.
        if machine.deadline <= self.now:
            raise LivelockError(f"{self.name}: woken at {self.now}, wants to be woken at {machine.deadline}")

    def deliver(self, message: Message, source: Address, to: Address, now: float) -> None:
        """Deliver a message from `source`, sent to `to`, at `now` seconds, and then its damaged copies."""
        self._deliver(message, source, to, now)
        for copy in self.damage(message):
            if self.machine is None or to in self.hung_up:
                return
            self._deliver(copy, source, to, now)

    def _deliver(self, message: Message, source: Address, to: Address, now: float) -> None:
        own = None if isinstance(to, Connection) else self.port_of(source)
        others = self.members.get(to, []) if isinstance(to, Group) else [self.port_of(to)]
        assert own is None or any(port != own for port in others), f"{self.name} would receive its own message"
        machine = self._running()
        self._advance(now)
        if isinstance(to, Connection):
            self.rules.receive(to)
        self._input(lambda: machine.receive(message, source, to, now))

    def resume(self, now: float, room: float = inf) -> None:
        """Resume the machine; the network takes `room` more packets."""
        machine = self._running()
        self._advance(now)
        self.room = room
        self._input(lambda: machine.resume(now))

    # Connections

    def open(self, connection: Connection, now: float) -> None:
        """Tell the machine that a connection is established; one of another host is new here."""
        machine = self._running()
        self._advance(now)
        self.rules.open(connection)
        self._input(lambda: machine.opened(connection, now))

    def drain(self, connection: Connection, now: float, room: float = inf) -> None:
        """Tell the machine that a connection takes messages again: `room` of them."""
        machine = self._running()
        self._advance(now)
        self.rooms[connection] = room
        self.rules.drain(connection)
        self._input(lambda: machine.drained(connection, now))

    def close(self, connection: Connection, reason: Reason, now: float) -> None:
        """Tell the machine that a connection is closed."""
        machine = self._running()
        self._advance(now)
        self.rules.close(connection, reason)
        self.held_back.discard(connection)
        self._input(lambda: machine.closed(connection, reason, now))

    def release(self, connection: Connection) -> None:
        """Deliver the messages of a connection again."""
        super().release(connection)
        self.on_release(connection)

    def _reset(self, connections: list[Connection]) -> None:
        for connection in connections:
            self.rules.forget(connection)
            self.held_back.discard(connection)
            self.on_reset(connection)

    # Storage

    def _durable(self, life: int, ticket: int) -> None:
        if life == self._life:
            machine = self._running()
            self.disk.sync()
            self._input(lambda: machine.stored(ticket, self.now))

    def _fetched(self, life: int, ticket: int, records: list[Record]) -> None:
        if life == self._life:
            machine = self._running()
            self._input(lambda: machine.fetched(ticket, records, self.now))

    # Inputs

    def _running(self) -> Machine:
        assert self.machine is not None, f"{self.name} runs no machine"
        return self.machine

    def _advance(self, now: float) -> None:
        assert now >= self.now, f"{self.name}: time runs back from {self.now} to {now}"
        self.now = now

    def _delayed(self, when: float) -> float:
        return when + self.late * self._lateness.uniform() if self.late else when

    def _input(self, action: Callable[[], T]) -> T:
        assert not self._inside, f"{self.name}: an input inside an input"
        self._inside = True
        try:
            result = action()
        finally:
            self._inside = False
        self._settle()
        return result

    def _settle(self) -> None:
        """Check that the deadline is not later than an alarm allows, then pass all events to the application."""
        if self.machine is not None:
            deadline = self.machine.deadline
            assert deadline >= self._known, f"{self.name} forgot an alarm: deadline {deadline}, announced {self._known}"
            self._known = deadline
        if self._draining:
            return
        self._draining = True
        try:
            while self._delivered < len(self.events):
                event = self.events[self._delivered]
                self._delivered += 1
                self.transcript.append((self.now, repr(event)))
                self._on_event(event)
        finally:
            self._draining = False
