"""Wire format of cross traffic, and a codec for the messages of a session and of cross traffic."""

import struct

from protocols.cross.messages import Load, Receipt, load_of, receipt_of
from protocols.errors import WireError
from protocols.machine import Codec, Message

__all__ = ["LOAD_SIZE", "RECEIPT_SIZE", "Mixed"]

_HEAD = struct.Struct("!BBHI")
_MARK = 0xCB
"""First byte, which differs from that of every protocol here (NORM's has version 1 in its upper half)."""
RECEIPT_SIZE = LOAD_SIZE = _HEAD.size
"""Bytes of a receipt, and least bytes of a load."""


class Mixed:
    """Codec of cross traffic, with another codec for all other messages."""

    def __init__(self, inner: Codec) -> None:
        self._inner = inner

    def encode(self, message: Message) -> bytes:
        """Return the UDP payload; a load is padded with zeros to its size."""
        if isinstance(message, Load):
            return _HEAD.pack(_MARK, 0, message.flow, message.number).ljust(message.size, b"\0")
        if isinstance(message, Receipt):
            return _HEAD.pack(_MARK, 1, message.flow, message.number)
        return self._inner.encode(message)

    def decode(self, data: bytes) -> Message:
        """Return the message in a UDP payload. Raises WireError and nothing else."""
        if data[:1] != bytes([_MARK]):
            return self._inner.decode(data)
        if len(data) < _HEAD.size:
            raise WireError(f"cross traffic of {len(data)} bytes; at least {_HEAD.size} are required")
        _, kind, flow, number = _HEAD.unpack_from(data)
        return receipt_of(flow, number) if kind else load_of(flow, number, len(data))
