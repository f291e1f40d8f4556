"""The folder of a run holds the files of that run only."""

import subprocess
import sys
from errno import ENOSPC
from pathlib import Path

import pytest

from experiments.cli import invoke
from experiments.output.run_folder import claim_run
from tests.tidy.tree import ROOT

SMALL = ["lan-file", "--set", "workload.size=20kB", "--brief"]


def files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def test_a_second_run_removes_the_recordings_of_the_first(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    (folder / "captures").mkdir(parents=True)
    (folder / "captures" / "notes.txt").touch()
    recorded = ["--set", "trace=true", "--set", "capture=[r1]", "--series", "100ms"]
    assert invoke(["run", *SMALL, "--out", str(folder), *recorded]) == 0
    results = {".lock", "result.json", "scenario.json", "receivers.csv", "captures/notes.txt"}
    assert files(folder) == results | {"trace.jsonl", "series.parquet", "captures/r1.pcapng"}
    assert invoke(["run", *SMALL, "--out", str(folder), "--seed", "2"]) == 0
    assert files(folder) == results


def test_files_in_a_folder_that_no_run_wrote_stay(tmp_path: Path) -> None:
    (tmp_path / "trace.jsonl").write_text("mine")
    assert invoke(["run", *SMALL, "--out", str(tmp_path)]) == 0
    assert (tmp_path / "trace.jsonl").read_text() == "mine"


@pytest.mark.parametrize("name", ["scenario.json", "result.json", "receivers.csv", "series.parquet"])
def test_a_trace_is_not_written_over_by_the_result(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["run", *SMALL, "--out", str(tmp_path), "--trace", str(tmp_path / name)]) == 2
    assert "is not allowed; --out writes another file there" in capsys.readouterr().err
    assert not files(tmp_path)


def test_a_run_does_not_write_into_the_folder_of_a_sweep(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "sweep.yaml").touch()
    assert invoke(["run", *SMALL, "--out", str(tmp_path)]) == 2
    assert "it is the folder of a sweep" in capsys.readouterr().err


def recorded(folder: Path) -> dict[str, str]:
    """Make a run with a trace in a folder; return the contents of its files."""
    assert invoke(["run", *SMALL, "--out", str(folder), "--set", "trace=true"]) == 0
    return contents(folder)


def contents(folder: Path) -> dict[str, str]:
    return {name: (folder / name).read_text() for name in files(folder)}


REFUSED = ["--set", "nodes.r1.run=nrl-norm", "--on", "sim"]


def test_a_run_that_is_refused_leaves_the_results_of_the_one_before(tmp_path: Path) -> None:
    before = recorded(tmp_path)
    assert invoke(["run", *SMALL, "--out", str(tmp_path), *REFUSED]) == 3
    assert contents(tmp_path) == before


def test_a_run_that_is_refused_leaves_the_trace_of_the_one_before(tmp_path: Path) -> None:
    trace = tmp_path / "mine.jsonl"
    trace.write_text("earlier\n")
    assert invoke(["run", *SMALL, "--trace", str(trace), *REFUSED]) == 3
    assert trace.read_text() == "earlier\n"


LATE = ["lan-file", "--set", "protocol={module: late.py}", "--brief"]


@pytest.fixture
def late(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with a protocol that is refused when its machines start."""
    monkeypatch.chdir(tmp_path)
    assert invoke(["new", "protocol", "late"]) == 0
    module = tmp_path / "late.py"
    broken = 'def start(self, now: float) -> None:\n        raise lab.ConfigError("rate: is not allowed")'
    module.write_text(module.read_text().replace("def start(self, now: float) -> None: ...", broken))
    return tmp_path


def test_a_run_that_is_refused_when_it_starts_leaves_what_was_there(late: Path) -> None:
    before = recorded(late / "run")
    (late / "mine.jsonl").write_text("earlier\n")
    assert invoke(["run", *LATE, "--out", "run", "--capture", "sender", "--trace", "mine.jsonl"]) == 2
    assert contents(late / "run") == before
    assert (late / "mine.jsonl").read_text() == "earlier\n"


def test_a_run_that_is_refused_when_it_starts_leaves_no_trace_of_its_own(late: Path) -> None:
    assert invoke(["run", *LATE, "--trace", "mine.jsonl"]) == 2
    assert not (late / "mine.jsonl").exists()


def test_a_run_that_lacks_an_extra_leaves_the_results_of_the_one_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = recorded(tmp_path)

    def lacking(*_: object) -> None:
        raise ModuleNotFoundError("No module named 'mininet'", name="mininet")

    monkeypatch.setattr("experiments.commands.run._result", lacking)
    assert invoke(["run", *SMALL, "--out", str(tmp_path)]) == 3
    assert "mininet is missing" in capsys.readouterr().err
    assert contents(tmp_path) == before


def test_an_error_of_the_protocol_leaves_the_results_of_the_one_before_if_nothing_was_recorded(tmp_path: Path) -> None:
    before = recorded(tmp_path)
    with pytest.raises(ZeroDivisionError), claim_run(tmp_path):
        raise ZeroDivisionError
    assert contents(tmp_path) == before


def test_no_case_runs_if_one_is_refused(tmp_path: Path) -> None:
    scenario = tmp_path / "two.yaml"
    cases = "compare: {a: {}, b: {nodes: {r1: {run: nrl-norm}}}}"
    rest = "protocol: {name: norm}\nworkload: {size: 20kB}"
    scenario.write_text(f"name: two\ntopology: {{kind: star, receivers: 2}}\n{rest}\n{cases}\n")
    assert invoke(["run", str(scenario), "--on", "sim", "--out", str(tmp_path / "run")]) == 3
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError(ENOSPC, "No space left on device")])
def test_a_run_without_a_stored_result_leaves_that_of_the_one_before(
    error: BaseException, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = recorded(tmp_path)

    def fail(result: object, scenario: object, folder: Path) -> None:
        (folder / "result.json").write_text("half")
        raise error

    monkeypatch.setattr("experiments.output.tables.write", fail)
    code = invoke(["run", *SMALL, "--out", str(tmp_path), "--set", "capture=[r1]"])
    assert code == (2 if isinstance(error, OSError) else 130)
    assert contents(tmp_path) == before


def test_the_trace_of_a_run_that_failed_in_its_protocol_replaces_that_of_the_one_before(tmp_path: Path) -> None:
    recorded(tmp_path)

    def fail() -> None:
        with claim_run(tmp_path):
            (tmp_path / "trace.jsonl").write_text("up to the error")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert contents(tmp_path) == {".lock": "", "trace.jsonl": "up to the error"}


def test_the_run_after_one_that_was_killed_finds_the_results_before_it(tmp_path: Path) -> None:
    before = recorded(tmp_path)
    code = "import os, sys, pathlib\nfrom experiments.output.run_folder import claim_run\n"
    code += "with claim_run(pathlib.Path(sys.argv[1])): os._exit(9)"
    assert subprocess.run([sys.executable, "-c", code, tmp_path], cwd=ROOT, check=False).returncode == 9
    assert "result.json" not in files(tmp_path)
    with pytest.raises(KeyboardInterrupt), claim_run(tmp_path):
        raise KeyboardInterrupt
    assert contents(tmp_path) == before
