"""What a sweep would cost, without running it: a few of its runs are tried."""

import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from experiments.sweep.run.conduct import missing_runs
from experiments.sweep.run.costs import calibrate
from experiments.sweep.run.guard import Guard
from experiments.sweep.run.rounds import asked_metrics, wanted
from experiments.sweep.run.work import perform
from experiments.sweep.spec.grid import SweepPlan
from experiments.sweep.store.datasets import known_runs, metric_values
from topologies.units import format_duration, format_size

__all__ = ["Estimate", "estimate", "show"]

ROW, RECEIVER = 400, 40
"""Bytes on disk of a run's metrics, and of a receiver's: compressed, as measured."""
SHOWN = 5


@dataclass(frozen=True, slots=True)
class Estimate:
    """Of the runs that are not there yet."""

    name: str
    version: str
    points: int
    runs: int
    missing: int
    cpu_s: float
    wall_s: float
    disk_bytes: int
    tried: int
    first: tuple[str, ...]
    most_runs: int

    def plain(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


def estimate(plan: SweepPlan, folder: Path) -> Estimate:
    """Try three runs for at most three seconds each, and conclude from their size to all."""
    runs = wanted(plan, metric_values(folder, asked_metrics(plan)))
    todo = missing_runs(runs, known_runs(folder))
    with Guard(perform, min(3.0, plan.sweep.time_limit), plan.sweep.memory) as guard:
        calibration = calibrate(guard, todo)
    cpu = sum(map(calibration.cost, todo))
    rows = sum(run.receivers for run in todo) if plan.sweep.keep.receivers else 0
    return Estimate(
        name=plan.sweep.name,
        version=plan.version,
        points=len({run.point.index for run in runs}),
        runs=len(runs),
        missing=len(todo),
        cpu_s=round(cpu, 3),
        wall_s=round(cpu / (os.cpu_count() or 1), 3),
        disk_bytes=ROW * len(todo) + RECEIVER * rows,
        tried=calibration.tried,
        first=tuple(f"{run.point}, seed {run.seed}" for run in todo[:SHOWN]),
        most_runs=plan.most_runs if asked_metrics(plan) else len(runs),
    )


def show(told: Estimate) -> str:
    """For people."""
    lines = [f"{told.name}: {told.points} points, {told.runs} runs, {told.missing} to make (version {told.version})"]
    if told.most_runs > told.runs:
        lines[0] += f"; results decide about more, up to {told.most_runs} in all"
    if told.missing:
        cpu, wall = format_duration(float(f"{told.cpu_s:.2g}")), format_duration(float(f"{told.wall_s:.2g}"))
        lines.append(f"about {cpu} of processor time, {wall} on this machine, {format_size(told.disk_bytes)} on disk")
        lines.append(f"(from {told.tried} runs that were tried)")
        lines += [f"  {first}" for first in told.first]
        lines += ["  ..."] if told.missing > len(told.first) else []
    return "\n".join(lines)
