"""The messages of the ARQ protocols: DATA, END, ACK and NACK.

A *unit* is the part of an object that one DATA message carries and that is acknowledged, requested and repaired on its own:
unit 0 is the object's head (its size and its out-of-band information), units 1 to n are its n segments.
"""

from dataclasses import dataclass, field
from functools import lru_cache
from typing import ClassVar

from protocols.machine import Message
from protocols.norm.identity import SOURCE_SYMBOL, base_of, info_identity

__all__ = ["Ack", "Data", "End", "Nack", "identity_of", "units_of"]


@dataclass(slots=True)
class Data(Message):
    """Unit `unit` of an object of `size` bytes in segments of `segment` bytes.

    `payload` has `length` bytes, or is None for simulated content. `first` is the oldest object the sender still repairs;
    `repair` says that the unit was sent before.
    """

    kind: ClassVar[str] = "data"
    extra: ClassVar[int] = 0
    """Bytes that a derived message has on the wire beyond these fields."""
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

    @property
    def brief(self) -> str:
        """Object id and unit."""
        return f"{self.object_id}.{self.unit}"


@dataclass(slots=True)
class End(Message):
    """Everything through object `object_id`, which has `units` units, was sent; `first` is as in `Data`."""

    kind: ClassVar[str] = "end"
    sender: int
    instance: int
    object_id: int
    units: int
    first: int

    @property
    def brief(self) -> str:
        """Id of the last object."""
        return str(self.object_id)


@dataclass(slots=True)
class Ack(Message):
    """Receiver `node` acknowledges a unit."""

    kind: ClassVar[str] = "ack"
    is_feedback: ClassVar[bool] = True
    sender: int
    instance: int
    object_id: int
    unit: int
    node: int

    @property
    def brief(self) -> str:
        """Object id and unit."""
        return f"{self.object_id}.{self.unit}"


@dataclass(slots=True)
class Nack(Message):
    """Receiver `node` requests a unit it misses."""

    kind: ClassVar[str] = "nack"
    is_feedback: ClassVar[bool] = True
    sender: int
    instance: int
    object_id: int
    unit: int
    node: int
    extra: ClassVar[int] = 0
    """Bytes that a derived message has on the wire beyond these fields."""

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
