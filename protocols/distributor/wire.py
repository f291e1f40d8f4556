"""Wire format of the Distributor, as the Java program has it. Integers are big-endian and, but for addresses, signed.

A datagram begins with version (2), type (1), flags (1), address of the sender (4), sender id (4), low half of its start time
(4) and application id (4). In UPDATE and RETRANSMISSION follow sequence number (4), number of updates (4) and the updates, each
a string and a byte array, or a part of a large one. A string or byte array is a byte 1, its length (4) and its bytes. Lengths
are in bytes. HEARTBEAT has address (4) and port (4) of the group, sender id (4), start time (8) and the last sequence number
(4); CONFIGURATION the same without the number, and both intervals (4 each), address (4) and a string, the application; REQUEST
the requestor's address (4), sender id (4) and start time (4) of the target, the lowest and highest number (4 each) and the
names of the requestor's host and application; NAK group, port and sender id as HEARTBEAT, a count (4) and as many numbers (4).
"""

import struct
from collections.abc import Sequence
from typing import Final, cast

from protocols.distributor.messages import (
    FIRST,
    LAST,
    MIDDLE,
    WHOLE,
    Batch,
    Configuration,
    Content,
    Fragment,
    Heartbeat,
    Nak,
    Request,
    Segment,
    Source,
    SubjectUpdates,
)
from protocols.errors import UsageError, WireError
from protocols.machine import Message

__all__ = [
    "ENTRY",
    "FIRST_OVERHEAD",
    "LARGEST_UPDATE",
    "OVERHEAD",
    "DistributorCodec",
    "read_text",
    "size_of",
    "write_text",
]

VERSION: Final = 0x0100
UPDATE, RETRANSMISSION, HEARTBEAT, CONFIGURATION, REQUEST, NAK = range(1, 7)
LARGEST_UPDATE: Final = 1 << 24
"""Bytes of the largest update that is sent or reassembled."""

_HEAD = struct.Struct("!HBBIiii")
_SEGMENT = struct.Struct("!HBBIiiiii")
_LENGTH = struct.Struct("!Bi")
_HEARTBEAT = struct.Struct("!HBBIiiiIiiqi")
_CONFIGURATION = struct.Struct("!HBBIiiiIiiqiiI")
_REQUEST = struct.Struct("!HBBIiiiIiiii")
_NAK = struct.Struct("!HBBIiiiIiii")

OVERHEAD: Final = _SEGMENT.size
"""Bytes of a segment before its updates."""
ENTRY: Final = 2 * _LENGTH.size
"""Bytes of an update in a batch, beside those of its subject and its content."""
FIRST_OVERHEAD: Final = OVERHEAD + ENTRY
"""Bytes of the first segment of a large update, beside those of the subject and the content."""


def size_of(message: Message) -> int:
    """Return the bytes of a datagram."""
    if isinstance(message, Batch):
        return message.size
    if isinstance(message, Fragment):
        head = OVERHEAD if message.subject is None else FIRST_OVERHEAD + len(message.subject.encode())
        return head + len(message.content)
    if isinstance(message, Heartbeat):
        return _HEARTBEAT.size
    if isinstance(message, Configuration):
        return _CONFIGURATION.size + _LENGTH.size + len(message.application.encode())
    if isinstance(message, Request):
        return _REQUEST.size + 2 * _LENGTH.size + len(message.host_name.encode()) + len(message.application.encode())
    assert isinstance(message, Nak)
    return _NAK.size + 4 * len(message.seqnos)


def write_text(text: str) -> bytes:
    """Return the bytes of a string."""
    data = text.encode()
    return _LENGTH.pack(1, len(data)) + data


def read_text(data: bytes, start: int) -> tuple[str, int]:
    """Return the string at an offset and the offset behind it; an absent one is "". WireError for none.

    The Java program writes the subjects of small updates in Latin-1, and other strings in UTF-8.
    """
    end = _end_of_array(data, start)
    raw = data[start + _LENGTH.size : end] if data[start] else b""
    try:
        return raw.decode(), end
    except UnicodeDecodeError:
        return raw.decode("latin-1"), end


