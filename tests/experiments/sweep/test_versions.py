"""Results of several versions of the code in one folder, and of those that have no rows yet."""

import json
from pathlib import Path

import pytest

import mcastlab
from experiments.sweep.store.invocations import chosen_version
from protocols.errors import UsageError
from tests.support.sweep_store import VERSION, row, write_runs


def begun(folder: Path, version: str, started: str) -> None:
    """Record an invocation that has stored nothing."""
    (folder / "jobs").mkdir(parents=True, exist_ok=True)
    (folder / "jobs" / f"{version}.json").write_text(json.dumps({"version": version, "started": started}))


def test_an_invocation_that_was_interrupted_at_once_does_not_hide_the_rows_of_earlier_versions(tmp_path: Path) -> None:
    write_runs(tmp_path, [row({"n": 1}, 1, {"loss": 0.5}, version="old")], "old")
    write_runs(tmp_path, [row({"n": 1}, 2, {"loss": 0.5})])
    begun(tmp_path, "new", "2027")
    assert chosen_version(tmp_path) == VERSION
    assert chosen_version(tmp_path, "new") == "new"
    assert list(mcastlab.open_sweep(tmp_path)["version"]) == [VERSION]


def test_a_damaged_file_has_no_version(tmp_path: Path) -> None:
    write_runs(tmp_path, [row({"n": 1}, 1, {"loss": 0.5}, version="old")], "old")
    write_runs(tmp_path, [row({"n": 1}, 2, {"loss": 0.5})])
    (tmp_path / "runs" / "job=one" / "part-0.parquet").write_bytes(b"PAR1")
    assert chosen_version(tmp_path) == "old"


@pytest.mark.parametrize("dataset", ["runs", "receivers"])
def test_a_version_without_rows_is_named_when_a_frame_of_it_is_opened(dataset: str, tmp_path: Path) -> None:
    nested = [{"receiver": "r1", "m_loss": 0.5}]
    write_runs(tmp_path, [row({"n": 1}, 1, {"loss": 0.5}, receivers=nested)])
    begun(tmp_path, "new", "2027")
    with pytest.raises(UsageError, match="holds no runs of version new"):
        mcastlab.open_sweep(tmp_path, dataset, version="new")  # type: ignore[arg-type]
