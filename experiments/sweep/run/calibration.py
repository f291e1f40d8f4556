"""Estimate the cost of runs: time a few and scale by their weight."""

from collections.abc import Sequence
from dataclasses import dataclass

from experiments.running.child_process import ChildProcess, RunOutcome
from experiments.sweep.spec.grid import SweepRun

__all__ = ["DEFAULT_SECONDS_PER_WEIGHT", "LIMIT", "Calibration", "calibrate"]

DEFAULT_SECONDS_PER_WEIGHT = 5e-7
"""Seconds per unit of weight if no run was timed; measured on a machine of 2024."""
LIMIT = 3.0
"""Seconds that a timed run may take."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """Seconds per unit of weight, estimated from `tried` timed runs."""

    per_weight: float
    tried: int

    def cost(self, run: SweepRun) -> float:
        """Return the estimated seconds of a run."""
        return run.weight * self.per_weight


def calibrate(child: ChildProcess, runs: Sequence[SweepRun]) -> Calibration:
    """Time a small, a median and a large run; one that exceeds the limit counts with the time it had."""
    ordered = sorted(runs, key=lambda run: run.weight)
    chosen = [ordered[int(part * (len(ordered) - 1))] for part in (0.1, 0.5, 0.9)] if ordered else []
    spent, weight = 0.0, 0.0
    tried = 0
    for run in {run.run_id: run for run in chosen}.values():
        outcome = child.run(_job(run))
        if outcome.status in ("ok", "timeout"):
            spent, weight, tried = spent + _seconds(outcome), weight + run.weight, tried + 1
    return Calibration(spent / weight if weight else DEFAULT_SECONDS_PER_WEIGHT, tried)


def _seconds(outcome: RunOutcome) -> float:
    return outcome.cpu if outcome.status == "ok" else outcome.duration


def _job(run: SweepRun) -> dict[str, object]:
    return {"scenario": run.scenario, "backend": run.backend, "receivers": False, "series": None, "captures": (), "folder": ""}
