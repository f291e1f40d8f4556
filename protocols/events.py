"""Events a machine reports to its application, in order. Their names are past participles."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

__all__ = [
    "AcksCompleted",
    "CommandReceived",
    "CommandSent",
    "Event",
    "FlushCompleted",
    "InfoReceived",
    "NodeAcknowledged",
    "NodeClash",
    "NodeUnacknowledged",
    "ObjectAborted",
    "ObjectOpened",
    "ObjectPurged",
    "ObjectReceived",
    "ObjectSent",
    "ObjectsAborted",
    "SenderActive",
    "SenderHeard",
    "SenderReset",
    "SenderSilent",
    "info_received",
    "sender_heard",
]


class Event:
    """Base of all events."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class ObjectSent(Event):
    """Sender: every segment of the object was transmitted once."""

    object_id: int


@dataclass(frozen=True, slots=True)
class FlushCompleted(Event):
    """Sender: everything through this object was sent, and the end of transmission was announced as often as configured.

    Whatever was lost, the sender sends nothing more for these objects unless a receiver requests it. At 10 % loss all receivers
    are complete by then, and within 20 s, which the contract suite checks.
    """

    object_id: int


@dataclass(frozen=True, slots=True)
class NodeAcknowledged(Event):
    """Sender: a receiver has everything through the end of this object, or through the point of a stream that was asked for.

    `content` is the application data of its ACK.
    """

    object_id: int
    node: int
    content: bytes


@dataclass(frozen=True, slots=True)
class NodeUnacknowledged(Event):
    """Sender: a receiver was asked as often as configured and has not acknowledged."""

    object_id: int
    node: int


@dataclass(frozen=True, slots=True)
class AcksCompleted(Event):
    """Sender: no more ACKs are awaited for this object; node ids of those that acknowledged and of those that did not."""

    object_id: int
    acknowledged: tuple[int, ...]
    missing: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class CommandSent(Event):
    """Sender: the last copy of an application's command was sent."""

    command_id: int


@dataclass(frozen=True, slots=True)
class CommandReceived(Event):
    """Receiver: a command of the sender's application was received; one event for all copies of it."""

    sender: int
    content: bytes


@dataclass(frozen=True, slots=True)
class ObjectPurged(Event):
    """Sender: the object left the repair window; its source is no longer read."""

    object_id: int


@dataclass(frozen=True, slots=True)
class SenderHeard(Event):
    """Receiver: the first message of a sender was received, or the first since it forgot the sender.

    A receiver forgets senders to make room for others. Objects of a forgotten sender that have ended before may end again.
    """

    sender: int


@dataclass(frozen=True, slots=True)
class SenderActive(Event):
    """Receiver: a sender that was reported as silent sends again."""

    sender: int


@dataclass(frozen=True, slots=True)
class NodeClash(Event):
    """Another host uses the id of `node`, the own one or that of a known sender; `source` is its address as text.

    Content and commands that come from it are ignored. It is notified once for each host that uses the own id (16 at most), and
    for a sender once until the sender is heard from another host.
    """

    node: int
    source: str


@dataclass(frozen=True, slots=True)
class SenderReset(Event):
    """Receiver: the sender restarted (another instance id); its incomplete objects were aborted."""

    sender: int


@dataclass(frozen=True, slots=True)
class SenderSilent(Event):
    """Receiver: no message of the sender was received for so long that it is taken to have ended.

    NORM: `rx_robust` activity periods of 2 `robust` GRTT, at least 1 s each. A, N1, N2 and SRM: 3 times `robust` times
    `timeout` while an object is incomplete.
    """

    sender: int


@dataclass(frozen=True, slots=True)
class ObjectOpened(Event):
    """Receiver: the first message of an object of `size` bytes was received."""

    sender: int
    object_id: int
    size: int


@dataclass(frozen=True, slots=True)
class InfoReceived(Event):
    """Receiver: the out-of-band information of an object was received (for a file: its name)."""

    sender: int
    object_id: int
    info: bytes


@dataclass(frozen=True, slots=True)
class ObjectReceived(Event):
    """Receiver: an object is complete and its sink was committed."""

    sender: int
    object_id: int
    size: int
    info: bytes


@dataclass(frozen=True, slots=True)
class ObjectAborted(Event):
    """Receiver: an object will not be completed. Sender: its source failed, or it was cancelled. `reason` is a short text."""

    sender: int
    object_id: int
    reason: str


@dataclass(frozen=True, slots=True)
class ObjectsAborted(Event):
    """Receiver: `count` (at least 2) consecutive objects of which nothing was received will not be completed.

    It stands for as many `ObjectAborted`: `first` is the lowest id, and ids go on from 65535 to 0.
    """

    sender: int
    first: int
    count: int
    reason: str


sender_heard: Final = lru_cache(maxsize=256)(SenderHeard)
info_received: Final = lru_cache(maxsize=256)(InfoReceived)
"""Return the event with these values; many receivers notify equal ones, which are one object then."""
