"""The form of a message on the wire: a head of 14 bytes, the topic, then only what is set, and the body behind it.

Integers are unsigned and big-endian; lengths below are in bytes. The fixed part is version (4 bits) and body type (4 bits);
flags (4 bits) and priority (4 bits); length of the whole head (2); time sent in milliseconds since 1970 (6); the low half of
the message's number (4). Behind it come the length of the topic (1) and the topic in UTF-8, and then fields, each as type (1),
length (2) and value. A property is length of the name (1), name, and a typed value (`protocols.jms.values`). The body is what
follows the head. The transport names the publisher of a message, or the field ORIGIN where that is another node.
"""

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from math import inf
from typing import Final

from protocols.errors import UsageError, WireError
from protocols.jms.bodies import BODY_TYPES, check_body
from protocols.jms.message import LONGEST_TOPIC, TOPIC, JmsMessage
from protocols.jms.properties import MOST_NAME, NO_PROPERTIES, Properties
from protocols.jms.values import KINDS, pack_value, unpack_value
from protocols.messaging import MOST_PRIORITY

__all__ = ["FIXED_SIZE", "LONGEST_HEAD", "LONGEST_TOPIC", "VERSION", "read_head", "read_message", "write_head"]

VERSION: Final = 1
LONGEST_HEAD: Final = 65_535
LATEST: Final = (1 << 48) - 1
"""Milliseconds since 1970 that a time may be."""
_FIXED: Final = struct.Struct("!BBHHII")
FIXED_SIZE: Final = _FIXED.size
_FIELD: Final = struct.Struct("!BH")
_TIME, _NUMBER, _ORIGIN = struct.Struct("!HI"), struct.Struct("!I"), struct.Struct("!IH")
_PERSISTENT, _REDELIVERED = 0x80, 0x40
_EXPIRATION, _CORRELATION, _REPLY_TO, _TYPE, _PROPERTY, _NUMBER_HIGH, _ORIGINATOR = range(1, 8)


def write_head(message: JmsMessage, has_origin: bool = False) -> bytes:
    """Return a message without its body; with `has_origin` it names its publisher. UsageError for what the head can't hold."""
    topic = message.topic.encode()
    fields = [bytes((len(topic),)), topic, *_set_fields(message)]
    if has_origin:
        fields.append(_field(_ORIGINATOR, _ORIGIN.pack(message.publisher, message.instance)))
    rest = b"".join(fields)
    size, sent = _FIXED.size + len(rest), message.timestamp
    if size > LONGEST_HEAD:
        raise UsageError(f"a message whose head and properties have {size} bytes is not allowed; at most {LONGEST_HEAD}")
    if not 0 <= sent <= LATEST or not 0 <= message.number < 1 << 64:
        raise UsageError(f"message {message.number} of {message.sent_at} s is not allowed; 64 bits, and a time from 1970 on")
    flags = _PERSISTENT * message.is_persistent | _REDELIVERED * message.is_redelivered
    kind = VERSION << 4 | BODY_TYPES.index(message.body_type)
    low = message.number & 0xFFFFFFFF
    return _FIXED.pack(kind, flags | message.priority, size, sent >> 32, sent & 0xFFFFFFFF, low) + rest


def _set_fields(message: JmsMessage) -> list[bytes]:
    """Return the fields that are set, encoded."""
    found = []
    if message.number >> 32:
        found.append(_field(_NUMBER_HIGH, _NUMBER.pack(message.number >> 32)))
    if message.expires_at < inf:
        expiration = min(max(message.expiration, 0), LATEST)
        found.append(_field(_EXPIRATION, _TIME.pack(expiration >> 32, expiration & 0xFFFFFFFF)))
    for kind, text in ((_CORRELATION, message.correlation_id), (_REPLY_TO, message.reply_to), (_TYPE, message.type)):
        if text:
            found.append(_field(kind, text.removeprefix(TOPIC).encode() if kind == _REPLY_TO else text.encode()))
    properties = message.properties
    for name, kind_name, value in properties.typed_items() if isinstance(properties, Properties) else ():
        raw = name.encode()
        found.append(_field(_PROPERTY, bytes((len(raw),)) + raw + pack_value(kind_name, value)))
    return found


def _field(kind: int, value: bytes) -> bytes:
    if len(value) > LONGEST_HEAD:
        raise UsageError(f"a field of {len(value)} bytes is not allowed in a message's head; at most {LONGEST_HEAD}")
    return _FIELD.pack(kind, len(value)) + value


@dataclass(slots=True)
class _Head:
    """The fields of a head while they are read."""

    publisher: int
    instance: int
    number: int
    expires_at: float = inf
    correlation_id: str = ""
    reply_to: str = ""
    type: str = ""
    properties: Properties = field(default_factory=lambda: NO_PROPERTIES)


