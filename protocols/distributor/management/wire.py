"""Wire format of the management messages. Integers are big-endian and signed; field lengths are in bytes.

A message is its id (4) and its fields: int (4), long (8), double (8, IEEE 754), and with a byte 1 in front (0: absent) text
(length (4), UTF-8), a nested message (length (4), the message with its id), and a list (count (4), elements). A list of a fixed
number of elements has no count. `LAYOUTS` has the fields of every message.
"""

import struct
from collections.abc import Callable
from dataclasses import fields
from typing import Any, Final, NamedTuple, TypeAlias

from protocols.distributor.management.messages import (
    Announcement,
    ConnectionAnswer,
    ConnectionQuery,
    ConnectionSummary,
    ConnectionView,
    ProcessAnswer,
    ProcessQuery,
    ProcessView,
    QueueView,
    RateView,
    RetransmissionView,
    TrafficView,
)
from protocols.errors import UsageError, WireError
from protocols.machine import Message

__all__ = ["ManagementCodec", "size_of"]

INT, LONG, DOUBLE = "!i", "!q", "!d"
TEXT, TEXTS = "text", "texts"
RATES: Final = 9


class _Nested(NamedTuple):
    """A field that holds a message."""

    kind: type[Message]


class _List(NamedTuple):
    """A field that holds messages; `fixed` is their number, None: as many as the wire says."""

    kind: type[Message]
    fixed: int | None = None


Layout: TypeAlias = tuple[Any, ...]
_FIRST = 0x00010000
LAYOUTS: dict[type[Message], tuple[int, Layout]] = {
    Announcement: (1, (TEXT, LONG, TEXT, TEXT, TEXT, *[INT] * 7)),
    ProcessQuery: (2, ()),
    ProcessAnswer: (3, (_Nested(ProcessView),)),
    ConnectionSummary: (4, (LONG, TEXT, INT, INT, INT, INT, LONG, LONG, INT, INT)),
    ProcessView: (5, (TEXT, LONG, TEXT, TEXT, TEXT, INT, DOUBLE, DOUBLE, DOUBLE, _List(ConnectionSummary))),
    ConnectionQuery: (6, (LONG,)),
    ConnectionAnswer: (7, (_Nested(ConnectionView),)),
    RateView: (8, (TEXT, LONG, INT, INT, TEXT)),
    QueueView: (9, (TEXT, LONG, INT, TEXT)),
    TrafficView: (10, (LONG, LONG, LONG, _List(RateView, RATES), LONG, LONG, LONG, _List(RateView, RATES))),
    RetransmissionView: (11, (INT, INT, INT, TEXTS, TEXTS)),
    ConnectionView: (
        12,
        (
            *(TEXT, INT, LONG, INT, INT, INT),
            *(_Nested(QueueView), _Nested(TrafficView), _Nested(RetransmissionView), TEXTS),
        ),
    ),
}
"""Number and fields of each message, in their order."""
_KINDS = {number: kind for kind, (number, _) in LAYOUTS.items()}
_TOP = (Announcement, ProcessQuery, ProcessAnswer, ConnectionQuery, ConnectionAnswer)
_LENGTH = struct.Struct("!i")


class ManagementCodec:
    """Encodes and decodes the messages; it keeps no state."""

    def encode(self, message: Message) -> bytes:
        """Return the bytes of a message. UsageError for one of another protocol, or a value out of its field's range."""
        if not isinstance(message, _TOP):
            raise UsageError(f"{message} is no management message")
        try:
            return _encode(message)
        except struct.error as error:
            raise UsageError(f"{message} has a value out of its field's range: {error}") from error

    def decode(self, data: bytes) -> Message:
        """Return the message of a datagram or a frame. Raises WireError and nothing else."""
        try:
            message, end = _decode(data, 0)
        except (struct.error, UnicodeDecodeError, IndexError) as error:
            raise WireError(f"{len(data)} bytes are no management message: {error}") from error
        if end != len(data) or not isinstance(message, _TOP):
            raise WireError(f"{len(data)} bytes are no management message")
        return message


