"""Join the runs of two sweeps at the points they share, as one set of runs with the sweep as another axis."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import and_
from pathlib import Path
from typing import Any

from experiments.analysis.paired_variants import VariantDifference, compare_variants
from experiments.analysis.runs import Runs, axis_column, metric_column, open_runs
from experiments.analysis.summary import sort_key, summarise
from protocols.errors import UsageError
from topologies.names import first_names

__all__ = ["SWEEP", "PairedSweeps", "open_pair", "paired_differences"]

SWEEP = "sweep"
"""Name of the axis whose two values are the sweeps."""
SHARED = ("run_id", "case", "seed", "status", "error", "cpu_s", "duration_s", "started", "machine", "point")
"""Columns that every sweep has, beside its axes and metrics."""


@dataclass(slots=True)
class PairedSweeps:
    """Two sweeps, A and B: their runs at shared points, and the number of points that only one of them has.

    Differences of B to A are paired by seed: `overall`, of all pairs, and `by_point`. `means` are those of A by metric.
    """

    folders: tuple[Path, Path]
    names: tuple[str, str]
    sides: tuple[Runs, Runs]
    runs: Runs
    alone: tuple[int, int]
    overall: list[VariantDifference] = field(default_factory=list)
    by_point: list[VariantDifference] = field(default_factory=list)
    means: dict[str, float] = field(default_factory=dict)


def open_pair(session: Any, folders: tuple[Path, Path], versions: tuple[str | None, str | None]) -> PairedSweeps:
    """Open the runs of both sweeps; UsageError if both are the same, no run of one succeeded, or they share no points."""
    first, second = folders
    sides = open_runs(session, first, versions[0]), open_runs(session, second, versions[1])
    if first.resolve() == second.resolve() and sides[0].version == sides[1].version:
        more = ", ".join(sides[0].versions)
        raise UsageError(f"{second}: these are the runs of {first}; name another sweep, or two --version OLD,NEW of: {more}")
    for folder, side in zip(folders, sides, strict=True):
        side.check_some_succeeded(folder)
    _check_axes(folders, sides)
    names = _names(folders, sides)
    metrics = tuple(name for name in sides[0].metrics if name in sides[1].metrics)
    points = _points(sides[0]), _points(sides[1])
    shared = points[0].keys() & points[1].keys()
    if not shared:
        raise UsageError(f"{first} and {second} share no points; {_reason(sides)}")
    if not any(points[0][point] & points[1][point] for point in shared):
        raise UsageError(f"{first} and {second} share no seeds; runs are compared in pairs of one point and seed")
    frames = [_side(side, other, name, metrics) for side, other, name in zip(sides, sides[::-1], names, strict=True)]
    frame = frames[0].unionByName(frames[1])
    version = " and ".join(dict.fromkeys(side.version for side in sides))
    runs = Runs(frame, (*sides[0].axes, SWEEP), metrics, frame.count(), frame.where("status != 'ok'").count(), version, ())
    return PairedSweeps(folders, names, sides, runs, (len(points[0]) - len(shared), len(points[1]) - len(shared)))


def paired_differences(pair: PairedSweeps, metrics: Sequence[str]) -> PairedSweeps:
    """Fill in the differences of B to A for these metrics and return the pair."""
    axes = [name for name in pair.runs.axes if name != SWEEP]
    base = pair.names[0]
    pair.overall = compare_variants(pair.runs, SWEEP, metrics, (), base)
    pair.by_point = compare_variants(pair.runs, SWEEP, metrics, axes, base) if axes else pair.overall
    pair.means = {
        group.metric: group.mean
        for group in summarise(pair.runs, [SWEEP], metrics, percentiles=(50,), resamples=0)
        if group.keys[SWEEP] == base
    }
    return pair


def _check_axes(folders: tuple[Path, Path], sides: tuple[Runs, Runs]) -> None:
    """Raise UsageError unless both sweeps vary the same keys."""
    written = [", ".join(side.axes) or "none" for side in sides]
    if set(sides[0].axes) != set(sides[1].axes):
        raise UsageError(
            f"{folders[0]} and {folders[1]} share no points; the axes of the first are {written[0]}, of the second {written[1]}"
        )
    if SWEEP in sides[0].axes:
        raise UsageError(f"{folders[0]}: has an axis {SWEEP!r}, so its sweeps can't be told apart; give it another name")


def _names(folders: tuple[Path, Path], sides: tuple[Runs, Runs]) -> tuple[str, str]:
    """Return how figures call the sweeps: by their folders, or by the versions of the code in one folder."""
    words = [folder.resolve().name for folder in folders]
    if words[0] == words[1]:
        words = [side.version for side in sides]
    if words[0] == words[1]:
        words = [str(folder) for folder in folders]
    return f"A: {words[0]}", f"B: {words[1]}"


def _points(side: Runs) -> Mapping[tuple[Any, ...], set[int]]:
    """Return the seeds of successful runs at each point; a point is the values of the axes, in order of their names."""
    found: dict[tuple[Any, ...], set[int]] = {}
    for *values, seed in side.ok.select(*map(axis_column, sorted(side.axes)), "seed").collect():
        found.setdefault(tuple(values), set()).add(seed)
    return found


def _reason(sides: tuple[Runs, Runs]) -> str:
    """Name an axis on which the sweeps have no common value, with the values of both."""
    names = sorted(sides[0].axes)
    every = [[set(values) for values in zip(*_points(side), strict=True)] or [set()] * len(names) for side in sides]
    for name, one, other in zip(names, *every, strict=True):
        if not one & other:
            return f"{name} is {_listed(one)} in the first and {_listed(other)} in the second"
    return "no combination of their axes' values is in both"


def _listed(values: set[Any]) -> str:
    return first_names(sorted(values, key=sort_key), 5)


def _side(side: Runs, other: Runs, name: str, metrics: Sequence[str]) -> Any:
    """Return the runs of one sweep at the points of the other, with their sweep's name."""
    from pyspark.sql import functions as f

    axes = [axis_column(axis) for axis in side.axes]
    there = [name for name in SHARED if name not in axes]
    frame = side.frame.select(*there, *axes, *map(metric_column, metrics)).withColumn(axis_column(SWEEP), f.lit(name))
    points = other.ok.select(*(f.col(axis).alias(f"_{axis}") for axis in axes)).distinct()
    if not axes:
        return frame
    return frame.join(points, reduce(and_, (f.col(axis).eqNullSafe(f.col(f"_{axis}")) for axis in axes)), "left_semi")
