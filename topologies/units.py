"""Conversion of quantities with units, like `10Mbit`, `5ms`, `1%`, `1MB`, to plain numbers and back.

Plain numbers are bytes per second, seconds, bytes, and fractions from 0 to 1. A number without unit is read as bit/s, seconds,
bytes or a fraction. `parse_*` raise `ConfigError`. The annotated types `Rate`, `Duration`, `Size` and `Fraction` are the same
conversions for pydantic models, with a JSON Schema that allows a number or a string.
"""

import re
from collections.abc import Callable
from fractions import Fraction as Exact
from math import inf, isclose
from typing import Annotated, Any, TypeAlias

from pydantic import BeforeValidator, PlainSerializer, WithJsonSchema
from pydantic_core import PydanticCustomError

from protocols.errors import ConfigError, shown

__all__ = [
    "Duration",
    "Fraction",
    "Rate",
    "Size",
    "format_duration",
    "format_fraction",
    "format_rate",
    "format_size",
    "parse_duration",
    "parse_fraction",
    "parse_rate",
    "parse_size",
]

_RATES = {"bit": Exact(1), "kbit": Exact(10**3), "Mbit": Exact(10**6), "Gbit": Exact(10**9), "Tbit": Exact(10**12)}
_DURATIONS = {
    "ns": Exact(1, 10**9),
    "us": Exact(1, 10**6),
    "ms": Exact(1, 10**3),
    "s": Exact(1),
    "min": Exact(60),
    "h": Exact(3600),
}
_SIZES = {
    "B": Exact(1),
    "kB": Exact(10**3),
    "MB": Exact(10**6),
    "GB": Exact(10**9),
    "TB": Exact(10**12),
    "KiB": Exact(2**10),
    "kiB": Exact(2**10),
    "MiB": Exact(2**20),
    "GiB": Exact(2**30),
    "TiB": Exact(2**40),
}
_LONGEST = 100
_FRACTIONS = {"%": Exact(1, 100)}
_NUMBER = r"[0-9]+(?:\.[0-9]*)?(?:[eE][-+]?[0-9]{1,2})?|\.[0-9]+(?:[eE][-+]?[0-9]{1,2})?"
_SHAPE = re.compile(rf"\s*({_NUMBER})\s*([A-Za-z%]*)\s*")


def _exact(value: object, units: dict[str, Exact], noun: str, like: str) -> Exact:
    """Return the quantity without rounding, so that 5ms becomes the float nearest to 0.005, and 1.001kB is 1001 bytes."""
    wrong = f"{shown(value)} is not a {noun}; like {like}"
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        if not 0 <= value < 1e99:
            raise ConfigError(wrong)
        return Exact(value)
    match = _SHAPE.fullmatch(value) if isinstance(value, str) and len(value) <= _LONGEST else None
    if match is None or (match[2] and match[2] not in units):
        raise ConfigError(wrong)
    return Exact(match[1]) * (units[match[2]] if match[2] else 1)


def parse_rate(value: object, *, may_be_zero: bool = False) -> float:
    """Return the bytes per second of a rate like "10Mbit" or "1.5Gbit", or of a number of bit/s. Must be positive."""
    rate = float(_exact(value, _RATES, "rate", "10Mbit or 64kbit") / 8)
    if rate == 0 and not may_be_zero:
        raise ConfigError(f"{shown(value)} is not a rate; more than 0, like 10Mbit or 64kbit")
    return rate


def parse_duration(value: object) -> float:
    """Return the seconds of a duration like "5ms" or "20us", or of a number of seconds."""
    return float(_exact(value, _DURATIONS, "duration", "5ms or 1s"))


def parse_size(value: object) -> int:
    """Return the bytes of a size like "1MB", "60kB" or "1MiB", or of a number of bytes. Must be a whole number."""
    octets = _exact(value, _SIZES, "size", "60kB or 1MiB")
    if octets.denominator != 1:
        raise ConfigError(f"{shown(value)} is not a size; a whole number of bytes, like 60kB or 1MiB")
    return octets.numerator


def parse_fraction(value: object) -> float:
    """Return the number from 0 to 1 of a fraction like "1%" or 0.01."""
    fraction = _exact(value, _FRACTIONS, "fraction", "1% or 0.01, from 0 to 1")
    if fraction > 1:
        raise ConfigError(f"{shown(value)} is not a fraction; like 1% or 0.01, from 0 to 1")
    return float(fraction)


def _shortest(value: float, units: dict[str, Exact]) -> str:
    """Format `value` in the largest unit that is not larger than it."""
    name, factor = next(iter(units.items()))
    for other, candidate in units.items():
        if candidate <= value:
            name, factor = other, candidate
    return f"{value / float(factor):.12g}{name}"


def format_rate(rate: float) -> str:
    """Format bytes per second: 1250000.0 is "10Mbit"."""
    return "unlimited" if rate == inf else _shortest(rate * 8, _RATES)


def format_duration(duration: float) -> str:
    """Format seconds: 0.005 is "5ms", and 118.0 "118s": minutes and hours only where they need no more than one decimal."""
    if duration in (0, inf):
        return "0s" if duration == 0 else "never"
    short = {name: unit for name, unit in _DURATIONS.items() if unit <= 1 or _has_one_decimal(duration / float(unit))}
    return _shortest(duration, short)


def _has_one_decimal(number: float) -> bool:
    return isclose(number, round(number, 1), rel_tol=1e-12)


def format_size(octets: int) -> str:
    """Format bytes: 60000 is "60kB"."""
    return _shortest(octets, {name: unit for name, unit in _SIZES.items() if "i" not in name})


def format_fraction(fraction: float) -> str:
    """Format a fraction: 0.01 is "1%"."""
    return f"{fraction * 100:.12g}%"


def _validator(parse: Callable[[object], Any]) -> BeforeValidator:
    """Return `parse` as a pydantic validator with the same error text."""

    def validate(value: object) -> Any:
        try:
            return parse(value)
        except ConfigError as error:
            raise PydanticCustomError("quantity", "{text}", {"text": str(error)}) from None

    return BeforeValidator(validate)


def _schema(units: dict[str, Exact], description: str) -> WithJsonSchema:
    names = "|".join(units)
    pattern = rf"^\s*({_NUMBER})\s*({names})?\s*$"
    return WithJsonSchema(
        {"anyOf": [{"type": "string", "pattern": pattern}, {"type": "number", "minimum": 0}], "description": description}
    )


Rate: TypeAlias = Annotated[
    float,
    _validator(parse_rate),
    PlainSerializer(lambda rate: rate * 8),
    _schema(_RATES, "A rate like 10Mbit; a number without unit is in bit/s."),
]
"""Bytes per second, written like 10Mbit. Dumped in bit/s, as a number without unit is read."""
Duration: TypeAlias = Annotated[
    float, _validator(parse_duration), _schema(_DURATIONS, "A duration like 5ms; a number without unit is in seconds.")
]
"""Seconds, written like 5ms."""
Size: TypeAlias = Annotated[
    int, _validator(parse_size), _schema(_SIZES, "A size like 60kB or 1MiB; a number without unit is in bytes.")
]
"""Bytes, written like 60kB."""
Fraction: TypeAlias = Annotated[
    float, _validator(parse_fraction), _schema(_FRACTIONS, "A fraction from 0 to 1, like 1% or 0.01.")
]
"""From 0 to 1, written like 1%."""
