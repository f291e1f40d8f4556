"""The message of the protocol: a part of an application message."""

from dataclasses import dataclass
from typing import ClassVar

from protocols.machine import Message
from protocols.messaging import Publication
from protocols.rng import key_of

__all__ = ["Part", "part_of"]

_LOW = (1 << 32) - 1


@dataclass(slots=True)
class Part(Message):
    """Part `part` of `parts` of an application message, in datagram `sequence` of its publisher.

    It carries `length` bytes of the message, from offset `part` x (length of the first part).
    """

    kind: ClassVar[str] = "data"
    publisher: int
    sequence: int
    sent_at: float
    """Time of sending in seconds since 1970."""
    number: int
    part: int
    parts: int
    length: int
    content: bytes | None
    """The bytes; None where the message is `whole`."""
    whole: Publication | None
    """The message itself; None in a datagram that was decoded."""
    identity: int | None = None

    @property
    def brief(self) -> str:
        """The message and the part, e.g. "17.0"."""
        return f"{self.number}.{self.part}"


def part_of(
    publisher: int,
    sequence: int,
    sent_at: float,
    number: int,
    part: int,
    parts: int,
    length: int,
    content: bytes | None = None,
    whole: Publication | None = None,
) -> Part:
    """Return a part with its identity."""
    identity = key_of(0, "datagram", publisher, sequence >> 32) & ~_LOW | sequence & _LOW
    return Part(publisher, sequence, sent_at, number, part, parts, length, content, whole, identity)