def _end_of_array(data: bytes, start: int) -> int:
    """Return the offset behind a string or byte array. WireError for one that is cut or has a negative length."""
    if start >= len(data):
        raise WireError(f"{len(data)} bytes end before a string or an array")
    if not data[start]:
        return start + 1
    if start + _LENGTH.size > len(data):
        raise WireError(f"{len(data)} bytes end within a length")
    length = _LENGTH.unpack_from(data, start)[1]
    end = start + _LENGTH.size + length
    if length < 0 or end > len(data):
        raise WireError(f"an array of {length} bytes, of which {len(data) - start - _LENGTH.size} follow")
    return int(end)


# Updates


def _write_updates(updates: SubjectUpdates) -> bytes:
    """Return the updates of one subject; those of equal length have the same bytes before each content."""
    prefix = write_text(updates.subject) + b"\x01"
    contents = updates.contents
    if set(map(type, contents)) != {bytes}:
        contents = list(map(bytes, contents))
    heads = {length: prefix + struct.pack("!i", length) for length in dict.fromkeys(map(len, contents))}
    if len(heads) == 1:
        head = heads[len(contents[0])]
        return head + head.join(cast("Sequence[bytes]", contents))
    return b"".join([part for content in cast("Sequence[bytes]", contents) for part in (heads[len(content)], content)])


def _read_updates(data: bytes, count: int) -> list[SubjectUpdates]:
    """Return the updates of a segment by subject, to its last byte. WireError for malformed ones."""
    equal = _read_equal(data, count)
    if equal is not None:
        return [equal]
    found: list[SubjectUpdates] = []
    contents: list[Content] = []
    start, length, key = OVERHEAD, len(data), b""
    for _ in range(count):
        middle = start + len(key)
        # Most updates have the subject of the one before, whose bytes are compared before they are decoded.
        if not key or data[start:middle] != key:
            if data[start : start + 1] != b"\x01":
                raise WireError("an update without a subject")
            subject, middle = read_text(data, start)
            key = data[start:middle]
            contents = []
            found.append(SubjectUpdates(subject, contents))
        end = _end_of_array(data, middle)
        contents.append(data[middle + _LENGTH.size : end] if data[middle] else b"")
        start = end
    if start != length:
        raise WireError(f"{length - start} bytes behind the last of {count} updates")
    return found


def _read_equal(data: bytes, count: int) -> SubjectUpdates | None:
    """Return updates of one subject and equal length, which are found by the bytes before each; None for others."""
    try:
        middle = _end_of_array(data, OVERHEAD)
        end = _end_of_array(data, middle)
    except WireError:
        return None
    if not data[OVERHEAD] or not data[middle]:
        return None
    # If the bytes before the first content cut the rest into contents of its length, each of them begins an update.
    start = middle + _LENGTH.size
    contents = data[OVERHEAD:].split(data[OVERHEAD:start])
    if contents.pop(0) or len(contents) != count or set(map(len, contents)) != {end - start}:
        return None
    return SubjectUpdates(read_text(data, OVERHEAD)[0], contents)


def _decode_segment(data: bytes, is_retransmission: bool, flags: int, source: Source) -> Segment:
    if len(data) < OVERHEAD:
        raise WireError(f"a segment of {len(data)} bytes; the least are {OVERHEAD}")
    seqno, count = struct.unpack_from("!ii", data, _HEAD.size)
    if flags == WHOLE:
        if not 0 < count <= len(data) - OVERHEAD:
            raise WireError(f"{count} updates in {len(data)} bytes")
        return Batch(source, seqno, _read_updates(data, count), count, len(data), is_retransmission)
    if flags in (MIDDLE, LAST):
        return Fragment(source, seqno, flags, data[OVERHEAD:], is_retransmission=is_retransmission)
    if flags != FIRST:
        raise WireError(f"flags {flags} of a segment; known are {FIRST}, {MIDDLE}, {LAST} and {WHOLE}")
    subject, start = read_text(data, OVERHEAD)
    if len(data) < start + _LENGTH.size:
        raise WireError("a large update without its size")
    present, total = _LENGTH.unpack_from(data, start)
    content = data[start + _LENGTH.size :]
    if not present or not len(content) < total <= LARGEST_UPDATE:
        raise WireError(f"{len(content)} bytes of a large update of {total}")
    return Fragment(source, seqno, FIRST, content, subject, total, is_retransmission)


