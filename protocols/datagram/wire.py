"""Wire format of datagrams. Integers are unsigned and big-endian.

A datagram is magic 0xDA (1), number of the part (4), number of parts (4), publisher (4), number of the message (8), sequence
number (8), time sent (8, IEEE 754), all in bytes, and the bytes of the message (`protocols.message_wire`).
"""

import struct

from protocols.datagram.messages import Part, part_of
from protocols.errors import UsageError, WireError
from protocols.machine import Message
from protocols.message_wire import write_part

__all__ = ["OVERHEAD", "DatagramCodec"]

MAGIC = 0xDA
_HEAD = struct.Struct("!BIIIQQd")
OVERHEAD = _HEAD.size
"""Bytes of a datagram beside those of the message."""
LATEST = 1e12
"""Seconds since 1970 that a time of sending may be; what is computed from it stays finite."""


class DatagramCodec:
    """Encodes and decodes datagrams; it keeps no state."""

    def encode(self, message: Message) -> bytes:
        """Return the UDP payload. UsageError for a message of another protocol, or a value out of its field's range."""
        if not isinstance(message, Part):
            raise UsageError(f"{message} is no datagram")
        try:
            head = _HEAD.pack(
                MAGIC, message.part, message.parts, message.publisher, message.number, message.sequence, message.sent_at
            )
        except struct.error as error:
            raise UsageError(f"{message} has a value out of its field's range: {error}") from error
        if message.content is None:
            return head + write_part(message.whole, message.part, message.parts, message.length)
        return head + message.content

    def decode(self, data: bytes) -> Message:
        """Return the part in a UDP payload. Raises WireError and nothing else."""
        if len(data) <= OVERHEAD or data[0] != MAGIC:
            raise WireError(f"{len(data)} bytes are no datagram")
        _, part, parts, publisher, number, sequence, sent_at = _HEAD.unpack_from(data)
        if part >= parts or not 0 <= sent_at <= LATEST:
            raise WireError(f"part {part} of {parts}, sent at {sent_at}")
        content = data[OVERHEAD:]
        return part_of(publisher, sequence, sent_at, number, part, parts, len(content), content)
