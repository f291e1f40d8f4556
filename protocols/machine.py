"""The contract between a protocol and its host. Read this first.

A protocol is a `Machine`: a state machine whose inputs are messages and the time, and whose only outputs are its `Ports`. It
uses no socket, no clock and no simulator. A protocol of datagrams needs nothing of what is said of connections and storage.

Rules, for machines and for hosts:

1. Inputs come one at a time, with `now` (seconds) not decreasing. A machine never receives its own messages.
2. An input without effect costs nothing: all output goes through the ports. Only an earlier deadline is announced (`alarm`).
3. No port re-enters the machine. Events reach the application in order, before the machine's next input.
4. Late and early wake-ups are harmless. With `deadline <= now` after `wake` the host raises `LivelockError`.
5. A remote peer can never make a machine raise; a failing sink ends its object with an event.
6. Messages are read-only once sent: in the simulator one object reaches every receiver.
7. At 10 % loss a sender and two receivers send fewer than 20 packets per segment of content in all, and stop at last.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from math import inf
from typing import ClassVar, Protocol, TypeAlias

from mypy_extensions import mypyc_attr

from protocols.connection import Connection, ConnectionPorts, Reason
from protocols.content import Content, Offer, Sink, Source
from protocols.errors import ContractError
from protocols.events import Event
from protocols.group import Group
from protocols.rng import Rng
from protocols.snapshot import Snapshot, buffers
from protocols.storage import Record, StoragePorts

__all__ = [
    "Address",
    "ClassedPacket",
    "Codec",
    "Content",
    "Event",
    "Group",
    "Machine",
    "Message",
    "Offer",
    "Packet",
    "Ports",
    "Sender",
    "Sink",
    "Source",
]

Address: TypeAlias = Hashable
"""Opaque to machines: a node name in the simulator, an (ip, port) in emulation, a `Group`, a `Connection`."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Message:
    """Base of all messages: slotted dataclasses whose fields hold exactly what the wire holds.

    A subclass may have a field in place of a property.
    """

    __slots__ = ()
    kind: ClassVar[str]
    """Name of the message type in counters and traces, e.g. "data", "nack"."""
    is_feedback: ClassVar[bool] = False
    """Whether receivers send it: NACKs, ACKs and the like."""

    @property
    def identity(self) -> int | None:
        """Stable 64 bits that name the content carried, equal for every transmission of it; None for control messages."""
        return None

    @property
    def repair(self) -> bool:
        """Whether it is a retransmission. For people who look at a run; no machine relies on it."""
        return False

    @property
    def brief(self) -> str:
        """A few characters for traces and drawings: the symbol carried, e.g. "0.2.17", or what is requested."""
        return ""

    @property
    def asks(self) -> Sequence[str]:
        """All that a request names, where `brief` shows only the first of it. For people, as `repair` is."""
        return ()


class Packet:
    """A message to be sent: `size` is bytes of UDP payload, on a connection those of the encoded message."""

    __slots__ = ("message", "size", "to")

    def __init__(self, message: Message, size: int, to: Address) -> None:
        self.message = message
        self.size = size
        self.to = to


class ClassedPacket(Packet):
    """A packet whose IP header requests a class of service: `dscp`, 6 bits (RFC 2474). Others have that of the host."""

    __slots__ = ("dscp",)

    def __init__(self, message: Message, size: int, to: Address, dscp: int) -> None:
        super().__init__(message, size, to)
        self.dscp = dscp


