"""Ready scenarios by name."""

import json
from pathlib import Path

import pytest

from experiments.cli import invoke
from experiments.scenario.ready import find_scenario, ready_scenarios
from protocols.errors import UsageError


def test_every_ready_scenario_has_a_description() -> None:
    assert all(20 < len(item.about) < 300 for item in ready_scenarios().values())


def test_ready_scenarios_are_listed_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["scenarios"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith("lan-file ") and "LAN" in line for line in lines)
    assert invoke(["scenarios", "--json"]) == 0
    assert {"lan-file", "twin/lan-1"} <= {item["name"] for item in json.loads(capsys.readouterr().out)}


@pytest.mark.parametrize("command", [["topo", "wan", "--svg", "net.svg"], ["search", "lan-file", "--runs", "1"]])
def test_commands_accept_names_of_ready_scenarios(command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert invoke(command) == 0


def test_a_file_of_the_same_name_takes_precedence(tmp_path: Path) -> None:
    (tmp_path / "lan-file").write_text("name: mine")
    assert find_scenario("lan-file", tmp_path) == tmp_path / "lan-file"


def test_a_mistyped_name_is_a_one_line_error_with_the_nearest_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["run", "lan-fill"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(
        "mcastlab: scenario: value 'lan-fill' is not allowed; neither a file nor a ready one (near: lan-file"
    )


def test_without_a_similar_name_the_error_names_the_command_that_lists_all() -> None:
    with pytest.raises(UsageError, match="mcastlab scenarios lists them"):
        find_scenario("zzzzzz")
