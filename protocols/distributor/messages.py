"""The messages of the protocol, one class for each form of a datagram.

Numbers hold what the wire holds: those of the Java program's `int` and `long` are signed, times are in milliseconds.
"""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import ClassVar, NamedTuple, TypeAlias

from protocols.machine import Message
from protocols.message_wire import head_size, write_message
from protocols.messaging import Publication
from protocols.rng import key_of

__all__ = [
    "FIRST",
    "LAST",
    "MIDDLE",
    "WHOLE",
    "Batch",
    "Carried",
    "Configuration",
    "Content",
    "Fragment",
    "Heartbeat",
    "Nak",
    "Request",
    "Segment",
    "Source",
    "SubjectUpdates",
    "sender_key",
]

FIRST, MIDDLE, LAST, WHOLE = 1, 2, 4, 5
"""Values of the flags: the first, a middle and the last segment of a large update, and a segment that stands alone."""

_LOW = (1 << 32) - 1


class Source(NamedTuple):
    """The sender of a datagram, by its header.

    `host` is an IPv4 address as an unsigned number; `start` are the low 32 bits of the time in milliseconds since 1970 at which
    the sender began, signed.
    """

    host: int
    sender_id: int
    start: int
    application: int = 0


@lru_cache(maxsize=4096)
def sender_key(source: Source) -> tuple[int, ...]:
    """Return what names a sender, all but the application; one and the same object for all who hear it."""
    return source[:3]


class Carried:
    """An application message of which an update holds the encoded form, made when it is needed.

    The update carries the message without its destination, which is the update's subject.
    """

    __slots__ = ("_size", "message")

    def __init__(self, message: Publication) -> None:
        self.message = message
        self._size = head_size(message) - len(message.destination.encode()) + message.size

    def __len__(self) -> int:
        return self._size

    def __bytes__(self) -> bytes:
        return write_message(replace(self.message, destination=""))


Content: TypeAlias = bytes | Carried
"""What an update carries."""


class SubjectUpdates(NamedTuple):
    """Consecutive updates of one subject."""

    subject: str
    contents: Sequence[Content]


class Segment(Message):
    """Base of what carries updates: a datagram with a sequence number, which a retransmission repeats."""

    __slots__ = ()
    kind: ClassVar[str] = "data"
    source: Source
    seqno: int
    is_retransmission: bool

    @property
    def identity(self) -> int:
        """The sender and the sequence number; the time at which the sender began is not in it."""
        key = key_of(0, "distributor", self.source.host, self.source.sender_id)
        return key & ~_LOW | self.seqno & _LOW

    @property
    def repair(self) -> bool:
        """Whether it is a retransmission."""
        return self.is_retransmission

    @property
    def brief(self) -> str:
        """The sequence number."""
        return str(self.seqno)

    @abstractmethod
    def again(self) -> "Segment":
        """Return the retransmission of this segment."""


@dataclass(slots=True)
class Batch(Segment):
    """A segment of whole updates, in their order; `size` is the bytes of the datagram, `updates` how many there are."""

    source: Source
    seqno: int
    subjects: Sequence[SubjectUpdates]
    updates: int
    size: int
    is_retransmission: bool = False

    def again(self) -> "Batch":
        """Return the retransmission of this segment."""
        return Batch(self.source, self.seqno, self.subjects, self.updates, self.size, True)


@dataclass(slots=True)
class Fragment(Segment):
    """A segment with a part of a large update; `flags` is FIRST, MIDDLE or LAST.

    `subject`, and `total`, the bytes of the update, are in the first segment only.
    """

    source: Source
    seqno: int
    flags: int
    content: bytes
    subject: str | None = None
    total: int = 0
    is_retransmission: bool = False

    def again(self) -> "Fragment":
        """Return the retransmission of this segment."""
        return Fragment(self.source, self.seqno, self.flags, self.content, self.subject, self.total, True)


@dataclass(slots=True)
class Heartbeat(Message):
    """States the last sequence number a publisher has sent, 0 for none. `group` and `port` are those of the connection."""

    kind: ClassVar[str] = "heartbeat"
    source: Source
    group: int
    port: int
    start: int
    last: int

    @property
    def brief(self) -> str:
        """The last sequence number."""
        return str(self.last)


@dataclass(slots=True)
class Configuration(Message):
    """Announces a publisher: its intervals in milliseconds and the name of its application."""

    kind: ClassVar[str] = "configuration"
    source: Source
    group: int
    port: int
    start: int
    heartbeat_ms: int
    configuration_ms: int
    application: str


@dataclass(slots=True)
class Request(Message):
    """A subscriber's request for the segments `low` to `high` of the publisher `target_id` that began at `target_start`."""

    kind: ClassVar[str] = "request"
    is_feedback: ClassVar[bool] = True
    source: Source
    requestor: int
    target_id: int
    target_start: int
    low: int
    high: int
    host_name: str
    application: str

    @property
    def brief(self) -> str:
        """The range that is requested."""
        return f"{self.low}-{self.high}"


@dataclass(slots=True)
class Nak(Message):
    """States sequence numbers that a publisher can not retransmit, because they have left its cache."""

    kind: ClassVar[str] = "nak"
    source: Source
    group: int
    port: int
    seqnos: tuple[int, ...]

    @property
    def brief(self) -> str:
        """The first and the last number."""
        return f"{self.seqnos[0]}-{self.seqnos[-1]}" if self.seqnos else "none"
