"""Theory beside measurement: what a formula says for each point of a sweep, and how far the measured mean is from it."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from experiments.analysis.formulas import FORMULAS, Formula
from experiments.analysis.point_scenarios import PointScenarios
from experiments.analysis.runs import Runs
from experiments.analysis.summary import GroupSummary, summarise
from protocols.errors import UsageError

__all__ = ["MOST_STANDARD_ERRORS", "FormulaRequest", "Prediction", "expect", "overlay", "parse_formula"]

MOST_STANDARD_ERRORS = 4.0
"""Standard errors within which a mean counts as theory's."""


@dataclass(frozen=True, slots=True)
class FormulaRequest:
    """A formula by name, and what the user says of its arguments: a number, or the key to take it from."""

    name: str
    given: Mapping[str, float | str]

    @property
    def formula(self) -> Formula:
        """The formula itself."""
        return FORMULAS[self.name]


@dataclass(frozen=True, slots=True)
class Prediction:
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


def parse_formula(text: str) -> FormulaRequest:
    """`NAME` or `NAME:argument=value,...` as the user writes it."""
    name, _, rest = text.partition(":")
    if name not in FORMULAS:
        raise UsageError(f"--theory: value {name!r} is not allowed; one of {', '.join(FORMULAS)}")
    given: dict[str, float | str] = {}
    for item in filter(None, rest.split(",")):
        key, equals, value = item.partition("=")
        if not equals or key not in FORMULAS[name].needs:
            allowed = ", ".join(FORMULAS[name].needs)
            raise UsageError(
                f"--theory: value {item!r} is not allowed; {name} takes argument=number or argument=key of {allowed}"
            )
        given[key] = _number(value)
    return FormulaRequest(name, given)


def _number(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def overlay(runs: Runs, theory: FormulaRequest, points: PointScenarios, known: Sequence[GroupSummary] = ()) -> list[Prediction]:
    """The formula at every point of the sweep where it can be computed, beside the mean of the runs there.

    `known` are groups of whole points that were computed before.
    """
    formula = theory.formula
    if formula.metric not in runs.metrics:
        raise UsageError(f"--theory: value {theory.name!r} is not allowed; it predicts {formula.metric}, which no run here has")
    groups = [group for group in known if group.metric == formula.metric] or summarise(
        runs, runs.axes, [formula.metric], percentiles=(50,), resamples=0
    )
    found = [made for group in groups if (made := _beside(theory, group, points.at(group.keys))) is not None]
    if not found:
        point = points.at(groups[0].keys) if groups else {}
        missing = [name for name in formula.needs if _find(theory, name, point) is None]
        raise UsageError(
            f"--theory: value {theory.name!r} is not allowed; "
            + (
                f"no point tells {', '.join(missing)}; say it like {theory.name}:{missing[0]}=KEY or =NUMBER"
                if missing
                else "no point of this sweep is of the kind it is meant for"
            )
        )
    return found


def _beside(theory: FormulaRequest, group: GroupSummary, point: Mapping[str, Any]) -> Prediction | None:
    value = expect(theory, point)
    if value is None:
        return None
    gap = group.mean - value
    residual = gap / group.error if group.error else None
    exact = abs(gap) <= 1e-9 * max(abs(value), 1.0)
    holds = exact or (residual is not None and abs(residual) <= MOST_STANDARD_ERRORS)
    if theory.formula.ceiling:
        holds = gap <= MOST_STANDARD_ERRORS * (group.error or 0.0) + 1e-9 * abs(value)
    return Prediction(group.keys, theory.name, group.metric, value, group.mean, group.count, residual, holds)


def expect(theory: FormulaRequest, point: Mapping[str, Any]) -> float | None:
    """The formula for a scenario as flat keys; None where it is not meant for it, or an argument is not told."""
    if not theory.formula.applies(point):
        return None
    arguments = {name: _find(theory, name, point) for name in theory.formula.needs}
    if any(value is None for value in arguments.values()):
        return None
    try:
        return theory.formula.value(**arguments)
    except (ValueError, ZeroDivisionError, OverflowError):
        return None


def _find(theory: FormulaRequest, name: str, point: Mapping[str, Any]) -> float | None:
    """An argument: as the user gave it, else from the scenario."""
    given = theory.given.get(name)
    if isinstance(given, float):
        return given
    for key in (given,) if given is not None else theory.formula.needs[name]:
        value = point.get(key)
        if isinstance(value, (int, float)):
            return float(value)
    return 0.0 if name in theory.formula.optional else None
