"""Sequential stopping and refinement are deterministic functions of the rows."""

from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from experiments.statistics.intervals import mean_interval
from experiments.sweep.run.adaptive import planned_runs
from experiments.sweep.spec.grid import SweepPlan, SweepRun
from experiments.sweep.spec.quantities import number_of
from tests.experiments.sweep.files import plan_of

LOSS = "topology.link.down.loss"


def value(run: SweepRun) -> dict[str, float | None]:
    """Return a synthetic metric: noisy at high loss, with a step at 5 %."""
    loss = float(number_of(run.point.values[LOSS]))
    noise = (run.seed * 7919 % 101 / 100 - 0.5) * loss * 10
    return {"completion_time": 1.0 + noise, "overhead": 1.0 if loss < 0.05 else 9.0, "loss": None}


def run_to_the_end(plan: SweepPlan, at_once: int = 10**9) -> tuple[list[SweepRun], int]:
    """Return all runs of a sweep whose rows arrive in batches of `at_once`, and the number of decisions."""
    rows: dict[str, dict[str, float | None]] = {}
    for decisions in range(1, 1000):
        runs = planned_runs(plan, rows)
        new = [run for run in runs if run.run_id not in rows][:at_once]
        if not new:
            return runs, decisions
        rows.update((run.run_id, value(run)) for run in new)
    raise AssertionError("no end after 1000 decisions")


def counts(runs: list[SweepRun]) -> dict[Any, int]:
    return {number_of(run.point.values[LOSS]): sum(other.point == run.point for other in runs) for run in runs}


def test_points_are_replicated_until_the_interval_is_narrow(tmp_path: Path) -> None:
    until = {"metric": "completion_time", "width": 0.035, "most": 40}
    runs, _ = run_to_the_end(plan_of(tmp_path, axes={LOSS: [0, "2%", "30%"]}, replications=3, until=until))
    found = counts(runs)
    assert found[0] == 5
    assert 5 < found[0.02] < 40
    assert found[0.3] == 40
    low_loss = [float(value(run)["completion_time"] or 0) for run in runs if number_of(run.point.values[LOSS]) == 0.02]
    interval = mean_interval(fmean(low_loss), stdev(low_loss), len(low_loss), "positive")
    assert interval is not None
    assert interval.high - interval.low <= 2 * 0.035 * fmean(low_loss)


def test_a_point_whose_runs_do_not_vary_is_not_replicated_further(tmp_path: Path) -> None:
    until = {"metric": "nacks_sent", "width": 0.05, "most": 40}
    plan = plan_of(tmp_path, axes={LOSS: [0, "2%"]}, until=until)
    for same in (0.0, 3.0):
        rows = {run.run_id: {"nacks_sent": same} for run in planned_runs(plan, {})}
        assert len(planned_runs(plan, rows)) == len(rows) == 10


def test_a_point_without_any_value_is_not_replicated_further(tmp_path: Path) -> None:
    runs, _ = run_to_the_end(plan_of(tmp_path, axes={LOSS: [0.1]}, until={"metric": "loss", "width": 0.1}))
    assert len(runs) == 5


def test_refinement_adds_values_where_the_metric_changes(tmp_path: Path) -> None:
    refine = {"axis": LOSS, "metric": "overhead", "rounds": 3, "points": 1}
    runs, decisions = run_to_the_end(plan_of(tmp_path, axes={LOSS: [0, 0.02, 0.08]}, replications=2, refine=refine))
    assert list(counts(runs)) == [0, 0.02, 0.08, 0.05, 0.035, 0.0425]
    assert set(counts(runs).values()) == {2}
    assert [run.point.index for run in runs][::2] == [0, 1, 2, 3, 4, 5]
    assert decisions == 5


def test_refinement_adds_nothing_where_the_metric_is_constant(tmp_path: Path) -> None:
    runs, _ = run_to_the_end(plan_of(tmp_path, axes={LOSS: [0, 0.02]}, refine={"axis": LOSS, "metric": "overhead"}))
    assert list(counts(runs)) == [0, 0.02]


def test_added_values_respect_the_scale_and_whole_numbers(tmp_path: Path) -> None:
    axes = {
        LOSS: [0.01, 0.09],
        "n": {"key": "topology.receivers", "from": 1, "to": 100, "steps": 2, "scale": "log", "whole": True},
    }
    plan = plan_of(tmp_path, axes=axes, refine={"axis": "n", "metric": "completion_time", "rounds": 1})
    rows = {run.run_id: {"completion_time": float(number_of(run.point.values["n"]))} for run in planned_runs(plan, {})}
    assert [run.point.values["n"] for run in planned_runs(plan, rows)][4:] == [10, 10]


def test_interruptions_do_not_change_the_requested_runs(tmp_path: Path) -> None:
    keys: dict[str, Any] = {
        "axes": {LOSS: [0, 0.02, 0.08]},
        "until": {"metric": "completion_time", "width": 0.1, "most": 20},
        "refine": {"axis": LOSS, "metric": "overhead", "points": 2},
    }
    whole, _ = run_to_the_end(plan_of(tmp_path, **keys))
    for at_once in (1, 7):
        parts, _ = run_to_the_end(plan_of(tmp_path, **keys), at_once)
        assert [run.run_id for run in parts] == [run.run_id for run in whole]
