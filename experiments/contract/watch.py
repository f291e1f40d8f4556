"""A machine that surrounds another and checks the calls between it and its host, in any world."""

from collections.abc import Callable, Sequence
from functools import partial
from math import inf
from typing import TypeVar

from experiments.contract.rules import ConnectionRules, StorageRules
from protocols.connection import Connection, Reason
from protocols.event_layer import Accept, MachineClock, OnEvent, innermost
from protocols.events import Event
from protocols.layer import handed_through
from protocols.machine import Address, Content, Group, Machine, Message, Offer, Packet, Ports, Sender, Sink
from protocols.rng import Rng
from protocols.snapshot import Snapshot
from protocols.storage import Change, Record

__all__ = ["Watch"]

T = TypeVar("T")


class _WatchedPorts:
    """The host's ports; each call is checked and recorded by the watch."""

    def __init__(self, ports: Ports, watch: "Watch") -> None:
        self.rng: Rng = ports.rng
        self.trace: Callable[[str, object], None] | None = None
        self._ports = ports
        self._watch = watch

    @property
    def epoch(self) -> float:
        return self._ports.epoch

    def send(self, packet: Packet) -> object:
        self._watch.expect_inside("sent")
        self._watch.sent += 1
        connection = packet.to if isinstance(packet.to, Connection) else None
        if connection is not None:
            self._watch.connections.send(connection)
        full = self._ports.send(packet)
        if full and connection is not None:
            self._watch.connections.fill(connection)
        return full

    def notify(self, event: Event) -> None:
        self._watch.expect_inside("notified")
        self._watch.notified.append(event)
        self._ports.notify(event)

    def alarm(self, when: float) -> None:
        self._watch.announced(when)
        self._ports.alarm(when)

    def join(self, group: Group) -> None:
        self._ports.join(group)

    def leave(self, group: Group) -> None:
        self._ports.leave(group)

    def accept(self, offer: Offer) -> Sink | None:
        return self._ports.accept(offer)

    def listen(self) -> None:
        self._watch.expect_inside("listened")
        self._ports.listen()

    def connect(self, peer: object) -> Connection:
        self._watch.expect_inside("connected")
        connection = self._ports.connect(peer)
        self._watch.connections.connect(connection)
        return connection

    def hang_up(self, connection: Connection) -> None:
        self._watch.expect_inside("hung up")
        self._watch.connections.hang_up(connection)
        self._ports.hang_up(connection)

    def hold(self, connection: Connection) -> None:
        self._watch.expect_inside("held a connection")
        self._ports.hold(connection)

    def release(self, connection: Connection) -> None:
        self._watch.expect_inside("released a connection")
        self._ports.release(connection)

    def keep(self, octets: int) -> None:
        self._watch.expect_inside("stated what it keeps")
        self._ports.keep(octets)

    def fail(self, reason: str) -> None:
        self._watch.expect_inside("failed")
        self._ports.fail(reason)

    def store(self, changes: Sequence[Change]) -> int:
        self._watch.expect_inside("stored")
        ticket = self._ports.store(changes)
        self._watch.storage.store(ticket)
        return ticket

    def fetch(self, first: bytes = b"", last: bytes | None = None, most: int | None = None) -> int:
        self._watch.expect_inside("fetched")
        ticket = self._ports.fetch(first, last, most)
        self._watch.storage.fetch(ticket)
        return ticket

    def work(self, seconds: float) -> None:
        self._watch.expect_inside("worked")
        assert 0.0 <= seconds < inf, f"a machine states {seconds} s of work"
        self._ports.work(seconds)


