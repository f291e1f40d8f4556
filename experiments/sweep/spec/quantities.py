"""Values of an axis as numbers, so that results can be sorted and plotted: 1% is 0.01, 10Mbit is 10000000."""

from collections.abc import Sequence
from typing import TypeAlias

from protocols.errors import ConfigError
from topologies.units import parse_duration, parse_fraction, parse_rate, parse_size

__all__ = ["Value", "kind_of", "number_of"]

Value: TypeAlias = bool | int | float | str


def number_of(value: Value) -> Value:
    """The number in bit/s, seconds, bytes or as a fraction that a quantity stands for; other values as they are."""
    if not isinstance(value, str) or not value.strip()[:1].isdigit():
        return value
    for parse, factor in ((parse_fraction, 1), (parse_duration, 1), (parse_size, 1), (parse_rate, 8)):
        try:
            number = parse(value)
        except ConfigError:
            continue
        return number if factor == 1 else number * factor
    return value


def kind_of(values: Sequence[Value]) -> str:
    """The narrowest type that holds all: bool, long, double or string."""
    numbers = [number_of(value) for value in values]
    if all(isinstance(number, bool) for number in numbers):
        return "bool"
    if any(isinstance(number, (bool, str)) for number in numbers):
        return "string"
    return "long" if all(isinstance(number, int) for number in numbers) else "double"
