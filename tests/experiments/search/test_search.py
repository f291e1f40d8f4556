"""The search finds planted bugs and shrinks their plans, and a saved plan breaks the same rule every time."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from experiments.cli import invoke
from experiments.running.run import run
from experiments.scenario.scenario import load, parse
from experiments.search import plans as planning
from experiments.search.plans import random_plan
from experiments.search.search import BrokenRule, search, shrink
from protocols.errors import ConfigError
from protocols.rng import Rng
from tests.experiments.search.mutants import MUTANTS
from tests.support.registered import register

BASE: dict[str, Any] = {
    "name": "hunt",
    "topology": {"kind": "star", "receivers": 3, "link": {"rate": "10Mbit", "delay": "2ms"}},
    "protocol": {"name": "toy", "rate": "4Mbit"},
    "workload": {"size": "100kB"},
    "duration": "20s",
    "wire": "bytes",
}


@pytest.fixture(autouse=True)
def _mutants_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    register(monkeypatch, MUTANTS)


def scenario_for(name: str) -> dict[str, Any]:
    return {**BASE, "protocol": {**BASE["protocol"], "name": name}}


@pytest.mark.parametrize(
    ("name", "rule"),
    [("amnesiac", "once"), ("liar", "sent"), ("careless", "intact"), ("restless", "quiescence"), ("nervous", "raises")],
)
def test_planted_bugs_are_found_with_a_single_fault(name: str, rule: str) -> None:
    found = search(scenario_for(name), "hunt", runs=60, seed=1)
    assert found is not None
    assert found.verdict.rule == rule
    assert len(found.scenario["faults"]) == 1
    # No simpler plan breaks the rule, so the finding is its own minimal plan.
    assert search(found.scenario, "hunt", runs=1, seed=1) is not None


def test_a_correct_protocol_breaks_no_rule() -> None:
    assert search(BASE, "hunt", runs=60, seed=1) is None


def test_norm_breaks_no_rule() -> None:
    norm = {"name": "norm", "rate": "4Mbit", "grtt": "20ms", "cache_min": 2, "cache_max": 3, "window": 6, "robust": 5}
    work = {"size": "20kB", "count": 5}
    assert search({**BASE, "protocol": norm, "workload": work}, "hunt", runs=60, seed=2) is None


def test_a_finding_is_saved_as_a_scenario_that_reproduces_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, out = tmp_path / "hunt.yaml", tmp_path / "found.yaml"
    file.write_text(yaml.safe_dump(scenario_for("amnesiac")))
    assert invoke(["search", str(file), "--runs", "60", "--out", str(out), "--json"]) == 1
    output = json.loads(capsys.readouterr().out)
    assert (output["rule"], output["saved"]) == ("once", str(out))
    first, second = run(load(out)), run(load(out))
    assert first.fingerprint == second.fingerprint == output["fingerprint"]
    assert {row["rule"] for row in first.violations} == {"once"}
    assert invoke(["run", str(out)]) == 1
    assert "once: object 0 of sender 1 came twice" in capsys.readouterr().out.replace("\n", " ")


def test_a_search_without_findings_exits_with_code_0_and_saves_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, out = tmp_path / "hunt.yaml", tmp_path / "found.yaml"
    file.write_text(yaml.safe_dump(BASE))
    assert invoke(["search", str(file), "--runs", "3", "--out", str(out)]) == 0
    assert "nothing was broken" in capsys.readouterr().out
    assert not out.exists()


def test_incomplete_runs_are_findings_on_request() -> None:
    short = {**BASE, "duration": "100ms"}
    assert search(short, "hunt", runs=1, seed=1) is None
    found = search(short, "hunt", runs=1, seed=1, complete=True)
    assert found is not None
    assert found.verdict.rule == "complete"
    assert found.scenario["faults"] == []


def test_plans_depend_only_on_the_key_and_are_valid_scenarios() -> None:
    topology = parse(BASE, "hunt").build_topology()
    plans = [random_plan(Rng(key), topology, 2.0) for key in range(200)]
    assert plans == [random_plan(Rng(key), topology, 2.0) for key in range(200)]
    verbs = {next(verb for verb in planning._DRAW if verb in fault) for plan in plans for fault in plan}
    assert verbs == set(planning._DRAW)
    for plan in plans:
        try:
            parse({**BASE, "faults": plan}, "hunt")
        except ConfigError as error:
            pytest.fail(f"{plan}: {error}")


def test_shrinking_keeps_the_faults_that_are_needed() -> None:
    def check(plan: list[dict[str, Any]]) -> BrokenRule | None:
        long = [fault for fault in plan if "crash" in fault and fault["for"] >= 0.1]
        return BrokenRule("once", "", None) if len(long) >= 2 else None

    plan = [{"at": 0.123456, "crash": f"r{n}", "for": 0.7} for n in range(1, 4)] + [{"at": 1.0, "step": "r1", "forward": "1s"}]
    small, _, _ = shrink(plan, BrokenRule("once", "", None), check)
    assert len(small) == 2
    assert all(0.1 <= fault["for"] <= 0.2 and fault["at"] <= 0.001 for fault in small)


@pytest.mark.parametrize("receivers", [3, 40])
def test_both_engines_report_a_machine_that_never_rests_alike(receivers: int) -> None:
    lossy = {"kind": "star", "receivers": receivers, "link": {**BASE["topology"]["link"], "down": {"loss": "5%"}}}
    restless = {**scenario_for("restless"), "topology": lossy}
    found = [run(parse({**restless, "engine": engine}, "hunt")) for engine in ("fast", "strict")]
    fast, strict = [result.metrics["invariants"] for result in found]
    assert [violation["rule"] for violation in fast["violations"]] == ["quiescence"]
    assert fast == strict
