"""Which runs a sweep asks for next, from the results so far: more replications, and more values where a metric changes.

Decided from rows alone, seed by seed, so that an interrupted sweep comes to the same runs as one that was not.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from math import fsum, sqrt
from typing import TypeAlias

from experiments.compare.paired import student_quantile
from experiments.sweep.spec.grid import Point, SweepPlan, SweepRun
from experiments.sweep.spec.quantities import Value, number_of
from experiments.sweep.spec.sweep_file import Refine, Until
from protocols.errors import UsageError

__all__ = ["Values", "deciding_metrics", "half_width", "planned_runs"]

Values: TypeAlias = Mapping[str, Mapping[str, float | None]]
"""run_id -> metric -> value, None where the run did not come to one; every run that has a row."""
FIRST, GROWTH = 5, 2
"""Replications before the first look, and their growth until the next: looking more often would stop by luck too often."""


def deciding_metrics(plan: SweepPlan) -> list[str]:
    """The metrics that decide how a sweep goes on."""
    return [rule.metric for rule in (plan.sweep.until, plan.sweep.refine) if rule is not None]


def planned_runs(plan: SweepPlan, values: Values) -> list[SweepRun]:
    """Every run the sweep asks for as far as results tell; all of them are there when it is over.

    Sets `plan.more`. UsageError when conditions leave no point.
    """
    plan.more.clear()
    rounds = plan.sweep.refine.rounds if plan.sweep.refine else 0
    for number in range(rounds + 1):
        runs = [run for point in plan.points() for run in _of_point(plan, point, values)]
        if not runs:
            raise UsageError(f"{plan.path}: leave_out: leaves no point at all")
        if plan.sweep.refine is None or number == rounds or any(run.run_id not in values for run in runs):
            break
        plan.more.append(_between(plan, plan.sweep.refine, runs, values))
    return runs


def _of_point(plan: SweepPlan, point: Point, values: Values) -> list[SweepRun]:
    """Its replications: as many as the file says, or as the interval needs."""
    until = plan.sweep.until
    if until is None:
        return plan.runs(point, 0, plan.sweep.replications)
    runs = plan.runs(point, 0, max(min(FIRST, until.most), plan.sweep.replications))
    while all(run.run_id in values for run in runs) and not _enough(until, [values[run.run_id] for run in runs]):
        runs += plan.runs(point, len(runs), min(len(runs) * GROWTH, until.most) - len(runs))
    return runs


def _enough(until: Until, rows: Sequence[Mapping[str, float | None]]) -> bool:
    found = [value for row in rows if (value := row[until.metric]) is not None]
    # A point that never comes to a value would not with more seeds.
    if len(rows) >= until.most or not found:
        return True
    mean = fsum(found) / len(found)
    return len(found) >= 2 and half_width(found, until.confidence) <= until.width * abs(mean)


def half_width(values: Sequence[float], confidence: float) -> float:
    """Of the Student t interval of the mean of two or more values."""
    n = len(values)
    mean = fsum(values) / n
    return student_quantile(0.5 + confidence / 2, n - 1) * sqrt(fsum((value - mean) ** 2 for value in values) / (n - 1) / n)


def _between(plan: SweepPlan, refine: Refine, runs: Sequence[SweepRun], values: Values) -> tuple[Value, ...]:
    """New values in the middle of those neighbours between which the metric changes most, over everything else."""
    means = _means(refine, runs, values)
    axis = plan.sweep.axes[refine.axis]
    known = sorted({at for curve in means.values() for at in curve})
    steps = [(low, high, _change(means.values(), low, high)) for low, high in pairwise(known)]
    found: list[Value] = []
    for low, high, change in sorted(steps, key=lambda step: (-step[2], step[0])):
        middle = sqrt(low * high) if axis.scale == "log" else (low + high) / 2
        value = round(middle) if plan.axis_types[refine.axis] == "long" else float(f"{middle:.9g}")
        if change > 0 and low < value < high and len(found) < refine.points:
            found.append(value)
    return tuple(found)


def _means(refine: Refine, runs: Sequence[SweepRun], values: Values) -> dict[tuple[object, ...], dict[float, float]]:
    """The metric's mean along the axis, for each combination of everything else."""
    found: dict[tuple[object, ...], dict[float, list[float]]] = defaultdict(lambda: defaultdict(list))
    for run in runs:
        value = values[run.run_id][refine.metric]
        if value is not None:
            others = (run.point.case, *(other for name, other in run.point.values.items() if name != refine.axis))
            found[others][float(number_of(run.point.values[refine.axis]))].append(value)
    return {others: {at: fsum(all_) / len(all_) for at, all_ in curve.items()} for others, curve in found.items()}


def _change(curves: Iterable[Mapping[float, float]], low: float, high: float) -> float:
    gaps = [abs(curve[high] - curve[low]) for curve in curves if low in curve and high in curve]
    return fsum(gaps)
