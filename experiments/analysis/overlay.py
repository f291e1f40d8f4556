"""Compare theory with measurement: a formula's prediction at each point of a sweep, and the residual of the measured mean."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from experiments.analysis.formulas import FORMULAS, Formula
from experiments.analysis.point_scenarios import PointScenarios
from experiments.analysis.runs import Runs
from experiments.analysis.summary import GroupSummary, summarise
from protocols.errors import UsageError

__all__ = ["MOST_STANDARD_ERRORS", "FormulaRequest", "Prediction", "overlay", "parse_formula", "predict"]

MOST_STANDARD_ERRORS = 4.0
"""Largest residual, in standard errors, at which theory holds."""


@dataclass(frozen=True, slots=True)
class FormulaRequest:
    """A formula by name, with arguments the user set: a number, or the scenario key to take it from."""

    name: str
    given: Mapping[str, float | str]

    @property
    def formula(self) -> Formula:
        """The registered formula."""
        return FORMULAS[self.name]


@dataclass(frozen=True, slots=True)
class Prediction:
    """Theory at one point. `residual` is (mean - expected)/standard error; None if the runs do not vary or there is one."""

    keys: dict[str, Any]
    formula: str
    metric: str
    expected: float
    mean: float
    count: int
    residual: float | None
    holds: bool

    def plain(self) -> dict[str, Any]:
        """Return one flat row: the keys, then the numbers."""
        row = asdict(self)
        return {**row.pop("keys"), **row}


def parse_formula(text: str) -> FormulaRequest:
    """Parse `NAME` or `NAME:argument=value,...`; UsageError for an unknown name or argument."""
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
    """Evaluate the formula at every point where its arguments are known, and compare with the mean of the runs there.

    `known` are group summaries of whole points computed earlier. Raises UsageError if no run has the metric or no point
    qualifies.
    """
    formula = theory.formula
    if formula.metric not in runs.metrics:
        raise UsageError(f"--theory: value {theory.name!r} is not allowed; it predicts {formula.metric}, which no run here has")
    groups = [group for group in known if group.metric == formula.metric] or summarise(
        runs, runs.axes, [formula.metric], percentiles=(50,), resamples=0
    )
    found = [made for group in groups if (made := _compare(theory, group, points.at(group.keys))) is not None]
    if not found:
        point = points.at(groups[0].keys) if groups else {}
        missing = [name for name in formula.needs if _argument(theory, name, point) is None]
        raise UsageError(
            f"--theory: value {theory.name!r} is not allowed; "
            + (
                f"no point sets {', '.join(missing)}; give it as {theory.name}:{missing[0]}=KEY or =NUMBER"
                if missing
                else "it applies to no point of this sweep"
            )
        )
    return found


def _compare(theory: FormulaRequest, group: GroupSummary, point: Mapping[str, Any]) -> Prediction | None:
    value = predict(theory, point)
    if value is None:
        return None
    gap = group.mean - value
    residual = gap / group.error if group.error else None
    exact = abs(gap) <= 1e-9 * max(abs(value), 1.0)
    holds = exact or (residual is not None and abs(residual) <= MOST_STANDARD_ERRORS)
    if theory.formula.ceiling:
        holds = gap <= MOST_STANDARD_ERRORS * (group.error or 0.0) + 1e-9 * abs(value)
    return Prediction(group.keys, theory.name, group.metric, value, group.mean, group.count, residual, holds)


def predict(theory: FormulaRequest, point: Mapping[str, Any]) -> float | None:
    """Evaluate the formula for a scenario as flat keys; None if it does not apply or an argument is unknown."""
    if not theory.formula.applies(point):
        return None
    arguments = {name: _argument(theory, name, point) for name in theory.formula.needs}
    if any(value is None for value in arguments.values()):
        return None
    try:
        return theory.formula.value(**arguments)
    except (ValueError, ZeroDivisionError, OverflowError):
        return None


def _argument(theory: FormulaRequest, name: str, point: Mapping[str, Any]) -> float | None:
    """Return an argument as the user gave it, else from the scenario; None if unknown."""
    given = theory.given.get(name)
    if isinstance(given, float):
        return given
    for key in (given,) if given is not None else theory.formula.needs[name]:
        value = point.get(key)
        if isinstance(value, (int, float)):
            return float(value)
    return 0.0 if name in theory.formula.optional else None
