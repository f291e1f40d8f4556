"""Reference values, what was measured against them, and the verdict."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from math import fsum, sqrt
from pathlib import Path
from typing import Any, TypeAlias

from protocols.errors import UsageError

__all__ = [
    "REFERENCES",
    "Families",
    "Measure",
    "Measured",
    "Reference",
    "ReferenceCheck",
    "check_values",
    "mean_of",
    "ratio_of",
    "read_references",
]

REFERENCES = Path(__file__).parents[2] / "tests" / "vectors" / "reference.json"
STANDARD_ERRORS = 4.0
ROUNDING = 1e-7
"""References have eight digits."""


@dataclass(frozen=True, slots=True)
class Measured:
    """A measured value and its standard error (0 for what chance has no part in)."""

    value: float
    error: float = 0.0


@dataclass(frozen=True, slots=True)
class Reference:
    """One reference: `values` by name, nested names and places in lists joined by dots; a single value is called "value"."""

    id: str
    family: str
    quantity: str
    formula: str
    params: dict[str, Any]
    values: dict[str, float]
    tolerance: dict[str, Any]

    def allowance(self, name: str) -> float:
        """By how much a value without standard error may differ; never less than the references are rounded by."""
        kind, size = self.tolerance["type"], abs(self.values[name])
        rounding = ROUNDING * size
        if kind in ("stat", "rel"):
            return max(float(self.tolerance["rel" if kind == "stat" else "value"]) * size, rounding)
        return max(float(self.tolerance["value"]), rounding)


Measure: TypeAlias = Callable[[Reference, float], Mapping[str, Measured]]
"""Measures an entry: values by the names of `Entry.values` (those it measures). The second argument is the effort: 1 for the
full number of events, less for a quick look; the standard error says what that costs."""

Families: TypeAlias = Mapping[str, Measure]


@dataclass(frozen=True, slots=True)
class ReferenceCheck:
    """One value of one entry: what it should be, what it is, and whether that is near enough."""

    id: str
    family: str
    name: str
    reference: float
    measured: float
    error: float
    allowed: float
    good: bool


def check_values(entry: Reference, measured: Mapping[str, Measured]) -> list[ReferenceCheck]:
    """|measured - reference| <= max(tolerance, 4 standard errors), for each value measured."""
    verdicts = []
    for name, found in measured.items():
        # Numbers of numpy would not go into JSON.
        reference, value, error = entry.values[name], float(found.value), float(found.error)
        allowed = max(entry.allowance(name), STANDARD_ERRORS * error)
        good = abs(value - reference) <= allowed
        verdicts.append(ReferenceCheck(entry.id, entry.family, name, reference, value, error, allowed, good))
    return verdicts


def read_references(path: Path = REFERENCES) -> list[Reference]:
    """All references of a file; UsageError when it can't be read."""
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"--reference: value {str(path)!r} is not allowed; a file of reference values ({error})") from error
    return [_entry(row) for row in rows]


def _entry(row: Mapping[str, Any]) -> Reference:
    values = dict(_flat("", row["value"]))
    return Reference(row["id"], row["family"], row["quantity"], row["formula"], row["params"], values, row["tolerance"])


def _flat(name: str, value: Any) -> Iterator[tuple[str, float]]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _flat(f"{name}.{key}" if name else key, item)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _flat(f"{name}.{index}" if name else str(index), item)
    elif isinstance(value, (int, float)):
        yield name or "value", float(value)


def mean_of(samples: list[float]) -> Measured:
    """The mean of independent samples and its standard error."""
    n = len(samples)
    mean = fsum(samples) / n
    if n < 2:
        return Measured(mean)
    return Measured(mean, sqrt(fsum((x - mean) ** 2 for x in samples) / (n - 1) / n))


def ratio_of(hits: int, trials: int) -> Measured:
    """A probability from independent trials; the standard error is that of a count at least 1."""
    p = hits / trials
    return Measured(p, sqrt(max(p * (1 - p), 1 / trials) / trials))
