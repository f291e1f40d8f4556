"""The management messages: announcements by multicast, questions and answers on connections.

Times are texts as the Java program writes them, numbers hold what the wire holds. A text or a list that is absent is None.
"""

from dataclasses import dataclass
from typing import ClassVar

from protocols.machine import Message

__all__ = [
    "Announcement",
    "ConnectionAnswer",
    "ConnectionQuery",
    "ConnectionSummary",
    "ConnectionView",
    "DirectionView",
    "ProcessAnswer",
    "ProcessQuery",
    "ProcessView",
    "QueueView",
    "RateView",
    "RetransmissionView",
    "TrafficView",
]


@dataclass(slots=True)
class Announcement(Message):
    """Announces a process that runs: where it answers (a TCP port), and how much it has; sent every 10 s."""

    kind: ClassVar[str] = "announcement"
    application: str | None
    process_id: int
    started_at: str | None
    address: str | None
    host_name: str | None
    port: int
    publishers: int
    subscribers: int
    connections: int
    requests_sent: int
    requests_received: int
    subscriptions: int


@dataclass(slots=True)
class ConnectionSummary(Message):
    """A connection in the view of its process."""

    kind: ClassVar[str] = "connection summary"
    connection_id: int
    group: str | None
    port: int
    subscribers: int
    publishers: int
    subscriptions: int
    updates_received: int
    updates_sent: int
    requests_received: int
    requests_sent: int


@dataclass(slots=True)
class ProcessView(Message):
    """A process; memory is in MB."""

    kind: ClassVar[str] = "process"
    application: str | None
    process_id: int
    started_at: str | None
    address: str | None
    host_name: str | None
    port: int
    memory_most: float
    memory_used: float
    memory_free: float
    connections: tuple[ConnectionSummary, ...] | None


@dataclass(slots=True)
class ProcessQuery(Message):
    """Asks for the process."""

    kind: ClassVar[str] = "process query"


@dataclass(slots=True)
class ProcessAnswer(Message):
    """Describes the process."""

    kind: ClassVar[str] = "process answer"
    view: ProcessView


@dataclass(slots=True)
class ConnectionQuery(Message):
    """Asks for a connection of the process."""

    kind: ClassVar[str] = "connection query"
    connection_id: int


@dataclass(slots=True)
class RateView(Message):
    """A counter, its rate per second, and the highest rate with its time."""

    kind: ClassVar[str] = "rate"
    name: str | None
    total: int
    current: int
    peak: int
    peak_at: str | None


@dataclass(slots=True)
class QueueView(Message):
    """The updates that wait for the application, and the most that waited, with the time."""

    kind: ClassVar[str] = "queue"
    name: str | None
    size: int
    peak: int
    peak_at: str | None


@dataclass(slots=True)
class DirectionView(Message):
    """Datagrams, bytes and updates sent or received: totals, and rates over about a second, one minute and five minutes."""

    kind: ClassVar[str] = "direction"
    octets: int
    segments: int
    updates: int
    rates: tuple[RateView, ...]
    """Bytes, segments and updates at present, over 1 minute, and over 5 minutes: 9 rates."""


@dataclass(slots=True)
class TrafficView(Message):
    """Counters of sending and receiving."""

    kind: ClassVar[str] = "traffic"
    sent: DirectionView
    received: DirectionView


@dataclass(slots=True)
class RetransmissionView(Message):
    """Requests that were received, sent, and seen of others, and the hosts concerned."""

    kind: ClassVar[str] = "retransmissions"
    received: int
    sent: int
    seen: int
    received_from: tuple[str | None, ...] | None
    sent_to: tuple[str | None, ...] | None


@dataclass(slots=True)
class ConnectionView(Message):
    """A connection in full."""

    kind: ClassVar[str] = "connection"
    group: str | None
    port: int
    connection_id: int
    publishers: int
    subscribers: int
    subscriptions: int
    queue: QueueView
    traffic: TrafficView
    retransmissions: RetransmissionView
    topics: tuple[str | None, ...] | None


@dataclass(slots=True)
class ConnectionAnswer(Message):
    """Describes a connection."""

    kind: ClassVar[str] = "connection answer"
    view: ConnectionView
