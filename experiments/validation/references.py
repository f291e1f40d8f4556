"""Reference values, their measurements, and the comparison of both."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from math import fsum, nan, sqrt
from pathlib import Path
from typing import Any, TypeAlias

from protocols.errors import UsageError

__all__ = [
    "PACKAGED",
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

PACKAGED = Path(__file__).with_name("reference.json")
REFERENCES = PACKAGED if PACKAGED.exists() else Path(__file__).parents[2] / "tests" / "vectors" / "reference.json"
"""The project's references: a wheel has them in this folder, a checkout among the vectors of the tests."""
STANDARD_ERRORS = 4.0
ROUNDING = 1e-7
"""Relative rounding error of the references, which have eight digits."""


@dataclass(frozen=True, slots=True)
class Measured:
    """A measured value and its standard error, 0 if it is deterministic."""

    value: float
    error: float = 0.0


@dataclass(frozen=True, slots=True)
class Reference:
    """Reference values by name; nested names and list indices are joined by dots, and a single value is called "value".

    A text among the values is a name whose value is 1.
    """

    id: str
    family: str
    params: dict[str, Any]
    values: dict[str, float]
    tolerance: dict[str, Any]

    def allowance(self, name: str) -> float:
        """Return the tolerance of a value without standard error, at least the rounding of the references."""
        kind, size = self.tolerance["type"], abs(self.values[name])
        rounding = ROUNDING * size
        if kind in ("stat", "rel"):
            return max(float(self.tolerance["rel" if kind == "stat" else "value"]) * size, rounding)
        return max(float(self.tolerance["value"]), rounding)


Measure: TypeAlias = Callable[[Reference, float], Mapping[str, Measured]]
"""Function (reference, effort) -> measured values by name.

Effort 1 is the full number of events; less effort gives larger standard errors.
"""

Families: TypeAlias = Mapping[str, Measure]


@dataclass(frozen=True, slots=True)
class ReferenceCheck:
    """Comparison of one value: reference, measured value, standard error, tolerance, and whether they agree (`good`)."""

    id: str
    family: str
    name: str
    reference: float
    measured: float
    error: float
    allowed: float
    good: bool


def check_values(reference: Reference, measured: Mapping[str, Measured]) -> list[ReferenceCheck]:
    """Compare each measured value: |measured - reference| <= max(tolerance, 4 standard errors).

    One that the reference does not have disagrees.
    """
    checks = []
    for name, found in measured.items():
        # numpy scalars are not serialisable as JSON.
        expected, value, error = reference.values.get(name, nan), float(found.value), float(found.error)
        allowed = max(reference.allowance(name), STANDARD_ERRORS * error) if name in reference.values else 0.0
        good = abs(value - expected) <= allowed
        checks.append(ReferenceCheck(reference.id, reference.family, name, expected, value, error, allowed, good))
    return checks


def read_references(path: Path = REFERENCES) -> list[Reference]:
    """Read the references of a file; UsageError if it can't be read or holds none."""
    try:
        found = [_entry(row) for row in json.loads(path.read_text(encoding="utf-8"))]
    except OSError as error:
        raise _refused(path, str(error)) from error
    except RecursionError as error:
        raise _refused(path, "nested too deep") from error
    except LookupError as error:
        raise _refused(path, f"a row has no {error}") from error
    except (ValueError, TypeError) as error:
        raise _refused(path, str(error)) from error
    if not found:
        raise _refused(path, "it is empty")
    return found


def _refused(path: Path, why: str) -> UsageError:
    return UsageError(f"--reference: value {str(path)!r} is not allowed; a file of reference values ({why})")


def _entry(row: Mapping[str, Any]) -> Reference:
    values = dict(_flat("", row["value"]))
    reference = Reference(row["id"], row["family"], row["params"], values, row["tolerance"])
    for name in values:
        reference.allowance(name)
    return reference


def _flat(name: str, value: Any) -> Iterator[tuple[str, float]]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _flat(f"{name}.{key}" if name else key, item)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _flat(f"{name}.{index}" if name else str(index), item)
    elif isinstance(value, str):
        yield value, 1.0
    elif isinstance(value, (int, float)):
        yield name or "value", float(value)


def mean_of(samples: list[float]) -> Measured:
    """Return the mean of independent samples with its standard error."""
    n = len(samples)
    mean = fsum(samples) / n
    if n < 2:
        return Measured(mean)
    return Measured(mean, sqrt(fsum((x - mean) ** 2 for x in samples) / (n - 1) / n))


def ratio_of(hits: int, trials: int) -> Measured:
    """Return a probability estimated from independent trials; the standard error is that of a count of at least 1."""
    p = hits / trials
    return Measured(p, sqrt(max(p * (1 - p), 1 / trials) / trials))
