"""The folder of a run holds the files of that run only."""

from pathlib import Path

import pytest

from experiments.cli import invoke

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
