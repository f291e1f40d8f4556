"""Content of objects: sources that a sender reads, and sinks that a receiver writes."""

from dataclasses import dataclass, field
from typing import Any, Final, Protocol

__all__ = ["LATER", "Content", "Offer", "Sink", "SizeOnly", "Source"]


class Source(Protocol):
    """Content to send: a file, memory, or only a size."""

    @property
    def size(self) -> int:
        """Length in bytes; does not change."""

    def read(self, offset: int, n: int) -> bytes | None:
        """Return exactly `n` bytes from `offset`; None from a source without bytes (simulated content)."""


class Sink(Protocol):
    """Storage of a received object. Any method may raise OSError, which ends the object."""

    def write(self, offset: int, data: bytes | memoryview) -> None:
        """Store a segment, or several adjacent ones; segments come in any order, each once."""

    def read(self, offset: int, n: int) -> bytes:
        """Read back what was written, for decoding."""

    def commit(self, info: bytes) -> None:
        """Finish a complete object; `info` is its out-of-band information (a file's name), b"" for none."""

    def abort(self) -> None:
        """Drop an object that will never be complete."""


class _Later:
    """See `LATER`. A machine that uses it as a sink gets OSError."""

    def write(self, offset: int, data: bytes | memoryview) -> None:
        raise OSError("no room yet")

    def read(self, offset: int, n: int) -> bytes:
        raise OSError("no room yet")

    def commit(self, info: bytes) -> None:
        raise OSError("no room yet")

    def abort(self) -> None:
        """Do nothing."""


LATER: Final[Sink] = _Later()
"""Answer to an offer that can't be taken now: NORM requests the object again and offers it with what arrives then."""


@dataclass(frozen=True, slots=True)
class SizeOnly:
    """A source of a size, to ask whether content of this size can be carried."""

    size: int

    def read(self, offset: int, n: int) -> None:
        """Return None."""


@dataclass(frozen=True, slots=True)
class Content:
    """One object an application hands to a sender, with its out-of-band information."""

    source: Source
    info: bytes = b""
    is_file: bool = True
    carried: Any = field(default=None, compare=False, repr=False)
    """What the content stands for, immutable. Where messages are passed on as objects, this very object comes with offers."""


@dataclass(frozen=True, slots=True)
class Offer:
    """An object whose first message arrived. `info` may come later and is then given to `Sink.commit`."""

    sender: int
    object_id: int
    size: int
    is_file: bool
    carried: Any = field(default=None, compare=False, repr=False)
    """`Content.carried` of the sender; None where it did not come with the message, as on any network."""