class DistributorCodec:
    """Encodes and decodes datagrams; it keeps no state."""

    def encode(self, message: Message) -> bytes:
        """Return the UDP payload. UsageError for a message of another protocol, or a value out of its field's range."""
        try:
            data = _encode(message)
        except struct.error as error:
            raise UsageError(f"{message} has a value out of its field's range: {error}") from error
        if data is None:
            raise UsageError(f"{message} is no message of a distributor")
        return data

    def decode(self, data: bytes) -> Message:
        """Return the message of a UDP payload. Raises WireError and nothing else."""
        if len(data) < _HEAD.size:
            raise WireError(f"{len(data)} bytes; a header has {_HEAD.size}")
        version, kind, flags, *origin = _HEAD.unpack_from(data)
        if version >> 8 != VERSION >> 8:
            raise WireError(f"version {version >> 8}.{version & 255}; known is {VERSION >> 8}")
        source = Source._make(origin)
        if kind in (UPDATE, RETRANSMISSION):
            return _decode_segment(data, kind == RETRANSMISSION, flags, source)
        try:
            if kind == HEARTBEAT:
                *_, group, port, _, start, last = _HEARTBEAT.unpack(data)
                return Heartbeat(source, group, port, start, last)
            if kind == CONFIGURATION:
                return _decode_configuration(data, source)
            if kind == REQUEST:
                return _decode_request(data, source)
            if kind == NAK:
                *_, group, port, _, total = _NAK.unpack_from(data)
                if total < 0:
                    raise WireError(f"a NAK of {total} numbers")
                # A number that the bytes do not have is refused by unpack.
                return Nak(source, group, port, struct.unpack(f"!{min(total, len(data))}i", data[_NAK.size :]))
        except struct.error as error:
            raise WireError(f"{len(data)} bytes are no message of type {kind}: {error}") from error
        raise WireError(f"unknown message type {kind}; known are {UPDATE} to {NAK}")


def _encode(message: Message) -> bytes | None:
    """Return the bytes of a message, None for one of another protocol. Raises struct.error."""
    if isinstance(message, Segment):
        kind = RETRANSMISSION if message.is_retransmission else UPDATE
        if isinstance(message, Batch):
            head = _SEGMENT.pack(VERSION, kind, WHOLE, *message.source, message.seqno, message.updates)
            return b"".join([head, *map(_write_updates, message.subjects)])
        assert isinstance(message, Fragment)
        head = _SEGMENT.pack(VERSION, kind, message.flags, *message.source, message.seqno, 1)
        if message.subject is not None:
            head += write_text(message.subject) + _LENGTH.pack(1, message.total)
        return head + message.content
    if isinstance(message, Heartbeat):
        last = (message.group, message.port, message.source.sender_id, message.start, message.last)
        return _HEARTBEAT.pack(*_head(HEARTBEAT, message.source), *last)
    if isinstance(message, Configuration):
        return _encode_configuration(message)
    if isinstance(message, Request):
        target = (message.requestor, message.target_id, message.target_start, message.low, message.high)
        names = write_text(message.host_name) + write_text(message.application)
        return _REQUEST.pack(*_head(REQUEST, message.source), *target) + names
    if isinstance(message, Nak):
        count = len(message.seqnos)
        sender = (message.group, message.port, message.source.sender_id)
        return _NAK.pack(*_head(NAK, message.source), *sender, count) + struct.pack(f"!{count}i", *message.seqnos)
    return None


def _head(kind: int, source: Source) -> tuple[int, ...]:
    return (VERSION, kind, WHOLE, *source)


def _encode_configuration(message: Configuration) -> bytes:
    source = message.source
    intervals = (message.heartbeat_ms, message.configuration_ms)
    head = (*_head(CONFIGURATION, source), message.group, message.port, source.sender_id, message.start, *intervals)
    return _CONFIGURATION.pack(*head, source.host) + write_text(message.application)


def _decode_configuration(data: bytes, source: Source) -> Configuration:
    *_, group, port, _, start, heartbeat, configuration, _ = _CONFIGURATION.unpack_from(data)
    application, end = read_text(data, _CONFIGURATION.size)
    if end != len(data):
        raise WireError(f"{len(data) - end} bytes behind a configuration")
    return Configuration(source, group, port, start, heartbeat, configuration, application)


def _decode_request(data: bytes, source: Source) -> Request:
    *_, requestor, target, start, low, high = _REQUEST.unpack_from(data)
    host_name, end = read_text(data, _REQUEST.size)
    application, end = read_text(data, end)
    if end != len(data):
        raise WireError(f"{len(data) - end} bytes behind a request")
    return Request(source, requestor, target, start, low, high, host_name, application)