def size_of(message: Message) -> int:
    """Return the encoded bytes of a message."""
    return len(_encode(message))


def _encode(message: Message) -> bytes:
    number, layout = LAYOUTS[type(message)]
    values = [getattr(message, item.name) for item in fields(message)]  # type: ignore[arg-type]
    return _LENGTH.pack(_FIRST + number) + b"".join(map(_encode_field, layout, values))


def _encode_field(what: Any, value: Any) -> bytes:
    if what == TEXT:
        return b"\0" if value is None else _array(value.encode())
    if what == TEXTS:
        return _counted(value, lambda text: _encode_field(TEXT, text))
    if isinstance(what, _Nested):
        return _array(_encode(value))
    if isinstance(what, _List):
        if what.fixed is None:
            return _counted(value, lambda item: _array(_encode(item)))
        return b"".join(_array(_encode(item)) for item in value)
    return struct.pack(what, value)


def _array(data: bytes) -> bytes:
    return b"\1" + _LENGTH.pack(len(data)) + data


def _counted(values: Any, encode: Callable[[Any], bytes]) -> bytes:
    return b"\0" if values is None else b"\1" + _LENGTH.pack(len(values)) + b"".join(map(encode, values))


def _decode(data: bytes, at: int) -> tuple[Message, int]:
    """Return the message at an offset, and the offset behind it. Raises WireError, struct.error and IndexError."""
    (number,) = _LENGTH.unpack_from(data, at)
    kind = _KINDS.get(number - _FIRST)
    if kind is None:
        raise WireError(f"unknown management message {number:#x}")
    at += _LENGTH.size
    values = []
    for what in LAYOUTS[kind][1]:
        value, at = _decode_field(what, data, at)
        values.append(value)
    return kind(*values), at


def _decode_field(what: Any, data: bytes, at: int) -> tuple[Any, int]:
    if what == TEXT:
        octets, at = _read_array(data, at)
        return (None if octets is None else octets.decode()), at
    if what == TEXTS:
        return _read_counted(data, at, lambda start: _decode_field(TEXT, data, start))
    if isinstance(what, _Nested):
        return _read_nested(what.kind, data, at)
    if isinstance(what, _List):
        if what.fixed is None:
            return _read_counted(data, at, lambda start: _read_nested(what.kind, data, start))
        return _read_all(what.fixed, at, lambda start: _read_nested(what.kind, data, start))
    return struct.unpack_from(what, data, at)[0], at + struct.calcsize(what)


def _read_array(data: bytes, at: int) -> tuple[bytes | None, int]:
    if not data[at]:
        return None, at + 1
    (length,) = _LENGTH.unpack_from(data, at + 1)
    start = at + 1 + _LENGTH.size
    if not 0 <= length <= len(data) - start:
        raise WireError(f"an array of {length} bytes, of which {len(data) - start} follow")
    return data[start : start + length], start + length


def _read_nested(kind: type[Message], data: bytes, at: int) -> tuple[Message, int]:
    octets, at = _read_array(data, at)
    if octets is None:
        raise WireError(f"no {kind.kind} where there must be one")
    message, end = _decode(octets, 0)
    if not isinstance(message, kind) or end != len(octets):
        raise WireError(f"{len(octets)} bytes are no {kind.kind}")
    return message, at


def _read_counted(data: bytes, at: int, read: Callable[[int], tuple[Any, int]]) -> tuple[tuple[Any, ...] | None, int]:
    if not data[at]:
        return None, at + 1
    (count,) = _LENGTH.unpack_from(data, at + 1)
    at += 1 + _LENGTH.size
    if not 0 <= count <= len(data) - at:
        raise WireError(f"a list of {count} elements in {len(data) - at} bytes")
    return _read_all(count, at, read)


def _read_all(count: int, at: int, read: Callable[[int], tuple[Any, int]]) -> tuple[tuple[Any, ...], int]:
    found = []
    for _ in range(count):
        item, at = read(at)
        found.append(item)
    return tuple(found), at
