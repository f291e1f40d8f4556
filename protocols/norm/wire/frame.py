"""The common header, and one `Layout` for each kind of message but DATA and INFO."""

from abc import ABC, abstractmethod
from struct import Struct
from typing import Any, Generic, TypeVar

from protocols.errors import UsageError, WireError
from protocols.norm.messages import NormMessage, Origin
from protocols.norm.wire.schemes import Schemes

__all__ = ["VERSION", "Layout", "entries", "frame", "pack_origin", "unpack_origin"]

M = TypeVar("M", bound=NormMessage)

VERSION = 1
_PREFIX = Struct(">BBH")
_ORIGIN = Struct(">IHBB")


class Layout(ABC, Generic[M]):
    """The wire layout of one kind of message. Reserved fields are written as zeros and ignored."""

    base: int
    """Bytes of the header without extensions, without the payload id where there is one."""

    @abstractmethod
    def write(self, message: M, schemes: Schemes) -> bytes:
        """Return the message as bytes."""

    @abstractmethod
    def read(self, data: bytes, end: int, who: Any, sequence: int, schemes: Schemes) -> M:
        """Return the message in `data`, whose header of at least `base` bytes ends at `end`; `who`: Origin or source id."""


def frame(type: int, sequence: int, base: bytes, extensions: bytes, payload: bytes) -> bytes:
    """Return a complete message; `base` is what lies between the sequence number and the extensions."""
    words = (4 + len(base) + len(extensions)) // 4
    return b"".join((_PREFIX.pack(VERSION << 4 | type, words, sequence), base, extensions, payload))


def pack_origin(origin: Origin) -> bytes:
    """Return bytes 4..11 of a sender message."""
    if origin.backoff > 15 or origin.gsize > 15:
        raise UsageError(f"backoff {origin.backoff} and group size code {origin.gsize} have 4 bits each")
    return _ORIGIN.pack(origin.source_id, origin.instance_id, origin.grtt, origin.backoff << 4 | origin.gsize)


def unpack_origin(data: bytes) -> Origin:
    """Return the Origin in bytes 4..11 of a sender message, given these 8 bytes."""
    source_id, instance_id, grtt, last = _ORIGIN.unpack(data)
    return Origin(source_id, instance_id, grtt, last >> 4, last & 15)


def entries(data: bytes, end: int, size: int) -> range:
    """Return the offsets of the entries of a list that fills the payload, which begins at `end`."""
    if (len(data) - end) % size:
        raise WireError(f"list of {len(data) - end} bytes with entries of {size}")
    return range(end, len(data), size)
