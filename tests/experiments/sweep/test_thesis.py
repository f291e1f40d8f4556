"""The sweeps of the thesis: every file is valid, and a short run of each of its cases gives what its figure shows."""

import json
from pathlib import Path
from typing import Any

import pytest

from experiments.sweep.run.single_run import perform
from experiments.sweep.spec.grid import Point, SweepPlan
from experiments.sweep.spec.sweep_file import BACKEND, load_sweep
from tests.tidy.tree import ROOT, label

FILES = sorted((ROOT / "experiments" / "sweeps" / "thesis").glob("*.yaml"))
SHORT = 0.04
"""Seconds in which messages are published."""
COUNT = 30
"""Messages at the most: a saturated publisher fills its queue at once."""
NOTHING_KEPT = {"receivers": False, "series": None, "captures": (), "folder": ""}
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")


def first_points(plan: SweepPlan) -> list[Point]:
    """Return the first point of each case in each world."""
    found: dict[tuple[str | None, object], Point] = {}
    for point in plan.points():
        found.setdefault((point.case, point.values.get(BACKEND)), point)
    return list(found.values())


def short(written: str) -> str:
    """Return a scenario, as JSON, in which the first workload ends soon."""
    data: dict[str, Any] = json.loads(written)
    work = data["workload"][0]
    begins = float(work["at"].removesuffix("ms")) / 1e3 if work["at"].endswith("ms") else float(work["at"].removesuffix("s"))
    # What comes at a rate needs longer than what comes as fast as it can.
    seconds = SHORT if work["rate"] == "saturated" else 1.0
    work |= {"until": f"{begins + seconds}s", "linger": "100ms", "count": COUNT}
    return json.dumps(data)


@pytest.mark.parametrize("path", FILES, ids=label)
def test_a_short_run_of_each_case_has_every_metric_of_its_figure(path: Path) -> None:
    plan = SweepPlan(load_sweep(path), path)
    assert plan.sweep.name == f"thesis-{path.stem}"
    assert plan.sweep.metrics
    for point in first_points(plan):
        (run,) = plan.runs(point, 0, 1)
        if point.values.get(BACKEND) == "emu":
            continue
        metrics = perform({"scenario": short(run.scenario), "backend": "sim"} | NOTHING_KEPT)["metrics"]
        missing = [name for name in plan.sweep.metrics if metrics[name] is None]
        assert not missing, (point.case, missing)
        assert metrics["delivered"] > 0, point.case


def test_make_runs_every_sweep_of_the_thesis() -> None:
    (line,) = (line for line in MAKEFILE.splitlines() if line.startswith("THESIS :="))
    assert sorted(line.removeprefix("THESIS :=").split()) == [path.stem for path in FILES]
