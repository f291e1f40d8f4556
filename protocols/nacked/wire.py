"""Wire format of the packets. Integers are unsigned and big-endian; lengths are in bytes.

A packet begins with its type (1). DATA: publisher (4), start (2), sequence (8), number (8), part (4), parts (4), whether it is
a repair (1), and bytes of the message (`protocols.message_wire`). STATUS: publisher (4), start (2), first (8), last (8). NACK:
publisher (4), start (2), and ranges, each of its first (8) and last (8). LEAVE: node (4).
"""

import struct
from typing import Final

from protocols.errors import UsageError, WireError
from protocols.machine import Message
from protocols.message_wire import write_part
from protocols.nacked.messages import Data, Leave, Nack, Status

__all__ = ["DATA_OVERHEAD", "MOST_RANGES", "NackedCodec", "size_of"]

MOST_RANGES: Final = 64
"""Ranges of a NACK."""
_DATA, _STATUS, _NACK, _LEAVE = 0xD1, 0xD2, 0xD3, 0xD4
_DATA_HEAD: Final = struct.Struct("!BIHQQII?")
_STATUS_HEAD: Final = struct.Struct("!BIHQQ")
_NACK_HEAD: Final = struct.Struct("!BIH")
_RANGE: Final = struct.Struct("!QQ")
_LEAVE_HEAD: Final = struct.Struct("!BI")
DATA_OVERHEAD: Final = _DATA_HEAD.size
"""Bytes of a DATA packet beside those of the message."""


def size_of(message: Message) -> int:
    """Return the bytes of a packet."""
    if isinstance(message, Data):
        return DATA_OVERHEAD + message.length
    if isinstance(message, Nack):
        return _NACK_HEAD.size + len(message.missing) * _RANGE.size
    return _STATUS_HEAD.size if isinstance(message, Status) else _LEAVE_HEAD.size


class NackedCodec:
    """Encodes and decodes packets; it keeps no state."""

    def encode(self, message: Message) -> bytes:
        """Return the UDP payload. UsageError for a message of another protocol, or a value out of its field's range."""
        try:
            if isinstance(message, Data):
                place = (*message.origin, message.sequence, message.number, message.part, message.parts, message.repair)
                content = message.content
                if content is None:
                    content = write_part(message.whole, message.part, message.parts, message.length)
                return _DATA_HEAD.pack(_DATA, *place) + content
            if isinstance(message, Status):
                return _STATUS_HEAD.pack(_STATUS, *message.origin, message.first, message.last)
            if isinstance(message, Nack):
                return _NACK_HEAD.pack(_NACK, *message.origin) + b"".join(_RANGE.pack(*span) for span in message.missing)
            if isinstance(message, Leave):
                return _LEAVE_HEAD.pack(_LEAVE, message.node)
        except struct.error as error:
            raise UsageError(f"{message} has a value out of its field's range: {error}") from error
        raise UsageError(f"{message} is no packet of this protocol")

    def decode(self, data: bytes) -> Message:
        """Return the packet in a UDP payload. Raises WireError and nothing else."""
        try:
            if data[:1] == bytes([_DATA]):
                return _read_data(data)
            if data[:1] == bytes([_STATUS]):
                _, publisher, start, first, last = _STATUS_HEAD.unpack(data)
                return Status((publisher, start), first, last)
            if data[:1] == bytes([_NACK]):
                return _read_nack(data)
            if data[:1] == bytes([_LEAVE]):
                return Leave(_LEAVE_HEAD.unpack(data)[1])
        except struct.error as error:
            raise WireError(f"{len(data)} bytes are no packet: {error}") from error
        raise WireError(f"{len(data)} bytes are no packet")


def _read_data(data: bytes) -> Data:
    _, publisher, start, sequence, number, part, parts, repair = _DATA_HEAD.unpack_from(data)
    content = data[DATA_OVERHEAD:]
    if part >= parts or not content:
        raise WireError(f"part {part} of {parts}, of {len(content)} bytes")
    return Data((publisher, start), sequence, number, part, parts, len(content), content, None, repair)


def _read_nack(data: bytes) -> Nack:
    _, publisher, start = _NACK_HEAD.unpack_from(data)
    spans = list(_RANGE.iter_unpack(data[_NACK_HEAD.size :]))
    if not 0 < len(spans) <= MOST_RANGES or any(first > last for first, last in spans):
        raise WireError(f"{len(spans)} ranges, of which one ends before it begins, or which are too many or none")
    return Nack((publisher, start), tuple((first, last) for first, last in spans))
