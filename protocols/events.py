"""What a machine tells its application. Events are past participles and reach the application in order."""

from dataclasses import dataclass

__all__ = [
    "Event",
    "FlushCompleted",
    "InfoReceived",
    "ObjectAborted",
    "ObjectOpened",
    "ObjectPurged",
    "ObjectReceived",
    "ObjectSent",
    "SenderHeard",
    "SenderReset",
    "SenderSilent",
]


class Event:
    """Base of what the application is told."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class ObjectSent(Event):
    """Sender: every segment of the object was transmitted once."""

    object_id: int


@dataclass(frozen=True, slots=True)
class FlushCompleted(Event):
    """Sender: nothing is pending, and the end of transmission was announced often enough."""

    object_id: int


@dataclass(frozen=True, slots=True)
class ObjectPurged(Event):
    """Sender: the object left the repair window; its source is not read any more."""

    object_id: int


@dataclass(frozen=True, slots=True)
class SenderHeard(Event):
    """Receiver: a sender was heard for the first time."""

    sender: int


@dataclass(frozen=True, slots=True)
class SenderReset(Event):
    """Receiver: the sender restarted (another instance_id); everything unfinished of it is lost."""

    sender: int


@dataclass(frozen=True, slots=True)
class SenderSilent(Event):
    """Receiver: the sender was not heard for the whole activity period."""

    sender: int


@dataclass(frozen=True, slots=True)
class ObjectOpened(Event):
    """Receiver: the first message of an object came."""

    sender: int
    object_id: int
    size: int


@dataclass(frozen=True, slots=True)
class InfoReceived(Event):
    """Receiver: the out-of-band information of an object (for a file: its name)."""

    sender: int
    object_id: int
    info: bytes


@dataclass(frozen=True, slots=True)
class ObjectReceived(Event):
    """Receiver: the whole object is there and its sink is committed."""

    sender: int
    object_id: int
    size: int
    info: bytes


@dataclass(frozen=True, slots=True)
class ObjectAborted(Event):
    """Receiver: the object will never be complete; `reason` is one of the words of the protocol's documentation."""

    sender: int
    object_id: int
    reason: str
