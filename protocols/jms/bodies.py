"""Bodies of messages: bytes, text, map, stream and object, and their bytes.

A text is UTF-8, an object JSON. A map is a number of entries: length of the name (2 bytes), name, length of the value (4), and
the value as `protocols.jms.values` has it; a stream is the same without names.
"""

import json
import struct
from collections.abc import Mapping, Sequence
from typing import Any, Final

from protocols.errors import UsageError, WireError, shown
from protocols.jms.properties import Properties
from protocols.jms.values import BODY_KINDS, Scalar, Typed, check_value, pack_value, typed, unpack_value

__all__ = ["BODY_TYPES", "ContentError", "Scalar", "body_type_of", "check_body", "read_body", "write_body"]

BODY_TYPES: Final = ("bytes", "text", "map", "stream", "object")
"""Types of bodies (JMS 1.1 3.11); their places are the codes of the wire."""
MOST_NAME: Final = 65_535
"""Bytes of UTF-8 of a name in a map."""
_NAME, _VALUE = struct.Struct("!H"), struct.Struct("!I")


class ContentError(UsageError):
    """Content that a body of this type can't have."""


def body_type_of(content: Any) -> str:
    """Return the type of the body that holds some content: bytes, str, a mapping, else an object."""
    if isinstance(content, (bytes, bytearray, memoryview)):
        return "bytes"
    return "text" if isinstance(content, str) else "map" if isinstance(content, Mapping) else "object"


def write_body(kind: str, content: Any) -> bytes:
    """Return the bytes of a body. ContentError for content that its type can't have, and for an unknown type."""
    if kind not in BODY_TYPES:
        raise ContentError(f"type: {kind!r} is not allowed; one of {', '.join(BODY_TYPES)}")
    try:
        return bytes(_WRITERS[kind](content))
    except (TypeError, ValueError, RecursionError, UsageError) as error:
        raise ContentError(f"{kind}: {error}") from error


def _write_bytes(content: Any) -> bytes:
    if not isinstance(content, (bytes, bytearray, memoryview)):
        raise TypeError(f"{shown(content)} is not allowed; bytes")
    return bytes(content)


def _write_text(content: Any) -> bytes:
    if not isinstance(content, str):
        raise TypeError(f"{shown(content)} is not allowed; a text")
    return content.encode()


def _write_map(content: Any) -> bytes:
    if not isinstance(content, Mapping):
        raise TypeError(f"{shown(content)} is not allowed; names with values")
    values = content if isinstance(content, Properties) else Properties(content)
    parts: list[bytes] = []
    for name, kind, value in values.typed_items():
        raw = name.encode()
        if not raw or len(raw) > MOST_NAME:
            raise ValueError(f"a name of {len(raw)} bytes is not allowed; 1 to {MOST_NAME}")
        parts += [_NAME.pack(len(raw)), raw, *_packed(name, Typed(kind, value))]
    return b"".join(parts)


def _write_stream(content: Any) -> bytes:
    if isinstance(content, (str, bytes)) or not isinstance(content, Sequence):
        raise TypeError(f"{shown(content)} is not allowed; a list of values")
    parts: list[bytes] = []
    for place, value in enumerate(content):
        parts += _packed(f"value {place}", typed(value, f"value {place}"))
    return b"".join(parts)


def _packed(name: str, value: Typed) -> tuple[bytes, bytes]:
    raw = pack_value(value.kind, check_value(name, value.kind, value.value, BODY_KINDS))
    return _VALUE.pack(len(raw)), raw


def _write_object(content: Any) -> bytes:
    return json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def read_body(kind: str, body: bytes) -> Any:
    """Return the content of a body: bytes, str, `Properties`, a list, or what JSON holds. WireError for other bytes."""
    return _READERS[kind](body)


def check_body(kind: str, body: bytes) -> None:
    """Raise WireError for a body that `read_body` can't read; of bytes nothing is to be checked."""
    if kind != "bytes":
        _READERS[kind](body)


def _read_bytes(body: bytes) -> bytes:
    return body


def _read_text(body: bytes) -> str:
    try:
        return body.decode()
    except UnicodeDecodeError as error:
        raise WireError(f"a text that is not UTF-8: {error.reason}") from error


def _read_map(body: bytes) -> Properties:
    found, place = Properties(), 0
    while place < len(body):
        raw, place = _taken(body, place, _NAME)
        name = _read_text(raw)
        value, place = _taken(body, place, _VALUE)
        if not name or name in found:
            raise WireError(f"a map with the name {name[:40]!r} twice or empty")
        found.put(name, *unpack_value(value, BODY_KINDS))
    return found


def _read_stream(body: bytes) -> list[Scalar]:
    found: list[Scalar] = []
    place = 0
    while place < len(body):
        value, place = _taken(body, place, _VALUE)
        found.append(unpack_value(value, BODY_KINDS).value)
    return found


def _taken(body: bytes, place: int, length: struct.Struct) -> tuple[bytes, int]:
    """Return what follows its length at a place, and the place behind it."""
    start = place + length.size
    if start > len(body):
        raise WireError("a body that ends within a length")
    end = start + length.unpack_from(body, place)[0]
    if end > len(body):
        raise WireError(f"a value of {end - start} bytes in a body with {len(body) - start} left")
    return body[start:end], end


def _read_object(body: bytes) -> Any:
    try:
        return json.loads(body.decode(), parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise WireError(f"an object that is no JSON: {error}") from error


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no number of JSON")


_WRITERS: Final = {
    "bytes": _write_bytes,
    "text": _write_text,
    "map": _write_map,
    "stream": _write_stream,
    "object": _write_object,
}
_READERS: Final = {
    "bytes": _read_bytes,
    "text": _read_text,
    "map": _read_map,
    "stream": _read_stream,
    "object": _read_object,
}
