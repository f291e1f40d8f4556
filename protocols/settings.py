"""Protocol parameters: dataclass fields with metadata on unit, range and source.

`experiments.scenario` uses the metadata to parse values with units, to reject values out of range and to write the JSON Schema,
so a protocol describes its parameters once, in its `config.py`.
"""

from dataclasses import Field, dataclass, field, fields
from math import inf
from numbers import Integral, Real
from typing import Any, cast

from protocols.errors import ConfigError, shown

__all__ = ["BoundError", "Setting", "check", "setting", "setting_of"]


class BoundError(ConfigError):
    """A parameter, `key`, exceeds another one that bounds it, `bound`."""

    def __init__(self, key: str, value: float, bound: str, most: float) -> None:
        # Processes pass exceptions on by these arguments.
        super().__init__(key, value, bound, most)
        self.key, self.value, self.bound, self.most = key, value, bound, most

    def __str__(self) -> str:
        return f"{self.key}: {self.value!r} is not allowed; at most {self.bound} ({self.most:g})"


UNITS = ("count", "number", "bytes", "seconds", "rate", "choice", "file", "network")

_WORDS = {"file": "the path of a file", "network": "the name of a network (`Group.network`)"}
"""Units of values that are text."""


@dataclass(frozen=True, slots=True)
class Setting:
    """Metadata of one parameter: `unit` (one of UNITS; a rate is in bytes per second), range or choices, help and source.

    `at_most` names another parameter that this one may not exceed.
    """

    unit: str
    low: float = -inf
    high: float = inf
    choices: tuple[int | str, ...] = ()
    help: str = ""
    source: str = ""
    at_most: str = ""

    @property
    def allowed(self) -> str:
        """The allowed values in words, for error messages."""
        if self.choices:
            return "one of " + ", ".join(str(each).lower() if isinstance(each, bool) else str(each) for each in self.choices)
        if self.unit in _WORDS:
            return _WORDS[self.unit]
        is_whole = self.unit in ("count", "bytes")
        low, high = (str(int(end)) if is_whole and end < inf else f"{end:g}" for end in (self.low, self.high))
        kind = "a whole number" if is_whole else "a number"
        return f"{kind} from {low} to {high}" if self.high < inf else f"{kind} of at least {low}"


def setting(
    default: Any,
    unit: str,
    low: float = -inf,
    high: float = inf,
    *,
    choices: tuple[int | str, ...] = (),
    help: str = "",
    source: str = "",
    at_most: str = "",
) -> Any:
    """Return a dataclass field with a `Setting` as metadata. ConfigError for an unknown unit."""
    if not isinstance(unit, str) or unit not in UNITS:
        raise ConfigError(f"unit: {shown(unit)} is not allowed; one of {', '.join(UNITS)}")
    return field(default=default, metadata={"setting": Setting(unit, low, high, choices, help, source, at_most)})


def setting_of(item: "Field[Any]") -> Setting:
    """Return the `Setting` of a dataclass field made by `setting`."""
    return cast(Setting, item.metadata["setting"])


def check(config: Any) -> None:
    """Raise ConfigError, naming key, value and allowed values, for the first field out of its range or above another.

    Numbers of numpy become plain ones, with which machines compute faster and without overflows.
    """
    for item in fields(config):
        known, value = setting_of(item), _plain(getattr(config, item.name))
        if value is not getattr(config, item.name):
            object.__setattr__(config, item.name, value)
        if known.choices:
            good = isinstance(value, (int, str)) and value in known.choices
        elif known.unit in _WORDS:
            good = isinstance(value, str)
        else:
            good = isinstance(value, (int, float)) and not isinstance(value, bool) and known.low <= value <= known.high
            good = good and (known.unit not in ("count", "bytes") or isinstance(value, int))
        if not good:
            raise ConfigError(f"{item.name}: {shown(value)} is not allowed; {known.allowed}")
    for item in fields(config):
        other, value = setting_of(item).at_most, getattr(config, item.name)
        if other and value > getattr(config, other):
            raise BoundError(item.name, value, other, getattr(config, other))


def _plain(value: Any) -> Any:
    """Return a number of another package as Python's own; all other values as they are."""
    if type(value) in (int, float, bool) or not isinstance(value, Real):
        return value
    return int(value) if isinstance(value, Integral) else float(value)
