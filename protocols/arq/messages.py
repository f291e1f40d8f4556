"""The messages of the ARQ protocols: DATA, END, ACK and NACK.

A *unit* is the part of an object that one DATA message carries and that is acknowledged, requested and repaired on its own:
unit 0 is the object's head (its size and its out-of-band information), units 1 to n are its n segments.

The `kind` of each message is set at the end of the file, and those that are sent often have a written `__init__`, for the
compiled build (docs/simulator.md).
"""

from dataclasses import dataclass, field
from functools import lru_cache
from typing import ClassVar

from protocols.machine import Message
from protocols.norm.identity import SOURCE_SYMBOL, base_of, info_identity

__all__ = ["Ack", "ArqMessage", "Data", "End", "Nack", "ReceiverMessage", "identity_of", "units_of"]


class ArqMessage(Message):
    """Base of the messages of ARQ protocols."""

    __slots__ = ()
    extra: ClassVar[int] = 0
    """Bytes that a derived message has on the wire beyond the fields of its base."""


@dataclass(slots=True)
class Data(ArqMessage):
    """Unit `unit` of an object of `size` bytes in segments of `segment` bytes.

    `payload` has `length` bytes, or is None for simulated content. `first` is the oldest object the sender still repairs;
    `repair` says that the unit was sent before.
    """

    sender: int
    instance: int
    object_id: int
    unit: int
    first: int
    size: int
    segment: int
    is_file: bool
    # Without field() the property of Message would be taken for a default.
    repair: bool = field()
    payload: bytes | None
    length: int
    identity: int | None = None

    def __init__(
        self,
        sender: int,
        instance: int,
        object_id: int,
        unit: int,
        first: int,
        size: int,
        segment: int,
        is_file: bool,
        repair: bool,
        payload: bytes | None,
        length: int,
        identity: int | None = None,
    ) -> None:
        self.sender = sender
        self.instance = instance
        self.object_id = object_id
        self.unit = unit
        self.first = first
        self.size = size
        self.segment = segment
        self.is_file = is_file
        self.repair = repair
        self.payload = payload
        self.length = length
        self.identity = identity

    @property
    def brief(self) -> str:
        """Object id and unit."""
        return f"{self.object_id}.{self.unit}"


@dataclass(slots=True)
class End(ArqMessage):
    """Everything through object `object_id`, which has `units` units, was sent; `first` is as in `Data`."""

    sender: int
    instance: int
    object_id: int
    units: int
    first: int

    @property
    def brief(self) -> str:
        """Id of the last object."""
        return str(self.object_id)


class ReceiverMessage(ArqMessage):
    """Base of the messages of receivers."""

    __slots__ = ()
    is_feedback: ClassVar[bool] = True


@dataclass(slots=True)
class Ack(ReceiverMessage):
    """Receiver `node` acknowledges a unit."""

    sender: int
    instance: int
    object_id: int
    unit: int
    node: int

    def __init__(self, sender: int, instance: int, object_id: int, unit: int, node: int) -> None:
        self.sender = sender
        self.instance = instance
        self.object_id = object_id
        self.unit = unit
        self.node = node

    @property
    def brief(self) -> str:
        """Object id and unit."""
        return f"{self.object_id}.{self.unit}"


@dataclass(slots=True)
class Nack(ReceiverMessage):
    """Receiver `node` requests a unit it misses."""

    sender: int
    instance: int
    object_id: int
    unit: int
    node: int

    def __init__(self, sender: int, instance: int, object_id: int, unit: int, node: int) -> None:
        self.sender = sender
        self.instance = instance
        self.object_id = object_id
        self.unit = unit
        self.node = node

    @property
    def brief(self) -> str:
        """Object id and unit."""
        return f"{self.object_id}.{self.unit}"


@lru_cache(maxsize=64)
def units_of(size: int, segment: int) -> int:
    """Return how many units an object of `size` bytes in segments of `segment` bytes has, its head included."""
    return 1 + -(-size // segment)


def identity_of(sender: int, object_id: int, unit: int) -> int:
    """Return the identity of a unit: that of the same content in NORM, so that both lose the same packets in a simulation."""
    if unit == 0:
        return info_identity(sender, object_id & 0xFFFF)
    return base_of(SOURCE_SYMBOL, sender, object_id & 0xFFFF) | (unit - 1)


# To mypyc these would be fields, if they were in the dataclasses.
Data.kind = "data"
End.kind = "end"
Ack.kind = "ack"
Nack.kind = "nack"
