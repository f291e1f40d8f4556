"""A scenario with cases is several scenarios, all checked before the first one runs."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from experiments.cli import invoke
from experiments.running.run import default_backend
from experiments.scenario.cases import load_cases
from experiments.scenario.scenario import load
from protocols.errors import ConfigError

WHOLE: dict[str, Any] = {
    "name": "whole",
    "topology": {"kind": "star", "receivers": 2},
    "protocol": {"name": "norm", "rate": "20Mbit", "robust": 5, "grtt": "10ms"},
    "workload": {"kind": "file", "size": "20kB"},
    "compare": {"few": {}, "many": {"topology": {"receivers": 3}}, "other": {"name": "another", "seed": 7}},
}
BAKEOFF = Path(__file__).parents[3] / "experiments" / "scenarios" / "bakeoff-nrl.yaml"


def written(folder: Path, **changes: Any) -> Path:
    """Write a scenario file."""
    path = folder / "whole.yaml"
    path.write_text(yaml.safe_dump(WHOLE | changes))
    return path


def test_a_case_is_the_scenario_with_replaced_values(tmp_path: Path) -> None:
    cases = load_cases(written(tmp_path), ["protocol.parity=3"])
    assert {name: case.name for name, case in cases.items()} == {"few": "whole-few", "many": "whole-many", "other": "another"}
    assert [len(case.build_topology().hosts) for case in cases.values()] == [3, 4, 3]
    assert [case.seed for case in cases.values()] == [1, 1, 7]
    assert {case.protocol.config.parity for case in cases.values()} == {3}
    assert all(not case.compare for case in cases.values())


def test_a_case_replaces_values_by_their_paths_as_well(tmp_path: Path) -> None:
    by_path: dict[str, Any] = {
        "topology.receivers": 3,
        "protocol": {"parity": 2},
        "protocol.name": "a",
        "workload.size": "10kB",
    }
    nested: dict[str, Any] = {
        "topology": {"receivers": 3},
        "protocol": {"parity": 2, "name": "a"},
        "workload": {"size": "10kB"},
    }
    with pytest.raises(
        ConfigError, match=r"compare\.one: protocol\.parity: value 2 is not allowed; unknown key, known here: name"
    ):
        load_cases(written(tmp_path, compare={"one": by_path}))
    del by_path["protocol"], nested["protocol"]["parity"]
    cases = load_cases(written(tmp_path, compare={"one": by_path, "two": nested | {"name": "whole-one"}}))
    assert cases["one"] == cases["two"]


def test_a_path_in_a_case_may_lead_into_a_list(tmp_path: Path) -> None:
    path = written(tmp_path, workload=[WHOLE["workload"]], compare={"large": {"workload.0.size": "1MB"}})
    assert load_cases(path)["large"].files[0].size == 1_000_000


def test_a_scenario_without_cases_is_its_only_case(tmp_path: Path) -> None:
    path = written(tmp_path, compare={})
    assert load_cases(path) == {"": load(path)}


def test_cases_do_not_change_the_digest_of_the_whole(tmp_path: Path) -> None:
    assert load(written(tmp_path)).digest() == load(written(tmp_path, compare={})).digest()


@pytest.mark.parametrize(
    ("cases", "words"),
    [
        ({"a": {"topology": {"receivers": 0}}}, r"compare\.a: topology\.receivers: value 0"),
        ({"a": {"nonsense": 1}}, r"compare\.a: nonsense: value 1"),
        ({"a b": {}}, r"compare\.a b"),
        ({"a": 5}, r"compare\.a: value 5"),
        ({"a": {"compare": {}}}, r"compare\.a\.compare"),
        ({"a": {"compare.b": {}}}, r"compare\.a\.compare"),
        ({"a": {"workload.1.size": 1}}, r"compare\.a: workload\.1: value \{'size': 1\} is not allowed; unknown key"),
        (
            {"a": {"name.size": 1}},
            r"compare\.a\.name\.size: 'name\.size=1' is not allowed; above 'size' stands the value 'whole'",
        ),
    ],
)
def test_an_error_in_a_case_names_the_case(cases: Any, words: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=words):
        load_cases(written(tmp_path, compare=cases))


def test_the_command_runs_all_cases(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, out = written(tmp_path), tmp_path / "out"
    assert invoke(["run", str(path), "--json", "--out", str(out)]) == 0
    output = json.loads(capsys.readouterr().out)["cases"]
    assert {name: len(result["receivers"]) for name, result in output.items()} == {"few": 2, "many": 3, "other": 2}
    assert all(json.loads((out / name / "result.json").read_text()) == result for name, result in output.items())
    assert invoke(["run", str(path)]) == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in ("whole (seed 1)", "few", "many", "other"))
    assert invoke(["run", str(path), "--trace", str(tmp_path / "t")]) == 2
    assert "several cases" in capsys.readouterr().err


def test_a_scenario_with_foreign_programs_defaults_to_mininet() -> None:
    assert default_backend(load_cases(BAKEOFF).values()) == "emu"
    assert default_backend([load(BAKEOFF)]) == "sim"


@pytest.mark.emu
@pytest.mark.peer
def test_two_implementations_interoperate_in_all_combinations(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["run", str(BAKEOFF), "--json", "--set", "workload.size=400kB"]) == 0
    output = json.loads(capsys.readouterr().out)["cases"]
    assert list(output) == ["ours-to-nrl", "nrl-to-ours", "ours-to-ours", "nrl-to-nrl"]
    for name, result in output.items():
        assert (result["backend"], result["completed"], result["metrics"]["faults"]) == ("emu", True, {}), name
        assert [row["bytes"] for row in result["receivers"]] == [400_000] * 4
        assert {row["proof"] for row in result["receivers"]} == {"sha256"}
        assert result["metrics"]["repairs_sent"] > 0
