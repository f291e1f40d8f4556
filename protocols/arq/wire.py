"""Wire format of the ARQ messages. Integers are unsigned and big-endian; field lengths below are in bytes.

Every message begins with a header of 16 bytes: magic 0xA7 (1), type (1), instance (2), sender (4), object id (4), unit (4).
DATA goes on with first object (4), object size (8), segment size (2), flags (1; bit 0: file, bit 1: repair) and payload; END,
whose unit field holds the number of units, with first object (4); ACK and NACK with the receiver's node id (4).
"""

import struct

from protocols.arq.messages import Ack, Data, End, Nack, identity_of, units_of
from protocols.errors import UsageError, WireError
from protocols.machine import Message

__all__ = ["DATA_OVERHEAD", "MOST_UNITS", "ArqCodec", "size_of"]

MAGIC = 0xA7
DATA, END, ACK, NACK = 1, 2, 3, 4
FILE, REPAIR = 1, 2
MOST_UNITS = 1 << 24
"""Most units an object may have."""

_HEAD = struct.Struct("!BBHIII")
_DATA = struct.Struct("!IQHB")
_WORD = struct.Struct("!I")
DATA_OVERHEAD = _HEAD.size + _DATA.size
"""Bytes of a DATA message beside its content."""
FEEDBACK_SIZE = _HEAD.size + _WORD.size
_FEEDBACK: dict[int, type[Ack] | type[Nack]] = {ACK: Ack, NACK: Nack}


def size_of(message: Message) -> int:
    """Return the bytes of UDP payload of a message, simulated content included."""
    if isinstance(message, Data):
        return DATA_OVERHEAD + message.length + message.extra
    if isinstance(message, Nack):
        return FEEDBACK_SIZE + message.extra
    return FEEDBACK_SIZE


class ArqCodec:
    """Encodes and decodes the ARQ messages; it keeps no state."""

    def encode(self, message: Message) -> bytes:
        """Return the UDP payload. UsageError for a value out of its field's range, or a message of another protocol."""
        try:
            if isinstance(message, Data):
                return _write_data(message)
            if isinstance(message, End):
                head = (MAGIC, END, message.instance, message.sender, message.object_id, message.units)
                return _HEAD.pack(*head) + _WORD.pack(message.first)
            if isinstance(message, (Ack, Nack)):
                kind = ACK if isinstance(message, Ack) else NACK
                head = (MAGIC, kind, message.instance, message.sender, message.object_id, message.unit)
                return _HEAD.pack(*head) + _WORD.pack(message.node)
        except struct.error as error:
            raise UsageError(f"{message} has a value out of its field's range: {error}") from error
        raise UsageError(f"{message} is not an ARQ message")

    def decode(self, data: bytes) -> Message:
        """Return the message in a UDP payload. Raises WireError and nothing else."""
        try:
            magic, kind, instance, sender, object_id, unit = _HEAD.unpack_from(data)
            if magic != MAGIC:
                raise WireError(f"the first byte is {magic:#04x}, not {MAGIC:#04x}")
            if kind == DATA:
                return _read_data(data, sender, instance, object_id, unit)
            (word,) = _WORD.unpack(data[_HEAD.size :])
        except struct.error as error:
            raise WireError(f"{len(data)} bytes are not a message: {error}") from error
        if kind == END:
            if not 0 < unit <= MOST_UNITS:
                raise WireError(f"END with {unit} units; allowed are 1 to {MOST_UNITS}")
            return End(sender, instance, object_id, unit, word)
        if kind not in _FEEDBACK:
            raise WireError(f"unknown message type {kind}; known are 1 to 4")
        return _FEEDBACK[kind](sender, instance, object_id, unit, word)


def _write_data(message: Data) -> bytes:
    assert message.payload is not None, "simulated content can't be encoded"
    flags = FILE * message.is_file + REPAIR * message.repair
    head = _HEAD.pack(MAGIC, DATA, message.instance, message.sender, message.object_id, message.unit)
    return head + _DATA.pack(message.first, message.size, message.segment, flags) + message.payload


def _read_data(data: bytes, sender: int, instance: int, object_id: int, unit: int) -> Data:
    first, size, segment, flags = _DATA.unpack_from(data, _HEAD.size)
    payload = data[_HEAD.size + _DATA.size :]
    if not segment:
        raise WireError("a segment size of 0 bytes")
    units = units_of(size, segment)
    if units > MOST_UNITS or unit >= units:
        raise WireError(
            f"unit {unit} of an object of {units} units; allowed are units 0 to {units - 1} of at most {MOST_UNITS}"
        )
    if unit and len(payload) != min(segment, size - (unit - 1) * segment):
        raise WireError(f"unit {unit} has {len(payload)} bytes; its object has {size} in segments of {segment}")
    identity = identity_of(sender, object_id, unit)
    repair = bool(flags & REPAIR)
    return Data(
        sender, instance, object_id, unit, first, size, segment, bool(flags & FILE), repair, payload, len(payload), identity
    )
