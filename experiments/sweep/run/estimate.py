"""Estimate the cost of a sweep from a few timed runs."""

import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from experiments.output.counted import counted
from experiments.running.child_process import ChildProcess
from experiments.sweep.run.adaptive import deciding_metrics, planned_runs
from experiments.sweep.run.calibration import LIMIT, calibrate
from experiments.sweep.run.driver import missing_runs
from experiments.sweep.run.single_run import perform
from experiments.sweep.run.spark_servers import address, servers
from experiments.sweep.run.task_packing import pack
from experiments.sweep.spec.grid import SweepPlan
from experiments.sweep.store.datasets import metric_values, stored_runs
from topologies.units import format_duration, format_size

__all__ = ["CostEstimate", "estimate_cost", "show"]

ROW, RECEIVER = 400, 40
"""Measured bytes on disk of a run's metrics and of a receiver's, compressed."""
SHOWN = 5
START, WARM_START, TASK, FINISH = 8.0, 0.8, 0.05, 1.5
"""Measured seconds of a sweep beside its runs: start of Spark, or joining one that runs; the gap between two tasks of a core;
counting, and writing receivers and series as data sets of their own.
"""


@dataclass(frozen=True, slots=True)
class CostEstimate:
    """Estimated cost of the missing runs of a sweep.

    `wall_s` is all that the command takes; of it `spark_s` is not runs: start of Spark, gaps between tasks, count, writing.
    """

    name: str
    version: str
    points: int
    runs: int
    missing: int
    cpu_s: float
    wall_s: float
    spark_s: float
    disk_bytes: int
    tried: int
    first: tuple[str, ...]
    most_runs: int
    idle_conditions: tuple[str, ...]
    """The conditions of `leave_out` that leave out no point."""

    def plain(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return asdict(self)


def estimate_cost(plan: SweepPlan, folder: Path) -> CostEstimate:
    """Time three runs for at most three seconds each, and extrapolate to all missing runs by weight."""
    runs = planned_runs(plan, metric_values(folder, deciding_metrics(plan)))
    todo = missing_runs(runs, stored_runs(folder))
    with ChildProcess(perform, min(LIMIT, plan.sweep.time_limit), plan.sweep.memory) as child:
        calibration = calibrate(child, todo)
    costs, cores = [calibration.cost(run) for run in todo], os.cpu_count() or 1
    cpu, spark = sum(costs), _spark_seconds(costs, cores) if todo else 0.0
    rows = sum(run.receivers for run in todo) if plan.sweep.keep.receivers else 0
    return CostEstimate(
        name=plan.sweep.name,
        version=plan.version,
        points=len({run.point.index for run in runs}),
        runs=len(runs),
        missing=len(todo),
        cpu_s=round(cpu, 3),
        wall_s=round(spark + max(cpu / cores, max(costs, default=0.0)), 3),
        spark_s=round(spark, 3),
        disk_bytes=ROW * len(todo) + RECEIVER * rows,
        tried=calibration.tried,
        first=tuple(f"{run.point}, seed {run.seed}" for run in todo[:SHOWN]),
        most_runs=plan.most_runs if deciding_metrics(plan) else len(runs),
        idle_conditions=plan.idle_conditions(),
    )


def _spark_seconds(costs: Sequence[float], cores: int) -> float:
    """Estimate the seconds a sweep takes beside its runs on this machine, where its Spark runs already or does not."""
    tasks = max(pack(costs, cores)) + 1
    start = WARM_START if any(path == address() for path in servers()) else START
    return start + TASK * tasks / cores + FINISH


def show(cost: CostEstimate) -> str:
    """Format the estimate as text."""
    runs = counted(cost.runs, "run")
    lines = [f"{cost.name}: {counted(cost.points, 'point')}, {runs}, {cost.missing} missing (version {cost.version})"]
    if cost.most_runs > cost.runs:
        lines[0] += f"; results may add runs, up to {cost.most_runs} in total"
    lines += [f"leave_out: {condition!r} leaves out no point" for condition in cost.idle_conditions]
    if cost.missing:
        cpu, wall = format_duration(float(f"{cost.cpu_s:.2g}")), format_duration(float(f"{cost.wall_s:.2g}"))
        spark = format_duration(float(f"{cost.spark_s:.2g}"))
        lines.append(
            f"about {cpu} of CPU time, {wall} on this machine ({spark} of it for Spark), {format_size(cost.disk_bytes)} on disk"
        )
        lines.append(f"(estimated from {counted(cost.tried, 'run', more='timed')})")
        lines += [f"  {first}" for first in cost.first]
        lines += ["  ..."] if cost.missing > len(cost.first) else []
    return "\n".join(lines)