class Ports(ConnectionPorts, StoragePorts, Protocol):
    """The only outputs of a machine, with those of protocols/connection.py and protocols/storage.py."""

    trace: Callable[[str, object], None] | None
    """Takes the name and the details of a decision; None while nothing is traced."""

    @property
    def rng(self) -> Rng:
        """The machine's stream of random numbers."""

    @property
    def epoch(self) -> float:
        """Seconds between 1970-01-01 00:00 UTC and `now` = 0, for time stamps; 0.0 in the simulator."""

    def send(self, packet: Packet) -> object:
        """Send a packet; it is always accepted. A true result means "full": send no more before `resume`."""

    def notify(self, event: Event) -> None:
        """Give an event to the application, before this machine's next input."""

    def alarm(self, when: float) -> None:
        """Announce that the machine's deadline moved earlier, to `when`."""

    def join(self, group: Group) -> None:
        """Receive what is sent to `group` from now on. UsageError, and nothing changes, if this host can't."""

    def leave(self, group: Group) -> None:
        """Stop receiving what is sent to `group`."""

    def accept(self, offer: Offer) -> Sink | None:
        """Return the storage for an object, or None when it is not wanted."""

    def keep(self, octets: int) -> None:
        """State that the machine keeps so many bytes of content now, where it has no bound of its own.

        A host that has less memory ends as a crash: in the simulator by this number, else by the limit of its process.
        """

    def fail(self, reason: str) -> None:
        """End the host's program as a crash, by a fault of the machine's own that is a part of its model; no input follows."""

    def work(self, seconds: float) -> None:
        """State that this input costs `seconds` of processor time: the next input and what is sent from now on wait for it."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Machine(ABC):
    """One end of a protocol; `deadline` is when `wake` is wanted, in seconds. Subclasses are slotted: there may be many."""

    __slots__ = ("deadline", "ports")

    def __init__(self, ports: Ports) -> None:
        self.ports = ports
        self.deadline = inf

    def _due(self, when: float) -> None:
        """Move the deadline; an earlier one is announced. ContractError for nan, which would never come."""
        if when < self.deadline:
            self.ports.alarm(when)
        elif not when >= self.deadline:
            raise ContractError(f"{type(self).__name__} sets its deadline to {when!r}; seconds are allowed, inf for never")
        self.deadline = when

    @abstractmethod
    def start(self, now: float) -> None:
        """Begin: join groups, send the first message."""

    @abstractmethod
    def receive(self, message: Message, source: Address, to: Address, now: float) -> None:
        """Process a message of another node."""

    def receive_marked(self, message: Message, source: Address, to: Address, now: float) -> None:
        """Process a message whose packet a queue has marked instead of dropping it (ECN, RFC 3168)."""
        self.receive(message, source, to, now)

    @abstractmethod
    def wake(self, now: float) -> None:
        """Do what is due. The host calls it at or near the deadline; afterwards `deadline` is later than `now`."""

    def resume(self, now: float) -> None:
        """Send again, after `send` returned "full"."""

    @abstractmethod
    def counts(self) -> dict[str, int]:
        """Return the machine's counters by name; a name means the same in every protocol (docs/protocols.md)."""

    def held(self) -> dict[str, tuple[int, int]]:
        """Return the bounded state the machine keeps, by name: (kept now, allowed by its own parameters)."""
        return {}

    def snapshot(self, now: float) -> Snapshot:
        """Return the machine's statistics at `now` seconds; changes nothing. A protocol adds its parts."""
        return Snapshot("session", values=self.counts(), parts=buffers(self.held()))

    def opened(self, connection: Connection, now: float) -> None:
        """Use a connection that is established, by `connect` of this machine or of another."""

    def drained(self, connection: Connection, now: float) -> None:
        """Send on the connection again, after `send` returned "full" for it."""

    def closed(self, connection: Connection, reason: Reason, now: float) -> None:
        """Forget a connection, and what was sent on it and not answered."""

    def stored(self, ticket: int, now: float) -> None:
        """Go on after a batch given to `store` became durable."""

    def fetched(self, ticket: int, records: Sequence[Record], now: float) -> None:
        """Take the records asked for with `fetch`."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Sender(Machine):
    """A machine that takes content from an application."""

    __slots__ = ()

    @abstractmethod
    def submit(self, content: Content, now: float) -> int:
        """Queue an object for sending and return its object id. Call through `Host.call`."""


class Codec(Protocol):
    """Converts messages to bytes and back."""

    def encode(self, message: Message) -> bytes:
        """Return the UDP payload."""

    def decode(self, data: bytes) -> Message:
        """Return the message, its `identity` included. Raises WireError and nothing else."""