def read_message(data: bytes | memoryview, publisher: int = 0, instance: int = 0) -> JmsMessage:
    """Return the message that `data` holds, to its last byte, of this publisher. Raises WireError and nothing else."""
    if len(data) <= _FIXED.size:
        raise WireError(f"a message of {len(data)} bytes")
    kind, flags, size, sent_high, sent_low, number = _FIXED.unpack_from(data)
    priority, topic_end = flags & 15, _FIXED.size + 1 + data[_FIXED.size]
    if kind >> 4 != VERSION or kind & 15 >= len(BODY_TYPES) or priority > MOST_PRIORITY:
        raise WireError(f"a message of version {kind >> 4}, body type {kind & 15} and priority {priority}")
    if not _FIXED.size + 1 < topic_end <= size <= len(data):
        raise WireError(f"a message of {len(data)} bytes with a head of {size} and a topic to {topic_end}")
    before = bytes(data[:size])
    topic = _text(before[_FIXED.size + 1 : topic_end])
    head = _Head(publisher, instance, number)
    if topic_end < size:
        _read_fields(head, before, topic_end, size)
    body, body_type = bytes(data[size:]), BODY_TYPES[kind & 15]
    check_body(body_type, body)
    return JmsMessage(
        head.publisher,
        head.number,
        TOPIC + topic,
        len(body),
        body,
        head.properties,
        priority,
        (sent_high << 32 | sent_low) / 1000,
        head.expires_at,
        head.instance,
        head.correlation_id,
        head.reply_to,
        head.type,
        bool(flags & _PERSISTENT),
        bool(flags & _REDELIVERED),
        body_type,
    )


def read_head(data: bytes | memoryview, size: int) -> JmsMessage:
    """Return the message of `size` bytes that begins with `data`, without its body. Raises WireError and nothing else.

    `data` has at least the head.
    """
    if len(data) <= _FIXED.size:
        raise WireError(f"a message of {len(data)} bytes")
    head = _FIXED.unpack_from(data)[2]
    if head > min(len(data), size):
        raise WireError(f"a head of {head} bytes in a message of {size}, of which {len(data)} are known")
    # A body of no bytes is one of bytes, whatever the type.
    found = read_message(bytes((data[0] & 0xF0,)) + bytes(data[1:head]))
    return replace(found, size=size - head, body=None, body_type=_body_type(data[0] & 15))


def _body_type(code: int) -> str:
    if code >= len(BODY_TYPES):
        raise WireError(f"body type {code}")
    return BODY_TYPES[code]


def _read_fields(head: _Head, data: bytes, start: int, end: int) -> None:
    """Read the fields between two places; fields of unknown types are skipped."""
    known = set[int]()
    while start < end:
        if start + _FIELD.size > end:
            raise WireError("a head that ends within a field")
        kind, length = _FIELD.unpack_from(data, start)
        start += _FIELD.size + length
        if start > end:
            raise WireError(f"a field of {length} bytes in a head that is shorter")
        if kind in known:
            raise WireError(f"field {kind} twice")
        if kind != _PROPERTY:
            known.add(kind)
        read = _FIELD_READERS.get(kind)
        if read is not None:
            read(head, data[start - length : start])


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise WireError(f"a text that is not UTF-8: {error.reason}") from error


def _unpacked(form: struct.Struct, value: bytes) -> tuple[int, ...]:
    if len(value) != form.size:
        raise WireError(f"a field of {len(value)} bytes that has {form.size}")
    return form.unpack(value)


def _read_expiration(head: _Head, value: bytes) -> None:
    high, low = _unpacked(_TIME, value)
    head.expires_at = (high << 32 | low) / 1000


def _read_correlation(head: _Head, value: bytes) -> None:
    head.correlation_id = _text(value)


def _read_reply_to(head: _Head, value: bytes) -> None:
    if not 0 < len(value) <= LONGEST_TOPIC:
        raise WireError(f"a reply to a topic of {len(value)} bytes")
    head.reply_to = TOPIC + _text(value)


def _read_type(head: _Head, value: bytes) -> None:
    head.type = _text(value)


def _read_property(head: _Head, value: bytes) -> None:
    end = 1 + value[0] if value else 0
    name = _text(value[1:end])
    if not name or len(value) <= end or name in head.properties:
        raise WireError(f"a property of {len(value)} bytes with the name {name[:MOST_NAME]!r}")
    if head.properties is NO_PROPERTIES:
        head.properties = Properties()
    head.properties.put(name, *unpack_value(value[end:], KINDS))


def _read_number_high(head: _Head, value: bytes) -> None:
    head.number |= _unpacked(_NUMBER, value)[0] << 32


def _read_origin(head: _Head, value: bytes) -> None:
    head.publisher, head.instance = _unpacked(_ORIGIN, value)


_FIELD_READERS: Final[Mapping[int, Callable[[_Head, bytes], None]]] = {
    _EXPIRATION: _read_expiration,
    _CORRELATION: _read_correlation,
    _REPLY_TO: _read_reply_to,
    _TYPE: _read_type,
    _PROPERTY: _read_property,
    _NUMBER_HIGH: _read_number_high,
    _ORIGINATOR: _read_origin,
}
