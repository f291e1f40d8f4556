"""Wire format of the management messages. Integers are big-endian and signed; field lengths are in bytes.

A message is its id (4) and its fields: int (4), long (8), double (8, IEEE 754), and with a byte 1 in front (0: absent) text
(length (4), UTF-8), a nested message (length (4), the message with its id), and a list (count (4), elements). The 9
rates of a direction have no count. Some fields that belong together are a message here and have no id on the wire. `LAYOUTS`
has the fields of every message.
"""

import struct
from collections.abc import Callable
from dataclasses import fields
from functools import lru_cache
from typing import Any, Final, NamedTuple, TypeAlias

from protocols.distributor.management.messages import (
    Announcement,
    ConnectionAnswer,
    ConnectionQuery,
    ConnectionSummary,
    ConnectionView,
    DirectionView,
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
TEXT, TEXTS, RATES = "text", "texts", "rates"
RATES_IN_ALL: Final = 9
SHORT: Final = 160
MOST_REMEMBERED: Final = 16_384
"""Rates of at most `SHORT` bytes, which are not decoded again."""
USUAL: Final = 4096
MOST_ANSWERS: Final = 512
"""Whole messages of at most `USUAL` bytes, likewise."""


class _Nested(NamedTuple):
    """A field that holds a message."""

    kind: type[Message]


class _Inline(NamedTuple):
    """A field that holds a message whose fields stand in the wire without an id of their own."""

    kind: type[Message]


class _List(NamedTuple):
    """A field that holds messages, with their number in front."""

    kind: type[Message]


Layout: TypeAlias = tuple[Any, ...]
_FIRST = 0x00010000
INLINE: dict[type[Message], Layout] = {DirectionView: (LONG, LONG, LONG, RATES)}
"""Fields of what stands in other messages without an id."""
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
    TrafficView: (10, (_Inline(DirectionView), _Inline(DirectionView))),
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
    """Encodes and decodes the messages. Equal bytes are the same object while they are remembered."""

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
            message = _answers(bytes(data)) if len(data) <= USUAL else _whole(data)
        except (struct.error, UnicodeDecodeError, IndexError) as error:
            raise WireError(f"{len(data)} bytes are no management message: {error}") from error
        if not isinstance(message, _TOP):
            raise WireError(f"{len(data)} bytes are no management message")
        return message


def size_of(message: Message) -> int:
    """Return the encoded bytes of a message."""
    return len(_encode(message))


def _encode(message: Message) -> bytes:
    number, layout = LAYOUTS[type(message)]
    return _LENGTH.pack(_FIRST + number) + _encode_fields(message, layout)


def _encode_fields(message: Message, layout: Layout) -> bytes:
    values = [getattr(message, item.name) for item in fields(message)]  # type: ignore[arg-type]
    return b"".join(map(_encode_field, layout, values))


def _encode_field(what: Any, value: Any) -> bytes:
    if what == TEXT:
        return b"\0" if value is None else _array(value.encode())
    if what == TEXTS:
        return _counted(value, lambda text: _encode_field(TEXT, text))
    if isinstance(what, _Nested):
        return _array(_encode(value))
    if isinstance(what, _Inline):
        return _encode_fields(value, INLINE[what.kind])
    if what == RATES:
        return b"".join(_array(_encode(rate)) for rate in value)
    if isinstance(what, _List):
        return _counted(value, lambda item: _array(_encode(item)))
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
    return _decode_fields(kind, LAYOUTS[kind][1], data, at + _LENGTH.size)


def _decode_fields(kind: type[Message], layout: Layout, data: bytes, at: int) -> tuple[Message, int]:
    values = []
    for what in layout:
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
    if isinstance(what, _Inline):
        return _decode_fields(what.kind, INLINE[what.kind], data, at)
    if what == RATES:
        return _read_rates(data, at)
    if isinstance(what, _List):
        return _read_counted(data, at, lambda start: _read_nested(what.kind, data, start))
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
    if octets[: _LENGTH.size] != _LENGTH.pack(_FIRST + LAYOUTS[kind][0]):
        # Decoded before its kind is known, it might hold others without end.
        raise WireError(f"{len(octets)} bytes are no {kind.kind}")
    return _whole(octets), at


def _whole(octets: bytes) -> Message:
    """Return the message that is all of these bytes. Raises WireError, struct.error and IndexError."""
    message, end = _decode(octets, 0)
    if end != len(octets):
        raise WireError(f"{len(octets)} bytes are no message")
    return message


def _read_rates(data: bytes, at: int) -> tuple[tuple[Message, ...], int]:
    """Return the rates of a direction: most of an answer, and so all of them in one loop."""
    found = []
    for _ in range(RATES_IN_ALL):
        (length,) = _LENGTH.unpack_from(data, at + 1)
        start = at + 1 + _LENGTH.size
        at = start + length
        octets = data[start:at]
        if not data[start - 1 - _LENGTH.size] or length < 0 or len(octets) != length:
            raise WireError(f"no {RateView.kind} where there must be one")
        rate = _remembered(octets) if length <= SHORT else _whole(octets)
        if not isinstance(rate, RateView):
            raise WireError(f"{length} bytes are no {RateView.kind}")
        found.append(rate)
    return tuple(found), at


def _rate_view(octets: bytes) -> Message:
    """Return the message of a `RateView`, of which an answer has 18; anything unusual is read as every message is."""
    size = octets[8] if len(octets) > SHORTEST_RATE else -1
    layout = _RATE_LAYOUTS.get(size)
    if layout is not None and len(octets) >= layout.size:
        number, has_name, length, name, total, current, peak, has_time, rest = layout.unpack_from(octets)
        usual = number == _RATE_NUMBER and has_name == has_time == 1 and length == size and layout.size + rest == len(octets)
        if usual and rest >= 0:
            return RateView(_name(name), total, current, peak, octets[layout.size :].decode())
    return _whole(octets)


_name = lru_cache(256)(bytes.decode)
_RATE_NUMBER: Final = _FIRST + LAYOUTS[RateView][0]
SHORTEST_RATE: Final = 35
_RATE_LAYOUTS: Final = {size: struct.Struct(f"!iBi{size}sqiiBi") for size in range(32)}
"""By the length of its name: the fields of a rate up to the time of its peak."""
# A process that is idle gives the same answer as a second ago, and one that is not has most of its rates as before.
_answers = lru_cache(MOST_ANSWERS)(_whole)
_remembered = lru_cache(MOST_REMEMBERED)(_rate_view)


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
