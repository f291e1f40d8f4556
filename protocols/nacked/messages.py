"""The packets: parts of messages, announcements of the last one, NACKs, and that a subscriber leaves."""

from dataclasses import dataclass
from typing import ClassVar

from protocols.machine import Message
from protocols.messaging import Publication
from protocols.rng import key_of

__all__ = ["Data", "Leave", "Nack", "Origin", "Ranges", "Status"]

Origin = tuple[int, int]
"""A publisher's node id, and the number of its start."""
Ranges = tuple[tuple[int, int], ...]
"""First and last sequence numbers."""


@dataclass(slots=True)
class Data(Message):
    """Part `part` of `parts` of the application's message `number`, in packet `sequence` of its publisher."""

    kind: ClassVar[str] = "data"
    origin: Origin
    sequence: int
    number: int
    part: int
    parts: int
    length: int
    """Bytes of the message that it carries."""
    content: bytes | None
    """The bytes; None where the message is `whole`."""
    whole: Publication | None = None
    """The message itself; None in a packet that was decoded."""
    repair: bool = False

    @property
    def identity(self) -> int | None:
        """See `Message`."""
        return key_of(0, "nacked", *self.origin, self.sequence)

    @property
    def brief(self) -> str:
        """The message and the part, e.g. "17.0"."""
        return f"{self.number}.{self.part}"


@dataclass(slots=True)
class Status(Message):
    """The publisher has sent all packets up to `last`, and can repair those from `first` on."""

    kind: ClassVar[str] = "status"
    origin: Origin
    first: int
    last: int

    @property
    def brief(self) -> str:
        """The last packet."""
        return str(self.last)


@dataclass(slots=True)
class Nack(Message):
    """A subscriber misses packets of a publisher."""

    kind: ClassVar[str] = "nack"
    is_feedback: ClassVar[bool] = True
    origin: Origin
    missing: Ranges

    @property
    def brief(self) -> str:
        """The first packet that is missing."""
        return str(self.missing[0][0]) if self.missing else ""


@dataclass(slots=True)
class Leave(Message):
    """A subscriber leaves."""

    kind: ClassVar[str] = "leave"
    is_feedback: ClassVar[bool] = True
    node: int
