"""Read the settings of a config as a user writes them: values with units, ranges, unknown keys."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from math import inf
from typing import Any

from experiments.scenario.suggestion import did_you_mean
from protocols.errors import ConfigError, shown
from protocols.settings import BoundError, Setting, setting_of
from topologies.units import format_duration, format_rate, format_size, parse_duration, parse_rate, parse_size

__all__ = ["EXAMPLES", "read_settings", "read_values"]

READERS: dict[str, Callable[[Any], float]] = {"rate": parse_rate, "seconds": parse_duration, "bytes": parse_size}
_WRITTEN: dict[str, Callable[[Any], str]] = {"rate": format_rate, "seconds": format_duration, "bytes": format_size}
EXAMPLES = {"rate": "like 10Mbit", "seconds": "like 50ms", "bytes": "like 1400 or 16MB"}


def read_settings(kind: type, given: Mapping[str, object], where: str, others: Sequence[str]) -> Any:
    """Make a config of class `kind` from the keys and values that a user wrote under the key `where`.

    `others` are the keys that are allowed there beside its settings. ConfigError names key, value and what is allowed.
    """
    read = read_values(kind, given, where, others)
    try:
        return kind(**read)
    except ConfigError as error:
        key, _, why = str(error).partition(": ")
        if isinstance(error, BoundError):
            # Name the key that the user wrote, and both values as they were written.
            key, other, bound = error.key, error.bound, "at most"
            if key not in given:
                key, other, bound = other, key, "at least"
            why = f" is not allowed; {bound} {other} ({given.get(other, _default(kind, other))})"
        if key in given:
            # Show the value as the user wrote it, not as a number.
            why = f"{given[key]!r} is not allowed; {why.partition(' is not allowed; ')[2]}"
        raise ConfigError(f"{where}.{key}: value {why}") from error


def _default(kind: type, key: str) -> str:
    """Return the default of a setting as a user would write it."""
    item = next(item for item in fields(kind) if item.name == key)
    return _WRITTEN.get(setting_of(item).unit, str)(item.default)


def read_values(kind: type, given: Mapping[str, object], where: str, others: Sequence[str] = ()) -> dict[str, Any]:
    """Return values of some settings of class `kind`, read like those of `read_settings`, each for itself."""
    known = {item.name: setting_of(item) for item in fields(kind)}
    for key, item in given.items():
        if key not in known:
            allowed = ", ".join((*others, *known)) + did_you_mean(key, known)
            raise ConfigError(f"{where}.{key}: value {shown(item)} is not allowed; unknown key, known here: {allowed}")
    return {key: _read(f"{where}.{key}", item, known[key]) for key, item in given.items()}


def _read(where: str, value: Any, known: Setting) -> Any:
    """Read a value in the unit of its setting. ConfigError when it has no such unit or is out of range."""
    reader = READERS.get(known.unit)
    if reader is None:
        return value
    allowed = known.allowed
    if known.unit == "rate":
        allowed = f"a rate from {format_rate(known.low)} to {format_rate(known.high)}"
    elif known.unit == "seconds":
        least = f"a duration of at least {format_duration(known.low)}"
        allowed = (
            least if known.high == inf else f"a duration from {format_duration(known.low)} to {format_duration(known.high)}"
        )
    try:
        number = parse_rate(value, may_be_zero=True) if known.unit == "rate" and not known.low else reader(value)
    except ConfigError as error:
        example = EXAMPLES[known.unit]
        raise ConfigError(f"{where}: value {shown(value)} is not allowed; {allowed}, {example}") from error
    if not known.low <= number <= known.high:
        raise ConfigError(f"{where}: value {shown(value)} is not allowed; {allowed}")
    return number
