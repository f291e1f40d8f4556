"""Wire format of FJM: its own messages, and the packets of `protocols.nacked.wire`. Integers are unsigned and big-endian.

A message is its type (1), two numbers (4 each, the fields before the destination; the second is 0 where there is one), and the
destination in UTF-8, all in bytes.
"""

import struct
from typing import Final

from protocols.errors import UsageError, WireError
from protocols.fjm.messages import Answer, Ask, Candidate, Guard, Register, Registered, Unregister
from protocols.machine import Message
from protocols.message_wire import LONGEST_DESTINATION
from protocols.nacked.wire import NackedCodec
from protocols.nacked.wire import size_of as size_of_packet

__all__ = ["FjmCodec", "size_of"]

_HEAD: Final = struct.Struct("!BII")
_TYPES: Final[dict[int, type[Message]]] = {
    0xF1: Candidate,
    0xF2: Guard,
    0xF3: Ask,
    0xF4: Answer,
    0xF5: Register,
    0xF6: Registered,
    0xF7: Unregister,
}
_CODES: Final = {kind: code for code, kind in _TYPES.items()}


def size_of(message: Message) -> int:
    """Return the bytes of a message or a packet."""
    if type(message) not in _CODES:
        return size_of_packet(message)
    return _HEAD.size + len(_fields(message)[2].encode())


def _fields(message: Message) -> tuple[int, int, str]:
    """Return the two numbers and the destination of a message."""
    if isinstance(message, (Candidate, Guard)):
        return message.node, 0, ""
    if isinstance(message, Ask):
        return message.node, 0, message.destination
    if isinstance(message, Answer):
        return message.manager, message.place, message.destination
    if isinstance(message, Registered):
        return message.node, message.members, message.destination
    assert isinstance(message, (Register, Unregister))
    return message.node, message.manager, message.destination


class FjmCodec(NackedCodec):
    """Encodes and decodes messages and packets; it keeps no state."""

    def encode(self, message: Message) -> bytes:
        """Return the UDP payload. UsageError for a message of another protocol, or a value out of its field's range."""
        code = _CODES.get(type(message))
        if code is None:
            return super().encode(message)
        first, second, destination = _fields(message)
        try:
            return _HEAD.pack(code, first, second) + destination.encode()
        except struct.error as error:
            raise UsageError(f"{message} has a value out of its field's range: {error}") from error

    def decode(self, data: bytes) -> Message:
        """Return the message or packet in a UDP payload. Raises WireError and nothing else."""
        kind = _TYPES.get(data[0]) if data else None
        if kind is None:
            return super().decode(data)
        try:
            _, first, second = _HEAD.unpack_from(data)
            destination = data[_HEAD.size :].decode()
        except (struct.error, UnicodeDecodeError) as error:
            raise WireError(f"{len(data)} bytes are no message of FJM: {error}") from error
        if kind in (Candidate, Guard):
            return kind(first)
        if not 0 < len(data) - _HEAD.size <= LONGEST_DESTINATION:
            raise WireError(f"a destination of {len(data) - _HEAD.size} bytes; 1 to {LONGEST_DESTINATION} are allowed")
        return kind(first, destination) if kind is Ask else kind(first, second, destination)  # type: ignore[call-arg]
