"""The messages of the baselines: DATA, END, ACK, NACK.

An object is a row of *units*: unit 0 is its head (size and information), units 1 to n its segments. Every unit is sent, lost,
asked for and repeated alike.
"""

from dataclasses import dataclass, field
from typing import ClassVar

from protocols.machine import Message
from protocols.norm.identity import SOURCE_SYMBOL, base_of, info_identity

__all__ = ["Ack", "Data", "End", "Nack", "identity_of", "units_of"]


@dataclass(slots=True)
class Data(Message):
    """Unit `unit` of an object of `size` bytes in segments of `segment`. `payload` is None for simulated content.

    `first` is the oldest object the sender still serves. `repair` says that the unit was sent before.
    """

    kind: ClassVar[str] = "data"
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
        """Object and unit."""
        return f"{self.object_id}.{self.unit}"


@dataclass(slots=True)
class End(Message):
    """Everything through object `object_id`, which has `units` units, was sent."""

    kind: ClassVar[str] = "end"
    sender: int
    instance: int
    object_id: int
    units: int
    first: int

    @property
    def brief(self) -> str:
        """The last object."""
        return str(self.object_id)


@dataclass(slots=True)
class Ack(Message):
    """Receiver `node` has this unit."""

    kind: ClassVar[str] = "ack"
    sender: int
    instance: int
    object_id: int
    unit: int
    node: int

    @property
    def brief(self) -> str:
        """Object and unit."""
        return f"{self.object_id}.{self.unit}"


@dataclass(slots=True)
class Nack(Message):
    """Receiver `node` lacks this unit."""

    kind: ClassVar[str] = "nack"
    sender: int
    instance: int
    object_id: int
    unit: int
    node: int

    @property
    def brief(self) -> str:
        """Object and unit."""
        return f"{self.object_id}.{self.unit}"


def units_of(size: int, segment: int) -> int:
    """How many units an object has: its head and its segments."""
    return 1 + -(-size // segment)


def identity_of(sender: int, object_id: int, unit: int) -> int:
    """The name of a unit: NORM's name of the same content, so that the same packets are lost whatever the protocol."""
    if unit == 0:
        return info_identity(sender, object_id & 0xFFFF)
    return base_of(SOURCE_SYMBOL, sender, object_id & 0xFFFF) | (unit - 1)
