"""Theory beside measurement: what a formula says for each point of a sweep, and how far the measured mean is from it."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from experiments.analysis.formulas import FORMULAS, Formula
from experiments.analysis.runs import Runs
from experiments.analysis.summary import Group, summarise
from experiments.scenario import load
from protocols.errors import ConfigError, UsageError

__all__ = ["NEAR", "Expected", "Wanted", "base_values", "expect", "overlay", "wanted"]

NEAR = 4.0
"""Standard errors within which a mean counts as theory's."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A formula by name, and what the user says of its arguments: a number, or the key to take it from."""

    name: str
    given: Mapping[str, float | str]

    @property
    def formula(self) -> Formula:
        """The formula itself."""
        return FORMULAS[self.name]


@dataclass(frozen=True, slots=True)
class Expected:
    """Theory for one point: `residual` is (mean - expected) in standard errors, None where the runs do not vary or are one."""

    keys: dict[str, Any]
    formula: str
    metric: str
    expected: float
    mean: float
    count: int
    residual: float | None
    holds: bool

    def plain(self) -> dict[str, Any]:
        """One flat row: the keys, then the numbers."""
        row = asdict(self)
        return {**row.pop("keys"), **row}


def wanted(text: str) -> Wanted:
    """`NAME` or `NAME:argument=value,...` as the user writes it."""
    name, _, rest = text.partition(":")
    if name not in FORMULAS:
        raise UsageError(f"--theory: value {name!r} is not allowed; one of {', '.join(FORMULAS)}")
    given: dict[str, float | str] = {}
    for item in filter(None, rest.split(",")):
        key, equals, value = item.partition("=")
        if not equals or key not in FORMULAS[name].needs:
            allowed = ", ".join(FORMULAS[name].needs)
            raise UsageError(f"--theory: value {item!r} is not allowed; {name} takes argument=number or argument=key of {allowed}")
        given[key] = _number(value)
    return Wanted(name, given)


def _number(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def base_values(folder: Path) -> dict[str, Any]:
    """The base scenario of a sweep as flat dotted keys, defaults filled in; quantities in bit/s, seconds, bytes, fractions."""
    path = folder / "base.yaml"
    try:
        plain = load(path).plain()
    except (ConfigError, UsageError) as error:
        raise UsageError(f"{path}: theory needs the base scenario of the sweep ({error})") from error
    return dict(_flat("", plain))


def _flat(prefix: str, value: Any) -> Iterable[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _flat(f"{prefix}.{key}" if prefix else str(key), inner)
    elif isinstance(value, (list, tuple)):
        for place, inner in enumerate(value):
            yield from _flat(f"{prefix}.{place}", inner)
    else:
        yield prefix, value


def overlay(runs: Runs, theory: Wanted, base: Mapping[str, Any]) -> list[Expected]:
    """The formula at every point of the sweep where it can be computed, beside the mean of the runs there."""
    formula = theory.formula
    if formula.metric not in runs.metrics:
        raise UsageError(f"--theory: value {theory.name!r} is not allowed; it predicts {formula.metric}, which no run here has")
    groups = summarise(runs, runs.axes, [formula.metric], percentiles=(50,), resamples=0)
    found = [made for group in groups if (made := _beside(theory, group, base)) is not None]
    if not found:
        missing = [name for name in formula.needs if _find(theory, name, {}, base) is None]
        raise UsageError(
            f"--theory: value {theory.name!r} is not allowed; no point tells {', '.join(missing) or 'its arguments'}; "
            f"say it like {theory.name}:{(missing or list(formula.needs))[0]}=KEY or =NUMBER"
        )
    return found


def _beside(theory: Wanted, group: Group, base: Mapping[str, Any]) -> Expected | None:
    value = expect(theory, group.keys, base)
    if value is None:
        return None
    gap = group.mean - value
    residual = gap / group.error if group.error else None
    exact = abs(gap) <= 1e-9 * max(abs(value), 1.0)
    holds = exact or (residual is not None and abs(residual) <= NEAR)
    if theory.formula.ceiling:
        holds = gap <= NEAR * (group.error or 0.0) + 1e-9 * abs(value)
    return Expected(group.keys, theory.name, group.metric, value, group.mean, group.count, residual, holds)


def expect(theory: Wanted, point: Mapping[str, Any], base: Mapping[str, Any]) -> float | None:
    """The formula at a point; None where an argument is not told or makes no sense to it."""
    arguments = {name: _find(theory, name, point, base) for name in theory.formula.needs}
    if any(value is None for value in arguments.values()):
        return None
    try:
        return theory.formula.value(**arguments)
    except (ValueError, ZeroDivisionError, OverflowError):
        return None


def _find(theory: Wanted, name: str, point: Mapping[str, Any], base: Mapping[str, Any]) -> float | None:
    """An argument: as the user gave it, else from the point's axes, else from the base scenario."""
    given = theory.given.get(name)
    if isinstance(given, float):
        return given
    keys = (given,) if given is not None else theory.formula.needs[name]
    for source in (point, base):
        for key in keys:
            value = source.get(key)
            if isinstance(value, (int, float)):
                return float(value)
    return 0.0 if name in theory.formula.optional else None
