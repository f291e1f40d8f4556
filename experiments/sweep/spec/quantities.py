"""Convert axis values to numbers in base units: 1% to 0.01, 10Mbit to 10000000, 500/s to 500."""

import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import TypeAlias

from protocols.errors import ConfigError
from topologies.units import parse_duration, parse_fraction, parse_rate, parse_size

__all__ = ["Value", "dimension_of", "kind_of", "number_of"]

Value: TypeAlias = bool | int | float | str

_UNIT = re.compile(r"\s*[0-9.].*[A-Za-z%]\s*")
_NUMBER_BEGINS = tuple("0123456789.")
_PER_SECOND = re.compile(r"([0-9]+)\s*/\s*s")


def number_of(value: Value) -> Value:
    """Convert a quantity to bit/s, seconds, bytes, a number per second or a fraction; return other values unchanged."""
    if not isinstance(value, str) or value.strip()[:1] not in _NUMBER_BEGINS:
        return value
    if match := _PER_SECOND.fullmatch(value.strip()):
        return int(match[1])
    for parse, factor in ((parse_fraction, 1), (parse_duration, 1), (parse_size, 1), (parse_rate, 8)):
        try:
            number = parse(value)
        except ConfigError:
            continue
        return number if factor == 1 else number * factor
    return value


def dimension_of(values: Iterable[object]) -> str:
    """Return what the first of the values that has a unit measures: fraction, duration, size or rate; "" if none has one."""
    parsers = {"fraction": parse_fraction, "duration": parse_duration, "size": parse_size, "rate": parse_rate}
    for value in values:
        if not isinstance(value, str) or not _UNIT.fullmatch(value):
            continue
        for name, parse in parsers.items():
            with suppress(ConfigError):
                parse(value)
                return name
    return ""


def kind_of(values: Sequence[Value]) -> str:
    """Return the narrowest column type that holds all values: bool, long, double or string."""
    numbers = [number_of(value) for value in values]
    if all(isinstance(number, bool) for number in numbers):
        return "bool"
    if any(isinstance(number, (bool, str)) for number in numbers):
        return "string"
    return "long" if all(isinstance(number, int) for number in numbers) else "double"
