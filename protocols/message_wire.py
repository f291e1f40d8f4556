"""Wire format of application messages, which messaging protocols without one of their own share.

Integers are unsigned and big-endian; field lengths below are in bytes. A message is publisher (4), number (8), priority (1),
time sent (8, IEEE 754, seconds since 1970), time of expiry (8, likewise), bytes of the body (4), length of the destination (1),
number of properties (1); then the destination in UTF-8, the properties, and the body. A property is length of the name (1),
name, type (1), and its value: boolean (1), whole number (8, signed), float (8), or text with its length (2).
"""

import struct
from collections.abc import Mapping
from math import isnan

from protocols.errors import UsageError, WireError, shown
from protocols.messaging import MOST_PRIORITY, Publication, Value

__all__ = [
    "LONGEST_DESTINATION",
    "check_message",
    "find_message",
    "head_size",
    "read_message",
    "write_head",
    "write_message",
    "write_part",
]

LONGEST_DESTINATION = 255
"""Bytes of UTF-8."""
_LONGEST_BODY = 2**32 - 1
_MOST_PROPERTIES = 255
_PROPERTY_LIMITS = f"a name of 1 to 255 bytes, and a text of at most {2**16 - 1} bytes or a number of 64 bits"

_HEAD = struct.Struct("!IQBddIBB")
_BOOLEAN, _WHOLE, _FLOAT, _TEXT = 1, 2, 3, 4
_FIXED: dict[int, struct.Struct] = {_BOOLEAN: struct.Struct("!?"), _WHOLE: struct.Struct("!q"), _FLOAT: struct.Struct("!d")}
_LENGTH = struct.Struct("!H")


def head_size(message: Publication) -> int:
    """Return the bytes of a message without its body."""
    size = _HEAD.size + len(message.destination.encode())
    return size + sum(len(_property(name, value)) for name, value in message.properties.items())


def write_head(message: Publication) -> bytes:
    """Return a message without its body. UsageError, which names it, for a value out of its field's range."""
    destination = message.destination.encode()
    try:
        head = _HEAD.pack(
            message.publisher,
            message.number,
            message.priority,
            message.sent_at,
            message.expires_at,
            message.size,
            len(destination),
            len(message.properties),
        )
        return b"".join([head, destination, *(_property(name, value) for name, value in message.properties.items())])
    except struct.error as error:
        raise UsageError(_excess(message)) from error


def _excess(message: Publication) -> str:
    """Return which value of a message is out of its field's range, and what is allowed."""
    if len(message.destination.encode()) > LONGEST_DESTINATION:
        return f"to: value {shown(message.destination)} is not allowed; at most {LONGEST_DESTINATION} bytes of UTF-8"
    if message.size > _LONGEST_BODY:
        return f"size: value {message.size} is not allowed; at most {_LONGEST_BODY}"
    if len(message.properties) > _MOST_PROPERTIES:
        return f"properties: {len(message.properties)} of them are not allowed; at most {_MOST_PROPERTIES}"
    return f"message {message.number} of priority {message.priority} of {message.publisher} is not allowed"


def write_message(message: Publication) -> bytes:
    """Return a message; a body of which only the size is given is written as zeros. UsageError as `write_head`."""
    return write_head(message) + (bytes(message.size) if message.body is None else message.body)


def write_part(message: Publication | None, part: int, parts: int, length: int) -> bytes:
    """Return part `part` of `parts` of a message, `length` bytes; all but the last have the same length."""
    assert message is not None
    data = write_message(message)
    start = len(data) - length if part == parts - 1 else part * length
    return data[start : start + length]


def check_message(config: object, message: Publication) -> None:
    """Raise UsageError for a message with a value out of its field's range. It is the check of a `ProtocolSpec`."""
    del config
    write_head(message)


def _property(name: str, value: Value) -> bytes:
    raw = name.encode()
    try:
        head = struct.pack("!B", len(raw)) + raw
        if isinstance(value, str):
            text = value.encode()
            return head + bytes([_TEXT]) + _LENGTH.pack(len(text)) + text
        kind = _BOOLEAN if isinstance(value, bool) else _WHOLE if isinstance(value, int) else _FLOAT
        return head + bytes([kind]) + _FIXED[kind].pack(value)
    except struct.error as error:
        what = f"properties: {shown(name)} with value {shown(value)} is not allowed"
        raise UsageError(f"{what}; {_PROPERTY_LIMITS}") from error


def read_message(data: bytes) -> Publication:
    """Return the message that `data` holds, to its last byte. Raises WireError and nothing else."""
    try:
        publisher, number, priority, sent_at, expires_at, size, length, count = _HEAD.unpack_from(data)
        start = _HEAD.size + length
        destination = data[_HEAD.size : start].decode()
        properties, start = _read_properties(data, start, count)
    except (struct.error, UnicodeDecodeError, IndexError) as error:
        raise WireError(f"{len(data)} bytes are not a message: {error}") from error
    if priority > MOST_PRIORITY or isnan(sent_at) or isnan(expires_at):
        raise WireError(f"a message of priority {priority}, sent at {sent_at}, that expires at {expires_at}")
    if len(data) - start != size:
        raise WireError(f"a message with {len(data) - start} bytes of body, and {size} announced")
    return Publication(publisher, number, destination, size, data[start:], properties, priority, sent_at, expires_at)


def find_message(data: bytes) -> Publication | None:
    """Return the message that `data` holds, to its last byte; None if it holds none."""
    try:
        return read_message(data)
    except WireError:
        return None


def _read_properties(data: bytes, start: int, count: int) -> tuple[Mapping[str, Value], int]:
    """Return `count` properties and the offset behind them. Raises IndexError, UnicodeDecodeError and struct.error."""
    found: dict[str, Value] = {}
    for _ in range(count):
        end = start + 1 + data[start]
        name, kind = data[start + 1 : end].decode(), data[end]
        start = end + 1
        if kind == _TEXT:
            (length,) = _LENGTH.unpack_from(data, start)
            start += _LENGTH.size + length
            if start > len(data):
                raise IndexError("a property is longer than the message")
            found[name] = data[start - length : start].decode()
            continue
        if kind not in _FIXED:
            raise IndexError(f"a property of type {kind}")
        (found[name],) = _FIXED[kind].unpack_from(data, start)
        start += _FIXED[kind].size
    return found, start
