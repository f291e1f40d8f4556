"""Conversions between the types of values (JMS 1.1 3.5.4), with the texts of Java for numbers."""

import re
import struct
from collections.abc import Callable, Mapping
from math import copysign, inf, isinf, isnan, nan
from typing import Final

from protocols.errors import UsageError
from protocols.jms.values import Scalar

__all__ = ["ConversionError", "converted"]

_WIDER: Final[Mapping[str, frozenset[str]]] = {
    "boolean": frozenset(("boolean", "string")),
    "byte": frozenset(("byte", "short", "int", "long", "string")),
    "short": frozenset(("short", "int", "long", "string")),
    "int": frozenset(("int", "long", "string")),
    "long": frozenset(("long", "string")),
    "float": frozenset(("float", "double", "string")),
    "double": frozenset(("double", "string")),
    "string": frozenset(("boolean", "byte", "short", "int", "long", "float", "double", "string")),
    "char": frozenset(("string",)),
    "null": frozenset(("boolean", "string")),
}
"""Which types a value of each type can be read as."""
_BITS: Final[Mapping[str, int]] = {"byte": 8, "short": 16, "int": 32, "long": 64}
_WHOLE: Final = re.compile(r"[+-]?[0-9]{1,40}")
_FRACTION: Final = re.compile(
    r"\s*([+-]?)(NaN|Infinity|(?:[0-9]{1,400}(?:\.[0-9]{0,400})?|\.[0-9]{1,400})(?:[eE][+-]?[0-9]{1,9})?)[fFdD]?\s*"
)
_FLOAT: Final = struct.Struct("!f")


class ConversionError(UsageError):
    """A value that can't be read as the type that is wanted (MessageFormatException, NumberFormatException of JMS)."""


def converted(kind: str, value: Scalar, wanted: str) -> Scalar:
    """Return a value of one type as another. ConversionError where JMS has no such conversion, or the text is no number."""
    if wanted not in _WIDER.get(kind, ()):
        raise ConversionError(f"a {kind} can't be read as {wanted}")
    if kind == wanted:
        return value
    if kind == "null":
        return False if wanted == "boolean" else None
    if wanted == "string":
        return _text(kind, value)
    if kind == "string":
        assert isinstance(value, str)
        return _PARSERS[wanted](value, wanted)
    return value


def _text(kind: str, value: Scalar) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return _decimal(value, kind == "float") if isinstance(value, float) else str(value)


def _decimal(value: float, is_single: bool) -> str:
    """Return a number as Java writes it: with one digit at least behind the point, and an exponent below 1e-3 and from 1e7."""
    if isnan(value) or isinf(value):
        return "NaN" if isnan(value) else "Infinity" if value > 0 else "-Infinity"
    sign = "-" if copysign(1.0, value) < 0 else ""
    if not value:
        return f"{sign}0.0"
    digits, _, exponent = _shortest(abs(value), is_single).partition("e")
    digits, power = digits.replace(".", "").rstrip("0") or "0", int(exponent)
    if -3 <= power < 7:
        places = max(power + 1, 0)
        whole = digits[:places].ljust(places, "0") or "0"
        return f"{sign}{whole}.{'0' * max(-power - 1, 0)}{digits[places:] or '0' if power >= 0 else digits}"
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{power}"


def _shortest(value: float, is_single: bool) -> str:
    """Return the shortest decimal with an exponent that stands for a positive number, of 32 or of 64 bits."""
    for places in range(17):
        text = f"{value:.{places}e}"
        if (_single(float(text)) if is_single else float(text)) == value:
            return text
    raise AssertionError(f"{value!r} has a decimal of 17 digits")


def _single(value: float) -> float:
    try:
        found: float = _FLOAT.unpack(_FLOAT.pack(value))[0]
    except OverflowError:
        return copysign(inf, value)
    return found


def _boolean(text: str, wanted: str) -> bool:
    del wanted
    return text.lower() == "true"


def _whole(text: str, wanted: str) -> int:
    bits = _BITS[wanted]
    number = int(text) if _WHOLE.fullmatch(text) else 1 << 64
    if not -(1 << bits - 1) <= number < 1 << bits - 1:
        raise ConversionError(f"{text!r} is no {wanted}, a whole number from {-(1 << bits - 1)} to {(1 << bits - 1) - 1}")
    return number


def _fraction(text: str, wanted: str) -> float:
    match = _FRACTION.fullmatch(text)
    if match is None:
        raise ConversionError(f"{text!r} is no {wanted}")
    digits = match[2]
    number = nan if digits == "NaN" else inf if digits == "Infinity" else float(digits)
    number = -number if match[1] == "-" else number
    return _single(number) if wanted == "float" else number


_PARSERS: Final[Mapping[str, Callable[[str, str], Scalar]]] = {
    "boolean": _boolean,
    "byte": _whole,
    "short": _whole,
    "int": _whole,
    "long": _whole,
    "float": _fraction,
    "double": _fraction,
}
