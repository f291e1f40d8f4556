"""`mcastlab contract` and `mcastlab new protocol`: the contract suite outside the repository."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from experiments.cli import invoke
from experiments.contract.suite import Finding, examine
from protocols.registry import names
from tests.contract.cases import TOY_CASE
from tests.contract.test_mutants import RaisesOnUnknown, ReportsTwice, mutant
from tests.tidy.tree import ROOT


@pytest.fixture
def gossip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Create a new protocol in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    assert invoke(["new", "protocol", "gossip"]) == 0
    return tmp_path / "gossip.py"


def broken(findings: list[Finding]) -> list[str]:
    """Return the names of the broken rules."""
    return [finding.rule for finding in findings if finding.status == "broken"]


def test_a_correct_protocol_breaks_no_rule() -> None:
    assert broken(list(examine(TOY_CASE))) == []


def test_a_broken_rule_is_reported_with_its_reason() -> None:
    found = [finding for finding in examine(mutant(receiver=ReportsTwice)) if finding.status == "broken"]
    assert found[0].rule == "Every object arrives at every receiver, equal and once"
    assert found[0].reason.startswith("receiver 1 notified")


def test_an_exception_of_a_machine_is_a_broken_rule_with_its_location() -> None:
    found = [finding for finding in examine(mutant(receiver=RaisesOnUnknown)) if finding.status == "broken"]
    assert found[0].rule.startswith("Foreign messages")
    assert "ValueError: stranger" in found[0].reason
    assert "test_mutants.py:" in found[0].reason


def test_a_new_protocol_is_short_and_passes_the_contract_suite(gossip: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert len(gossip.read_text().splitlines()) < 120
    assert invoke(["contract", "gossip.py", "--json"]) == 0
    output = json.loads(capsys.readouterr().out)
    assert (output["protocol"], output["broken"]) == ("gossip", 0)
    assert all(finding["status"] == "ok" for finding in output["findings"])


def test_a_new_protocol_passes_the_type_checker_and_formatter(gossip: Path) -> None:
    for tool in (["ruff", "check"], ["ruff", "format", "--check"]):
        config = ["--config", str(ROOT / "pyproject.toml"), "--ignore", "D"] if tool[1] == "check" else ["--line-length", "128"]
        done = subprocess.run(
            [sys.executable, "-m", *tool, *config, str(gossip)], capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 0, done.stdout


def test_the_next_commands_are_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert invoke(["new", "protocol", "gossip"]) == 0
    assert "mcastlab contract gossip.py" in capsys.readouterr().out


def test_a_failing_contract_suite_exits_with_code_1(gossip: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gossip.write_text(gossip.read_text().replace("raise lab.WireError", "raise ValueError"))
    assert invoke(["contract", "gossip.py"]) == 1
    assert "broken" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["Gossip", "1st", "class", "norm"])
def test_invalid_protocol_names_are_refused(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert invoke(["new", "protocol", name]) == 2
    assert f"NAME: value {name!r} is not allowed" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("name", "owner"),
    [
        ("json", "Python's module json"),
        ("os", "Python's module os"),
        ("sim", "mcastlab's package sim"),
        ("mcastlab", "mcastlab's package mcastlab"),
        ("numpy", "the installed module numpy"),
    ],
)
def test_a_name_that_would_hide_another_module_is_refused(
    name: str, owner: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert invoke(["new", "protocol", name]) == 2
    assert f"{name}.py would hide {owner} from programs of this folder" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_an_existing_file_is_not_overwritten(gossip: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gossip.write_text("mine")
    assert invoke(["new", "protocol", "gossip"]) == 2
    assert gossip.read_text() == "mine"


def test_built_in_protocols_are_checked_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert "a" in names()
    assert invoke(["contract", "a"]) == 0
    assert capsys.readouterr().out.splitlines()[-1].startswith("a: 41 of 41")
