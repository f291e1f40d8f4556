"""A shim between a host and its machine that injects faults: it drops, parks and delays packets, and has the host's clock.

The shim is a machine itself and passes on every input, so neither engines nor machines have code for it. Its inputs are by
simulated time, those of the inner machine by the clock. Hosts without faults have none.
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import inf
from typing import Any

from protocols.connection import Connection, Reason
from protocols.machine import Address, Machine, Message, Ports
from protocols.snapshot import Snapshot
from protocols.storage import Record
from sim.addresses import name_and_port
from sim.clock import Clock
from sim.flight import Flight
from sim.idle import IDLE
from sim.noise import Noise
from sim.timers import KernelHost

__all__ = ["FaultShim", "Rule"]

Received = tuple[Message, Address, Address, bool]
"""A received message, its source, the address it was sent to, and whether a queue marked it (ECN)."""


@dataclass(frozen=True, eq=False, slots=True)
class Rule:
    """The hosts whose packets are shut out: `names`, or with `others` all but those. `parks`: packets are kept, not lost."""

    names: frozenset[str]
    others: bool = False
    parks: bool = False

    def matches(self, source: Address) -> bool:
        """Return whether packets from this host are shut out."""
        return (name_and_port(source)[0] in self.names) is not self.others


class FaultShim(Machine):
    """The machine that a host with faults runs; `inner` is the protocol's, or an idle one while the host is down.

    `host` is the host; the ports of the inner machine are the host's.
    """

    __slots__ = ("clock", "dropped", "free_at", "host", "inner", "kept", "parked", "queue", "room", "rules", "takes")

    def __init__(self, host: KernelHost, ports: Ports) -> None:
        super().__init__(ports)
        self.host = host
        self.inner: Machine = IDLE
        self.clock = Clock()
        self.rules: list[Rule] = []
        self.parked: list[tuple[Rule, Callable[[float], None]]] = []
        """The receptions that wait for the end of a rule."""
        self.dropped = 0
        """Packets dropped by rules and by the full buffer of a slow application."""
        self.takes = 0.0
        """Seconds the application takes for each packet."""
        self.room = 0
        """How many packets may wait for a slow application."""
        self.queue: deque[Received] = deque()
        self.kept: dict[Connection, deque[Received]] = {}
        """The messages that wait on connections that are held."""
        self.free_at = 0.0

    @property
    def deadline(self) -> float:
        """In simulated time; the inner machine's own is by the clock of its host."""
        due = self.clock.when(self.inner.deadline)
        return min(due, self.free_at) if self.queue else due

    @deadline.setter
    def deadline(self, when: float) -> None:
        assert when == inf, "a fault shim has no deadline of its own"

    def start(self, now: float) -> None:
        """Start the inner machine; `now` is by its clock already."""
        self.inner.start(now)

    def receive(self, message: Message, source: Address, to: Address, now: float) -> None:
        """Drop, park, queue or deliver a packet; a message of a connection is never dropped or parked."""
        self._take(message, source, to, False, now)

    def receive_marked(self, message: Message, source: Address, to: Address, now: float) -> None:
        """Drop, park, queue or deliver a packet that a queue marked."""
        self._take(message, source, to, True, now)

    def _take(self, message: Message, source: Address, to: Address, is_marked: bool, now: float) -> None:
        if self.inner is IDLE or isinstance(message, Noise):
            # The host is down. A group still lists the shim, which would keep the packet for a machine that starts later.
            # No machine receives noise, so it is neither counted as dropped nor queued.
            return
        received = message, source, to, is_marked
        if isinstance(source, Connection):
            held = self.kept.get(source)
            if held is not None or self.takes:
                end: Any = source
                end.postpone()
            if held is not None:
                held.append(received)
                return
        elif self._is_shut_out(source, partial(self._take, *received)):
            return
        if self.takes:
            self._queue(received, now)
        else:
            self._deliver(received, now)

    def hold(self, connection: Connection) -> None:
        """Let the messages of a connection wait from now on."""
        self.kept.setdefault(connection, deque())

    def let_go(self, connection: Connection, now: float) -> None:
        """Let the machine have the messages of a connection that waited, and the next ones at once."""
        for received in self.kept.pop(connection, ()):
            if self.takes:
                self._queue(received, now)
            else:
                self._pass(received, now)

    def shuts_out(self, flight: Flight, receive: Callable[[float], None]) -> bool:
        """Return whether a segment of a connection is dropped or parked; a parked one is received by `receive(now)` later."""
        return flight.source != self.host.name and self._is_shut_out(flight.source, receive)

    def _is_shut_out(self, source: Address, receive: Callable[[float], None]) -> bool:
        for rule in self.rules:
            if rule.matches(source):
                if rule.parks:
                    self.parked.append((rule, receive))
                else:
                    self.dropped += 1
                return True
        return False

    def opened(self, connection: Connection, now: float) -> None:
        """Pass it on; see `Machine`."""
        self.inner.opened(connection, self.clock.read(now))

    def drained(self, connection: Connection, now: float) -> None:
        """Pass it on; see `Machine`."""
        self.inner.drained(connection, self.clock.read(now))

    def closed(self, connection: Connection, reason: Reason, now: float) -> None:
        """Pass it on; the messages received before were read, since the connection waits for that."""
        self.inner.closed(connection, reason, self.clock.read(now))

    def wake(self, now: float) -> None:
        """Let the slow application read, and the inner machine wake, as far as these are due."""
        while self.queue and self.free_at <= now:
            self._read(now)
            self.free_at += self.takes
        inner = self.inner
        if self.clock.when(inner.deadline) <= now:
            inner.wake(self.clock.read(now, inner.deadline))

    def stored(self, ticket: int, now: float) -> None:
        """Pass it on: a slow application is slow to read packets only."""
        self.inner.stored(ticket, self.clock.read(now))

    def fetched(self, ticket: int, records: Sequence[Record], now: float) -> None:
        """Pass it on, as `stored`."""
        self.inner.fetched(ticket, records, self.clock.read(now))

    def counts(self) -> dict[str, int]:
        """Return the counters of the inner machine."""
        return self.inner.counts()

    def snapshot(self, now: float) -> Snapshot:
        """Return the statistics of the inner machine; `now` is by its clock already."""
        return self.inner.snapshot(now)

    def release(self, rule: Rule, now: float) -> None:
        """Remove a rule; the packets it parked are received now, in order."""
        self.rules.remove(rule)
        kept = [receive for other, receive in self.parked if other is rule]
        self.parked = [entry for entry in self.parked if entry[0] is not rule]
        for receive in kept:
            receive(now)

    def read_at(self, takes: float, room: int, now: float) -> None:
        """Let the application take `takes` seconds for a packet from now on, and `room` wait; 0.0: read all now."""
        self.takes, self.room = takes, room
        while self.queue and not takes:
            self._read(now)

    def rearm(self) -> None:
        """Announce the deadline after a change that the inner machine did not make."""
        self.host.arm(self.deadline)

    def empty(self) -> None:
        """Crash: remove the inner machine, and drop all packets that wait."""
        self.inner = IDLE
        self.queue.clear()
        self.kept.clear()
        self.parked.clear()

    def _queue(self, received: Received, now: float) -> None:
        if len(self.queue) >= self.room and not isinstance(received[1], Connection):
            self.dropped += 1
            return
        if not self.queue:
            self.free_at = now + self.takes
        self.queue.append(received)
        self.rearm()

    def _read(self, now: float) -> None:
        self._pass(self.queue.popleft(), now)

    def _pass(self, received: Received, now: float) -> None:
        message, source, _, _ = received
        if not isinstance(source, Connection):
            self._deliver(received, now)
            return
        end: Any = source
        end.give(self._receive_now, message, now)

    def _deliver(self, received: Received, now: float) -> None:
        message, source, to, is_marked = received
        deliver = self.inner.receive_marked if is_marked else self.inner.receive
        deliver(message, source, to, self.clock.read(now))

    def _receive_now(self, message: Message, source: Address, to: Address, now: float) -> None:
        self.inner.receive(message, source, to, self.clock.read(now))
