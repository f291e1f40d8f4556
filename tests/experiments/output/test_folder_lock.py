"""Folders that a run or a sweep writes to."""

import errno
import fcntl
import os
from pathlib import Path
from typing import Any

import pytest

import mcastlab
from experiments.cli import invoke
from experiments.output.folder_lock import claim
from protocols.errors import UsageError

SMALL = {"topology.receivers": 1, "workload.size": "1kB"}


def test_two_runs_do_not_write_to_one_folder_at_the_same_time(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, small = tmp_path / "out", [f"--set={key}={value}" for key, value in SMALL.items()]
    with claim(out, "run"):
        assert invoke(["run", "lan-file", *small, "--out", str(out)]) == 2
        with pytest.raises(mcastlab.UsageError, match="another run is writing to it"):
            mcastlab.run(mcastlab.load("lan-file", SMALL), out=out)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert "another run is writing to it" in captured.err
    assert not (out / "result.json").exists()
    assert invoke(["run", "lan-file", *small, "--out", str(out)]) == 0
    assert (out / "result.json").exists()


def test_a_folder_that_cannot_be_written_is_refused_before_the_run(tmp_path: Path) -> None:
    (tmp_path / "out" / ".lock").mkdir(parents=True)
    refused = pytest.raises(UsageError, match="a folder that can be made and written")
    with refused, claim(tmp_path / "out", "run"):
        raise AssertionError


def test_a_file_system_without_locks_is_no_other_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def flock(file: Any, operation: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", flock)
    refused = pytest.raises(UsageError, match=r"a folder that can be locked \(No locks available\)")
    with refused, claim(tmp_path / "out", "run"):
        raise AssertionError
