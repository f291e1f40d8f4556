"""Plan the runs of a sweep from the results so far: sequential stopping, and refinement of an axis.

Plans depend only on stored rows, taken in order of seeds, so that an interrupted sweep arrives at the same runs.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from math import fsum, sqrt
from statistics import fmean, stdev
from typing import TypeAlias

from experiments.statistics.intervals import does_not_vary, mean_interval
from experiments.sweep.spec.grid import Point, SweepPlan, SweepRun
from experiments.sweep.spec.metrics import METRICS
from experiments.sweep.spec.quantities import Value, number_of
from experiments.sweep.spec.sweep_file import Refine, Until
from protocols.errors import UsageError

__all__ = ["Values", "deciding_metrics", "planned_runs"]

Values: TypeAlias = Mapping[str, Mapping[str, float | None]]
"""run_id -> metric -> value of every run that has a row; None where the run has no value."""
FIRST, GROWTH = 5, 2
"""Replications before the first test, and their growth factor until the next; testing more often stops too early by chance."""


def deciding_metrics(plan: SweepPlan) -> list[str]:
    """Return the metrics that decide about further runs."""
    return [rule.metric for rule in (plan.sweep.until, plan.sweep.refine) if rule is not None]


def planned_runs(plan: SweepPlan, values: Values) -> list[SweepRun]:
    """Return every run the sweep consists of, given the results so far; when all of them have rows, the sweep is complete.

    Sets `plan.more`. Raises UsageError if conditions exclude every point.
    """
    plan.more.clear()
    rounds = plan.sweep.refine.rounds if plan.sweep.refine else 0
    for number in range(rounds + 1):
        runs = [run for point in plan.points() for run in _replications(plan, point, values)]
        if not runs:
            raise UsageError(f"{plan.path}: leave_out: excludes every point")
        if plan.sweep.refine is None or number == rounds or any(run.run_id not in values for run in runs):
            break
        plan.more.append(_refined_values(plan, plan.sweep.refine, runs, values))
    return runs


def _replications(plan: SweepPlan, point: Point, values: Values) -> list[SweepRun]:
    """Return the replications of a point: the number in the file, or as many as the confidence interval needs."""
    until = plan.sweep.until
    if until is None:
        return plan.runs(point, 0, plan.sweep.replications)
    runs = plan.runs(point, 0, max(min(FIRST, until.most), plan.sweep.replications))
    while all(run.run_id in values for run in runs) and not _precise_enough(until, [values[run.run_id] for run in runs]):
        runs += plan.runs(point, len(runs), min(len(runs) * GROWTH, until.most) - len(runs))
    return runs


def _precise_enough(until: Until, rows: Sequence[Mapping[str, float | None]]) -> bool:
    found = [value for row in rows if (value := row[until.metric]) is not None]
    # More seeds do not help a point without any value.
    if len(rows) >= until.most or not found:
        return True
    if len(found) < 2:
        return False
    mean, sd = fmean(found), stdev(found)
    # Runs that do not vary are as precise as they can be, also those that all counted nothing.
    if does_not_vary(mean, sd):
        return True
    metric = METRICS[until.metric]
    top = max(found) if metric.of is not None else 1.0
    interval = mean_interval(mean, sd, len(found), metric.kind, until.confidence, top)
    return interval is not None and interval.high - interval.low <= 2 * until.width * abs(mean)


def _refined_values(plan: SweepPlan, refine: Refine, runs: Sequence[SweepRun], values: Values) -> tuple[Value, ...]:
    """Return new values midway between those neighbours on the axis across which the metric changes most."""
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
    """Return the mean of the metric along the axis, per combination of all other axes."""
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
