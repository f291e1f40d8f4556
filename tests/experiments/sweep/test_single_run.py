"""A run of a sweep fails when its captures are not complete, so that it is made again."""

import json
from pathlib import Path
from typing import Any

import pytest

from experiments.sweep.run.single_run import perform

SCENARIO = {
    "name": "small",
    "topology": {"kind": "star", "receivers": 2},
    "protocol": {"name": "norm"},
    "workload": {"kind": "file", "size": "20kB"},
}


def job(folder: Path) -> dict[str, Any]:
    about = {"backend": "sim", "receivers": False, "series": None}
    return {"scenario": json.dumps(SCENARIO), **about, "captures": ["sender"], "folder": str(folder)}


def test_captures_are_written_into_the_folder_of_the_job(tmp_path: Path) -> None:
    assert perform(job(tmp_path))["metrics"]["completed"] == 1
    assert (tmp_path / "sender.pcapng").stat().st_size > 20_000


def test_a_run_whose_captures_the_disk_has_no_room_for_fails(tmp_path: Path) -> None:
    (tmp_path / "sender.pcapng").symlink_to("/dev/full")
    with pytest.raises(OSError, match=r"the disk is full: \d+ missing packets?: 'capture sender'"):
        perform(job(tmp_path))