class Watch(Sender):
    """Assert that host and machine keep the contract.

    The host makes one input at a time, at times that never decrease, and passes all events in order to the application before
    the next input. The machine's deadline is never later than an alarm allows, and in the future after each wake-up. Both use
    connections and storage by their rules (`rules`); `expect_all_ended` is for the end of a run. A host runs it with what
    `through` returns. `made` is the machine, and `inner` what a host would run in its place (`innermost`).
    """

    __slots__ = (
        "_heard",
        "_hearing",
        "_known",
        "_latest",
        "connections",
        "inner",
        "inputs",
        "inside",
        "made",
        "notified",
        "sent",
        "storage",
    )

    def __init__(self, ports: Ports, make: Callable[[Ports], Machine]) -> None:
        super().__init__(ports)
        self.inside = False
        self.sent = self.inputs = self._heard = 0
        self.notified: list[Event] = []
        self._known, self._latest = inf, 0.0
        self._hearing = False
        self.connections = ConnectionRules("a machine")
        self.storage = StorageRules("a machine")
        self.made = make(_WatchedPorts(ports, self))
        self.inner = innermost(self.made)
        self.deadline = self.inner.deadline

    def start(self, now: float) -> None:
        """Start the inner machine."""
        self._input(self.inner.start, now)

    def receive(self, message: Message, source: Address, to: Address, now: float) -> None:
        """Pass a message to the inner machine."""
        if isinstance(to, Connection) or isinstance(source, Connection):
            assert source is to, f"a message on a connection comes from {source} to {to}"
            assert isinstance(to, Connection)
            self.connections.receive(to)
        self._input(lambda now: self.inner.receive(message, source, to, now), now)

    def wake(self, now: float) -> None:
        """Wake the inner machine and check that its deadline is in the future."""
        self._input(self.inner.wake, now)
        assert self.inner.deadline > now, f"woken at {now}, wants to be woken at {self.inner.deadline}"

    def resume(self, now: float) -> None:
        """Resume the inner machine."""
        self._input(self.inner.resume, now)

    def opened(self, connection: Connection, now: float) -> None:
        """Pass a connection to the inner machine."""
        self.connections.open(connection)
        self._input(lambda now: self.inner.opened(connection, now), now)

    def drained(self, connection: Connection, now: float) -> None:
        """Let the inner machine send on a connection again."""
        self.connections.drain(connection)
        self._input(lambda now: self.inner.drained(connection, now), now)

    def closed(self, connection: Connection, reason: Reason, now: float) -> None:
        """Tell the inner machine of the end of a connection."""
        self.connections.close(connection, reason)
        self._input(lambda now: self.inner.closed(connection, reason, now), now)

    def stored(self, ticket: int, now: float) -> None:
        """Tell the inner machine that a batch is durable."""
        self.storage.stored(ticket)
        self._input(lambda now: self.inner.stored(ticket, now), now)

    def fetched(self, ticket: int, records: Sequence[Record], now: float) -> None:
        """Pass records to the inner machine."""
        self.storage.fetched(ticket)
        self._input(lambda now: self.inner.fetched(ticket, records, now), now)

    def submit(self, content: Content, now: float) -> int:
        """Submit content to the machine, a sender."""
        made = self.made
        assert isinstance(made, Sender)
        return self._input(lambda now: made.submit(content, now), now)

    def act(self, action: Callable[[], T], now: float) -> T:
        """Call `action()`, which uses the inner machine, as an input. Call through `Host.call`."""
        return self._input(lambda now: action(), now)

    def counts(self) -> dict[str, int]:
        """Return the counters of the inner machine."""
        return self.inner.counts()

    def snapshot(self, now: float) -> Snapshot:
        """Return the statistics of the inner machine."""
        return self.inner.snapshot(now)

    def through(self, on_event: OnEvent, clock: MachineClock, accept: Accept | None = None) -> tuple[OnEvent, Accept | None]:
        """Return what a host is given for the application's `on_event`, which may use `Host.call`, and `accept`."""
        _, react, accept = handed_through(self.made, on_event, accept, clock)
        return partial(self._hear, react), accept

    def _hear(self, react: OnEvent, event: Event) -> None:
        """Check that `event` is the next in order and pass it to `react`."""
        assert not self.inside, "an event reached the application inside an input"
        assert self._heard < len(self.notified), f"the machine never notified {event}"
        expected = self.notified[self._heard]
        assert event is expected, f"the application got {event} before {expected}, which was notified first"
        self._heard += 1
        self._hearing = True
        react(event)
        self._hearing = False

    def expect_inside(self, did: str) -> None:
        """Assert that the machine processes an input."""
        assert self.inside, f"a machine {did} outside its inputs"

    def expect_all_ended(self) -> None:
        """Assert that the host told the end of all that the machine waits for."""
        self.connections.expect_all_closed()
        self.storage.expect_all_answered()

    def announced(self, when: float) -> None:
        """Record that the machine set an alarm for `when` seconds."""
        self._known = min(self._known, when)
        self.deadline = min(self.deadline, when)

    def _input(self, action: Callable[[float], T], now: float) -> T:
        assert not self.inside, "an input inside an input"
        assert now >= self._latest, f"time runs back from {self._latest} to {now}"
        unheard = self.notified[self._heard :]
        assert self._hearing or not unheard, f"the next input came before the application got {unheard}"
        self._latest, self.inside = now, True
        self.inputs += 1
        try:
            result = action(now)
        finally:
            self.inside = False
        deadline = self.inner.deadline
        assert deadline >= self._known, f"forgot an alarm: deadline {deadline}, announced {self._known}"
        self._known = self.deadline = deadline
        return result
