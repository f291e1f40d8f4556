"""What `mcastlab doctor SCENARIO` prints: each case by its name, and commands that can be pasted."""

import shlex
from pathlib import Path

import pytest

from experiments.cli import invoke

SCENARIO = """
name: two
topology: {kind: star, receivers: 2, link: {rate: 100Mbit, down: {loss: 5%}}}
protocol: {name: norm, rate: 10Mbit, grtt: 500ms}
workload: {size: 1MB}
compare: {a: {}, b: {protocol.parity: 0}}
"""


def test_a_command_repeats_what_was_replaced_and_is_quoted_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "two words.yaml"
    path.write_text(SCENARIO.partition("compare:")[0])
    sets = ["--set", "topology.receivers=3", "--set", "protocol.grtt=400ms"]
    assert invoke(["doctor", str(path), "--wide", *sets]) == 0
    out = capsys.readouterr().out.replace("\\\n", "")
    *head, change = shlex.split(next(line for line in out.splitlines() if "mcastlab run" in line))
    assert head == ["mcastlab", "run", str(path), "--set", "topology.receivers=3", "--set"]
    assert change.startswith("protocol.grtt=")


def test_cases_are_named_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "two.yaml"
    path.write_text(SCENARIO)
    assert invoke(["doctor", str(path), "--brief"]) == 0
    assert [line.partition(":")[0] for line in capsys.readouterr().out.splitlines()] == ["two-a", "two-b"]
    assert invoke(["run", str(path), "--dry-run"]) == 0
    assert [line.partition(":")[0] for line in capsys.readouterr().out.splitlines()] == ["two-a", "two-b"]


def test_a_scenario_of_messages_is_named_where_there_is_no_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["doctor", "fjm2-lan"]) == 0
    assert capsys.readouterr().out == "fjm2-lan: nothing to object\n"
