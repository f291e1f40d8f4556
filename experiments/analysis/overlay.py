"""Compare theory with measurement: a formula's prediction at each point of a sweep, and whether the measured mean agrees.

Theory holds where the mean is shown to be within a margin of the prediction (`experiments/statistics/verdicts.py`), and does
not hold where it is shown to be beyond; otherwise the runs are too few to show either. The interval respects the range of the
metric, and has width 0 where runs do not vary.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from math import inf
from typing import Any, Literal, TypeAlias

from experiments.analysis.formulas import FormulaRequest
from experiments.analysis.point_scenarios import PointScenarios
from experiments.analysis.runs import Runs, flat_row
from experiments.analysis.summary import GroupSummary, summarise
from experiments.statistics.intervals import TOLERANCE, does_not_vary
from experiments.statistics.verdicts import CONFIDENCE, Verdict, decide, runs_needed
from protocols.errors import UsageError

__all__ = ["MARGIN", "Holds", "Prediction", "overlay", "predict"]

MARGIN = 0.02
"""Default margin, as a fraction of the prediction: less than what repairs add to the transmissions of most sweeps."""
Holds: TypeAlias = Literal["yes", "no", "not shown"]
_HOLDS: dict[Verdict, Holds] = {Verdict.EQUIVALENT: "yes", Verdict.DIFFERENT: "no", Verdict.NOT_SHOWN: "not shown"}


@dataclass(frozen=True, slots=True)
class Prediction:
    """Theory at one point: the prediction, and the mean of the runs with its 90 % interval (None for a single run).

    `residual` is (mean - expected)/standard error, to be read as Student's t with count - 1 degrees of freedom; None if the
    runs do not vary or there is one. `runs_needed` would decide what is not shown, if mean and variance stay as they are.
    """

    keys: dict[str, Any]
    formula: str
    metric: str
    expected: float
    mean: float
    count: int
    low: float | None
    high: float | None
    residual: float | None
    holds: Holds
    runs_needed: int | None

    def plain(self) -> dict[str, Any]:
        """Return one flat row: the keys, then the numbers."""
        row = asdict(self)
        return flat_row(row.pop("keys"), row)


def overlay(
    runs: Runs, theory: FormulaRequest, points: PointScenarios, known: Sequence[GroupSummary] = (), margin: float = MARGIN
) -> list[Prediction]:
    """Evaluate the formula at every point where its arguments are known, and compare with the mean of the runs there.

    `margin` is a fraction of the prediction. `known` are group summaries of whole points computed earlier. Raises UsageError
    if no run has the metric or no point qualifies.
    """
    formula = theory.formula
    if formula.metric not in runs.metrics:
        raise UsageError(f"--theory: value {theory.name!r} is not allowed; it predicts {formula.metric}, which no run here has")
    groups = [group for group in known if group.metric == formula.metric] or summarise(
        runs, runs.axes, [formula.metric], percentiles=(50,), resamples=0
    )
    bound = runs.bound_points()
    judged = [group for group in groups if tuple(group.keys.values()) not in bound]
    found = [made for group in judged if (made := _compare(theory, group, points.at(group.keys), margin)) is not None]
    if not found:
        point = points.at(groups[0].keys) if groups else {}
        raise UsageError(f"--theory: value {theory.name!r} is not allowed; {_lacking(theory, point)}")
    return found


def _lacking(theory: FormulaRequest, point: Mapping[str, Any]) -> str:
    """Return why a formula can't be evaluated at a point."""
    missing = [name for name in theory.formula.needs if _argument(theory, name, point) is None]
    if not missing:
        return "it applies to no point of this sweep"
    if missing[0] in theory.given:
        return f"{missing[0]}={theory.given[missing[0]]} is neither a number or quantity nor the key of one in the scenario"
    return f"no point sets {', '.join(missing)}; give it as {theory.name}:{missing[0]}=KEY or =NUMBER"


def _compare(theory: FormulaRequest, group: GroupSummary, point: Mapping[str, Any], share: float) -> Prediction | None:
    value = predict(theory, point)
    if value is None:
        return None
    gap, margin, interval = group.mean - value, share * abs(value), group.interval(CONFIDENCE)
    varies = group.sd is not None and not does_not_vary(group.mean, group.sd)
    verdict = Verdict.NOT_SHOWN
    if interval is not None:
        # Of an upper bound only what is above it counts.
        floor = -margin if theory.formula.ceiling else -inf
        low, high = (max(end - value, floor) for end in interval)
        verdict = decide(low, high, margin, TOLERANCE * max(abs(value), 1.0))
    return Prediction(
        keys=group.keys,
        formula=theory.name,
        metric=group.metric,
        expected=value,
        mean=group.mean,
        count=group.count,
        low=None if interval is None else interval.low,
        high=None if interval is None else interval.high,
        residual=gap / group.error if varies and group.error else None,
        holds=_HOLDS[verdict],
        runs_needed=runs_needed(group.count, gap, group.sd, margin) if varies and verdict is Verdict.NOT_SHOWN else None,
    )


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
    return 0.0 if given is None and name in theory.formula.optional else None
