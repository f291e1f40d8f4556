"""Events of a session beside those of the protocol: received content, streams that begin, and events that were dropped."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from experiments.running.names import safe_name
from protocols.events import Event, ObjectReceived

if TYPE_CHECKING:
    from experiments.session.incoming_stream import IncomingStream

__all__ = ["ContentReceived", "Delivery", "ObjectRefused", "StreamOpened"]


@dataclass(frozen=True, slots=True)
class ContentReceived(ObjectReceived):
    """A complete object with its content: in memory (`data`), or in a file of the session's folder (`path`)."""

    is_file: bool
    data: bytes | None = None
    path: Path | None = None

    @property
    def name(self) -> str:
        """The sender's name for the object, made safe as a file name; "" if it has none."""
        return safe_name(self.info, "")

    def read(self) -> bytes:
        """Return the content. OSError if its file can't be read any more."""
        return self.path.read_bytes() if self.data is None and self.path is not None else self.data or b""


@dataclass(frozen=True, slots=True)
class StreamOpened(Event):
    """A stream of another node begins, or was joined in the middle; `stream` reads it."""

    sender: int
    object_id: int
    stream: "IncomingStream"


@dataclass(frozen=True, slots=True)
class ObjectRefused(Event):
    """An object is not received, or no longer: there is no room for `size` bytes, or its file can't be stored."""

    sender: int
    object_id: int
    size: int
    reason: str


@dataclass(frozen=True, slots=True)
class Delivery:
    """What is known of an object that was sent (`Session.sent`).

    `confirmed` are the nodes that acknowledged it, `missing` those that were asked and did not. Without a request for
    acknowledgements both are empty: the object was sent and repaired as long as receivers requested it.
    """

    object_id: int
    confirmed: tuple[int, ...] = ()
    missing: tuple[int, ...] = ()
    contents: Mapping[int, bytes] = field(default_factory=dict, hash=False)
    """By node the application data in its acknowledgement, of those that have any."""

    @property
    def is_confirmed(self) -> bool:
        """Whether acknowledgements were asked for, and all nodes that were asked sent one."""
        return bool(self.confirmed) and not self.missing
