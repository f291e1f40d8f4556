"""Wire format of cross traffic."""

import struct
from typing import ClassVar

from protocols.cross.messages import Load, Receipt, load_of, receipt_of
from protocols.errors import WireError
from protocols.framing import LengthPrefixed
from protocols.machine import Message

__all__ = ["LOAD_SIZE", "RECEIPT_SIZE", "CrossCodec"]

_HEAD = struct.Struct("!BBHI")
_MARK = 0xCB
"""First byte, which differs from that of every protocol here (NORM's has version 1 in its upper half)."""
RECEIPT_SIZE = LOAD_SIZE = _HEAD.size
"""Bytes of a receipt, and least bytes of a load."""


class CrossCodec:
    """Codec of cross traffic."""

    framing: ClassVar = LengthPrefixed
    """That of its connections, whatever the framing of the session's protocol."""

    def encode(self, message: Message) -> bytes:
        """Return the UDP payload; a load is padded with zeros to its size."""
        if isinstance(message, Load):
            return _HEAD.pack(_MARK, 0, message.flow, message.number).ljust(message.size, b"\0")
        assert isinstance(message, Receipt)
        return _HEAD.pack(_MARK, 1, message.flow, message.number)

    def decode(self, data: bytes) -> Message:
        """Return the message in a UDP payload. Raises WireError and nothing else."""
        if len(data) < _HEAD.size:
            raise WireError(f"cross traffic of {len(data)} bytes; at least {_HEAD.size} are required")
        mark, kind, flow, number = _HEAD.unpack_from(data)
        if mark != _MARK or kind > 1:
            raise WireError(f"no cross traffic: it begins with {data[:2].hex()}")
        return receipt_of(flow, number) if kind else load_of(flow, number, len(data))
