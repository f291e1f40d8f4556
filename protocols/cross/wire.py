"""Bytes of cross traffic, and a codec for a session's messages and these."""

import struct

from protocols.cross.messages import Load, Receipt, load_of, receipt_of
from protocols.errors import WireError
from protocols.machine import Codec, Message

__all__ = ["LOAD_SIZE", "RECEIPT_SIZE", "Mixed"]

_HEAD = struct.Struct("!BBHI")
_MARK = 0xCB
"""No protocol of ours begins with it: NORM's first byte has version 1 in its high half."""
RECEIPT_SIZE = LOAD_SIZE = _HEAD.size
"""Bytes of a receipt, and the least of a load."""


class Mixed:
    """Encodes cross traffic, and leaves everything else to another codec."""

    def __init__(self, inner: Codec) -> None:
        self._inner = inner

    def encode(self, message: Message) -> bytes:
        """The UDP payload; a load is filled up with zeros."""
        if isinstance(message, Load):
            return _HEAD.pack(_MARK, 0, message.flow, message.number).ljust(message.size, b"\0")
        if isinstance(message, Receipt):
            return _HEAD.pack(_MARK, 1, message.flow, message.number)
        return self._inner.encode(message)

    def decode(self, data: bytes) -> Message:
        """Raises WireError and nothing else."""
        if data[:1] != bytes([_MARK]):
            return self._inner.decode(data)
        if len(data) < _HEAD.size:
            raise WireError(f"cross traffic of {len(data)} bytes; {_HEAD.size} at least")
        _, kind, flow, number = _HEAD.unpack_from(data)
        return receipt_of(flow, number) if kind else load_of(flow, number, len(data))
