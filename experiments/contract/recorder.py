"""Ports that record every output of a machine, for tests of one machine without a host."""

from collections import Counter
from collections.abc import Callable, Sequence
from math import inf

from experiments.contract.content import CheckedSink
from protocols.connection import Connection
from protocols.events import Event
from protocols.machine import Group, Offer, Packet, Sink
from protocols.rng import Rng, key_of
from protocols.storage import Change

__all__ = ["Recorder"]


class Recorder:
    """Record each call of a port in a list. Objects are accepted into memory unless `accepting` is replaced.

    A test calls the inputs of its machine itself (`machine.receive(message, source, to, now)`) and compares the lists.
    """

    def __init__(self, seed: int = 0) -> None:
        self.rng = Rng(key_of(seed, "recorder"))
        self.trace: Callable[[str, object], None] | None = None
        self.epoch = 0.0
        self.packets: list[Packet] = []
        self.events: list[Event] = []
        self.alarms: list[float] = []
        self.groups: list[Group] = []
        self.offers: list[Offer] = []
        self.sinks: dict[tuple[int, int], Sink] = {}
        """The accepted sinks by (sender, object id)."""
        self.room = inf
        """Packets the network takes before `send` returns "full"."""
        self.rooms: dict[Connection, float] = {}
        """Messages that a connection takes before `send` returns "full"; as many as there are for those not in it."""
        self.accepting: Callable[[Offer], Sink | None] = lambda offer: CheckedSink(offer.size)
        self.listening: list[int] = []
        """The ports at which the machine listens."""
        self.connections: list[Connection] = []
        """The connections that the machine began."""
        self.hung_up: list[Connection] = []
        self.held_back: set[Connection] = set()
        """The connections that are held."""
        self.stores: list[tuple[int, tuple[Change, ...]]] = []
        """Ticket and changes of each batch."""
        self.fetches: list[tuple[int, bytes, bytes | None, int | None]] = []
        """Ticket, first, last, and most of each request for records."""
        self.works: list[float] = []
        """The processor time of each input that stated one, in seconds."""
        self.kept_octets: dict[int, int] = {}
        """Bytes that the machine of each port keeps without a bound of its own."""
        self.failures: list[str] = []
        """Why the machine ended its host."""
        self._tickets = 0

    def send(self, packet: Packet, port: int = 0) -> bool:
        """Record the packet; return True when the network, or the connection, is full now."""
        del port
        self.packets.append(packet)
        if isinstance(packet.to, Connection):
            left = self.rooms[packet.to] = self.rooms.get(packet.to, inf) - 1
            return left <= 0
        self.room -= 1
        return self.room <= 0

    def notify(self, event: Event) -> None:
        """Record the event."""
        self.events.append(event)

    def alarm(self, when: float) -> None:
        """Record the time of the alarm, in seconds."""
        self.alarms.append(when)

    def join(self, group: Group, port: int = 0) -> None:
        """Add the group to `groups`."""
        del port
        self.groups.append(group)

    def leave(self, group: Group, port: int = 0) -> None:
        """Remove the group from `groups`."""
        del port
        self.groups.remove(group)

    def accept(self, offer: Offer) -> Sink | None:
        """Record the offer and return the sink that `accepting` gives for it."""
        self.offers.append(offer)
        sink = self.accepting(offer)
        if sink is not None:
            self.sinks[offer.sender, offer.object_id] = sink
        return sink

    def listen(self, port: int = 0) -> None:
        """Record the port."""
        self.listening.append(port)

    def connect(self, peer: object, port: int = 0) -> Connection:
        """Record and return a new connection."""
        self.connections.append(Connection(peer, port))
        return self.connections[-1]

    def hang_up(self, connection: Connection) -> None:
        """Record the connection."""
        self.hung_up.append(connection)

    def hold(self, connection: Connection) -> None:
        """Record the connection as held."""
        self.held_back.add(connection)

    def release(self, connection: Connection) -> None:
        """Record that the connection is held no more."""
        self.held_back.discard(connection)

    def store(self, changes: Sequence[Change], port: int = 0) -> int:
        """Record the batch and return its ticket, from 1."""
        del port
        self._tickets += 1
        self.stores.append((self._tickets, tuple(changes)))
        return self._tickets

    def fetch(self, first: bytes = b"", last: bytes | None = None, most: int | None = None, port: int = 0) -> int:
        """Record the request and return its ticket."""
        del port
        self._tickets += 1
        self.fetches.append((self._tickets, first, last, most))
        return self._tickets

    def keep(self, octets: int, port: int = 0) -> None:
        """Record the bytes that the machine of a port keeps."""
        assert octets >= 0, f"{octets} bytes are kept"
        self.kept_octets[port] = octets

    def fail(self, reason: str) -> None:
        """Record why the machine ends its host."""
        self.failures.append(reason)

    def work(self, seconds: float) -> None:
        """Record the processor time of an input."""
        assert seconds >= 0, f"work of {seconds} s"
        self.works.append(seconds)

    def kinds(self) -> Counter[str]:
        """Return the number of packets sent, by kind of message."""
        return Counter(packet.message.kind for packet in self.packets)
