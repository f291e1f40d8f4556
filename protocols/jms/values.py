"""Typed values of properties, maps and streams, and their bytes.

A value is written as its type (1 byte) and its bytes, integers big-endian; texts and byte strings have no length of their own,
which the caller adds.
"""

import struct
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple, TypeAlias

from protocols.errors import UsageError, WireError, shown

__all__ = ["BODY_KINDS", "CODES", "KINDS", "Scalar", "Typed", "check_value", "pack_value", "typed", "unpack_value"]

Scalar: TypeAlias = bool | int | float | str | bytes | None
"""A value of a map or a stream."""

KINDS: Final = ("boolean", "byte", "short", "int", "long", "float", "double", "string")
"""Types of properties (JMS 1.1 3.5)."""
BODY_KINDS: Final = (*KINDS, "char", "bytes", "null")
"""Types of values in maps and streams (JMS 1.1 3.11.3)."""
CODES: Final[Mapping[str, int]] = {kind: code for code, kind in enumerate(BODY_KINDS, 1)}
_KIND_OF: Final[Mapping[int, str]] = {code: kind for kind, code in CODES.items()}

_BITS: Final[Mapping[str, int]] = {"byte": 8, "short": 16, "int": 32, "long": 64}
_FORMATS: Final[Mapping[str, struct.Struct]] = {
    kind: struct.Struct(form)
    for kind, form in {"byte": "!b", "short": "!h", "int": "!i", "long": "!q", "float": "!f", "double": "!d"}.items()
}


class Typed(NamedTuple):
    """A value with the type it has in JMS, where that is not the one of a plain Python value."""

    kind: str
    value: Scalar


def typed(value: Scalar | Typed, name: str = "value") -> Typed:
    """Return a value with its type: of bool boolean, int long, float double, str string, bytes bytes, and None null.

    UsageError, naming `name`, for a value of another type.
    """
    if isinstance(value, Typed):
        return value
    for plain, kind in ((bool, "boolean"), (int, "long"), (float, "double"), (str, "string"), (bytes, "bytes")):
        if isinstance(value, plain):
            return Typed(kind, value)
    if value is None:
        return Typed("null", None)
    raise UsageError(f"{name}: {shown(value)} is not allowed; a value is true or false, a number, a text, or bytes")


def check_value(name: str, kind: str, value: Scalar, kinds: tuple[str, ...] = KINDS) -> Scalar:
    """Return the value as a receiver of this type gets it. UsageError, naming `name`, for one the type can't hold."""
    if kind not in kinds:
        raise UsageError(f"{name}: type {kind!r} is not allowed; one of {', '.join(kinds)}")
    bits = _BITS.get(kind)
    if bits is not None:
        if isinstance(value, bool) or not isinstance(value, int) or not -(1 << bits - 1) <= value < 1 << bits - 1:
            raise UsageError(f"{name}: {shown(value)} is not allowed; a whole number of {bits} bits")
        return value
    return _CHECKS[kind](name, value)


def _check_fraction(name: str, value: Scalar) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise UsageError(f"{name}: {shown(value)} is not allowed; a number")
    return float(value)


def _check_float(name: str, value: Scalar) -> float:
    try:
        found: float = _FORMATS["float"].unpack(_FORMATS["float"].pack(_check_fraction(name, value)))[0]
    except OverflowError:
        raise UsageError(f"{name}: {shown(value)} is not allowed; a number that 32 bits can hold") from None
    return found


def _check_double(name: str, value: Scalar) -> float:
    return _check_fraction(name, value)


def _check_boolean(name: str, value: Scalar) -> bool:
    if not isinstance(value, bool):
        raise UsageError(f"{name}: {shown(value)} is not allowed; true or false")
    return value


def _check_string(name: str, value: Scalar) -> str:
    if not isinstance(value, str):
        raise UsageError(f"{name}: {shown(value)} is not allowed; a text")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise UsageError(f"{name}: {shown(value)} is not allowed; a text that UTF-8 can hold") from None
    return value


def _check_char(name: str, value: Scalar) -> str:
    text = _check_string(name, value)
    if len(text) != 1:
        raise UsageError(f"{name}: {shown(value)} is not allowed; one character")
    return text


def _check_bytes(name: str, value: Scalar) -> bytes:
    if not isinstance(value, bytes):
        raise UsageError(f"{name}: {shown(value)} is not allowed; bytes")
    return value


def _check_null(name: str, value: Scalar) -> None:
    if value is not None:
        raise UsageError(f"{name}: {shown(value)} is not allowed; nothing")


_CHECKS: Final[Mapping[str, Callable[[str, Scalar], Scalar]]] = {
    "float": _check_float,
    "double": _check_double,
    "boolean": _check_boolean,
    "string": _check_string,
    "char": _check_char,
    "bytes": _check_bytes,
    "null": _check_null,
}


def pack_value(kind: str, value: Scalar) -> bytes:
    """Return type and bytes of a value that was checked."""
    code = bytes((CODES[kind],))
    if kind in _FORMATS:
        return code + _FORMATS[kind].pack(value)
    if isinstance(value, str):
        return code + value.encode()
    if kind == "boolean":
        return code + (b"\1" if value else b"\0")
    return code + (value if isinstance(value, bytes) else b"")


def unpack_value(data: bytes, kinds: tuple[str, ...]) -> Typed:
    """Return the value that `data` holds to its last byte. WireError for other bytes."""
    kind = _KIND_OF.get(data[0]) if data else None
    if kind is None or kind not in kinds:
        raise WireError(f"a value of type {data[:1].hex() or 'none'}")
    rest, form = data[1:], _FORMATS.get(kind)
    if form is not None and len(rest) == form.size:
        return Typed(kind, form.unpack(rest)[0])
    if kind in ("string", "char"):
        return Typed(kind, _text(rest, kind))
    if kind == "bytes":
        return Typed(kind, bytes(rest))
    if kind == "boolean" and rest in (b"\0", b"\1"):
        return Typed(kind, rest == b"\1")
    if kind == "null" and not rest:
        return Typed(kind, None)
    raise WireError(f"a {kind} of {len(rest)} bytes")


def _text(data: bytes, kind: str) -> str:
    try:
        text = bytes(data).decode()
    except UnicodeDecodeError as error:
        raise WireError(f"a {kind} that is not UTF-8: {error.reason}") from error
    if kind == "char" and len(text) != 1:
        raise WireError(f"a char of {len(text)} characters")
    return text
