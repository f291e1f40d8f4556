"""Run ids: equal for equal meaning, different otherwise."""

from pathlib import Path
from typing import Any

import pytest

from experiments.running.run import run
from experiments.scenario.scenario import parse
from experiments.sweep.run.adaptive import planned_runs
from experiments.sweep.run.single_run import perform
from experiments.sweep.spec import code_version as code_version_module
from experiments.sweep.spec import grid
from experiments.sweep.spec.code_version import code_version, sources
from tests.experiments.sweep.files import plan_of

LOSS = "topology.link.down.loss"


def ids(folder: Path, **keys: Any) -> list[str]:
    return [run.run_id for run in planned_runs(plan_of(folder, **keys), {})]


def test_every_run_has_a_unique_id(tmp_path: Path) -> None:
    named = ids(tmp_path, axes={LOSS: [0.0, 0.01]}, replications=3)
    assert len(set(named)) == 6


def test_ids_do_not_depend_on_the_notation_of_values(tmp_path: Path) -> None:
    assert ids(tmp_path, axes={LOSS: ["1%"]}) == ids(tmp_path, axes={"p": {"key": LOSS, "values": [0.01]}})


def test_a_run_of_a_sweep_is_the_run_of_its_scenario_also_where_the_order_of_keys_decides(tmp_path: Path) -> None:
    scenario = {
        "topology": {"kind": "star", "receivers": 2, "link": {"rate": "100Mbit", "down": {"loss": "2%"}}},
        "protocol": {"name": "distributor", "rate": "20Mbit", "segment": 1400},
        "workload": [
            # A number and text as keys; in alphabetical order the weights would select other sizes.
            {"kind": "publish", "hosts": ["sender"], "to": "/q", "size": {50: 3, "4kB": 1}, "rate": "100/s", "count": 50},
            {"kind": "subscribe", "hosts": ["r1", "r2"], "to": ["/q"]},
        ],
        "duration": "20s",
    }
    (planned,) = planned_runs(plan_of(tmp_path, scenario=scenario), {})
    job = {"scenario": planned.scenario, "backend": "sim", "receivers": False, "series": None, "captures": []}
    assert perform(job)["fingerprint"] == run(parse({"name": "small", **scenario}, "scenario"), "sim").fingerprint


def test_additional_values_and_seeds_do_not_change_ids(tmp_path: Path) -> None:
    few = ids(tmp_path, axes={LOSS: [0.0, 0.01]}, replications=2)
    assert set(few) < set(ids(tmp_path, axes={LOSS: [0.02, 0.01, 0.0]}, replications=3))


@pytest.mark.parametrize(
    "keys", [{"seed": 2}, {"keep": {"series": "1s"}}, {"keep": {"receivers": False}}, {"set": {"duration": 5}}]
)
def test_another_seed_scenario_or_recording_is_another_run(keys: dict[str, Any], tmp_path: Path) -> None:
    assert ids(tmp_path) != ids(tmp_path, **keys)


def test_points_with_equal_scenarios_have_runs_of_their_own(tmp_path: Path) -> None:
    cases = {"default": {}, "the same": {"protocol.parity": 16}, "also": {"protocol.parity": 16}, "arq": {"protocol.parity": 0}}
    named = ids(tmp_path, cases=cases, replications=2)
    assert len(set(named)) == 8
    assert named[:2] == ids(tmp_path, replications=2)
    plan = plan_of(tmp_path, cases=cases, replications=2)
    assert [run.run_id for run in planned_runs(plan, {})] == [run.run_id for run in planned_runs(plan, {})] == named


def test_another_version_of_the_code_is_another_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = ids(tmp_path)
    monkeypatch.setattr(grid, "code_version", lambda: "0.1.0+other")
    assert ids(tmp_path) != before


def test_the_version_covers_exactly_the_imports_of_a_run() -> None:
    found = sources()
    for name in (
        "protocols.norm.sender",
        "sim.network",
        "topologies.channels",
        "experiments.running.run",
        "experiments.sweep.spec.metrics",
    ):
        assert name in found
    for name in (
        "experiments.cli",
        "experiments.commands.sweep",
        "experiments.sweep.run.spark_session",
        "experiments.drawing.svg",
    ):
        assert name not in found


def test_changed_source_is_another_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    changed = tmp_path / "sender.py"
    changed.write_text(sources()["protocols.norm.sender"].read_text() + "\n")
    monkeypatch.setattr(code_version_module, "sources", lambda entry: {**sources(entry), "protocols.norm.sender": changed})
    assert code_version.__wrapped__() != code_version()
