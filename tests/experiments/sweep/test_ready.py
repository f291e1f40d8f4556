"""The sweeps that come with the project are valid."""

from pathlib import Path

import pytest

from experiments.sweep.run.adaptive import planned_runs
from experiments.sweep.spec.grid import SweepPlan
from experiments.sweep.spec.sweep_file import load_sweep
from tests.tidy.tree import ROOT, label

READY = [*sorted((ROOT / "experiments" / "sweeps").glob("*.yaml")), ROOT / "examples" / "first-sweep.yaml"]


@pytest.mark.parametrize("path", READY, ids=label)
def test_every_point_of_a_ready_sweep_is_a_valid_scenario(path: Path) -> None:
    plan = SweepPlan(load_sweep(path), path)
    assert plan.sweep.name == path.stem
    assert len({run.run_id for run in planned_runs(plan, {})}) <= plan.most_runs


def test_the_documentation_shows_the_first_sweep_verbatim() -> None:
    text = (ROOT / "examples" / "first-sweep.yaml").read_text(encoding="utf-8")
    assert text[text.index("\nname: ") :] in (ROOT / "docs" / "experiments.md").read_text(encoding="utf-8")
