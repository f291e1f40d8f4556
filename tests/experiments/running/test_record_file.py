"""A file of records ends with the last whole one that the disk had room for, and the run goes on."""

import json
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pyarrow import parquet

from experiments.captures.capture_file import CaptureFile
from experiments.cli import invoke
from experiments.running.record_file import RecordFile
from protocols.errors import UsageError
from tests.tidy.tree import ROOT

RECORDS = [b"head\n", *(b"%06d\n" % number for number in range(100_000))]
ROOM = 500_000


def limited(command: list[str], room: int, cwd: Path) -> "subprocess.CompletedProcess[str]":
    """Run a command whose files may have `room` bytes, after which they take no more (EFBIG)."""
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        cwd=cwd,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (room, room)),
    )


def test_a_file_without_a_limit_has_every_record(tmp_path: Path) -> None:
    file = RecordFile(tmp_path / "new" / "records", b"0")
    for record in RECORDS:
        file.write(record)
    file.close()
    assert (tmp_path / "new" / "records").read_bytes() == b"".join(RECORDS)
    assert (file.written, file.unwritten) == (100_000, 0)


def test_a_full_disk_costs_the_records_after_the_last_whole_one(tmp_path: Path) -> None:
    code = (
        "from pathlib import Path\nfrom experiments.running.record_file import RecordFile\n"
        "from tests.experiments.running.test_record_file import RECORDS\n"
        f"file = RecordFile(Path({str(tmp_path / 'records')!r}), b'0')\n"
        "[file.write(record) for record in RECORDS]\nfile.close()\nprint(file.written, file.unwritten)"
    )
    found = limited([sys.executable, "-c", code], ROOM, ROOT)
    written = (ROOM - len(RECORDS[0])) // 7
    assert (found.stdout, found.stderr) == (f"{written} {100_000 - written}\n", "")
    assert (tmp_path / "records").read_bytes() == b"".join(RECORDS[: written + 1])


def test_a_device_without_room_takes_nothing() -> None:
    file = RecordFile(Path("/dev/full"), b"0")
    for record in RECORDS:
        file.write(record)
    file.close()
    assert (file.written, file.unwritten) == (0, 100_000)


def test_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"can't be written \(Is a directory\)"):
        RecordFile(tmp_path, b"0")


RUN = ["run", "lan-file", "--set", "workload.size=400kB", "--json"]


def reported(found: "subprocess.CompletedProcess[str]") -> tuple[dict[str, Any], list[str]]:
    """Return the metrics and the warnings of a run that was complete."""
    assert found.returncode == 0, found.stderr
    metrics: dict[str, Any] = json.loads(found.stdout)["metrics"]
    assert metrics["receivers_complete"] == 8
    return metrics, found.stderr.splitlines()


def test_a_full_disk_costs_the_rest_of_captures_and_trace_but_not_the_result(tmp_path: Path) -> None:
    options = ["--out", "seen", "--capture", "sender", "--trace", "trace.jsonl"]
    command = [sys.executable, "-m", "mcastlab", *RUN, *options]
    found = limited(["env", f"PYTHONPATH={ROOT}", *command], 200_000, tmp_path)
    metrics, warnings = reported(found)
    capture, lines = metrics["captures"]["sender"], metrics["unwritten"]["trace"]
    assert warnings == [
        f"warning: capture sender: the disk is full: {capture['unwritten']:,} missing packets",
        f"warning: trace: the disk is full: {lines:,} missing lines",
    ]
    read = CaptureFile(tmp_path / "seen" / "captures" / "sender.pcapng")
    assert (len(list(read.frames())), read.flaw) == (capture["packets"], "")
    assert capture["packets"] > 10 < capture["unwritten"]
    assert capture["packets"] + capture["unwritten"] == unlimited(tmp_path)["captures"]["sender"]["packets"]
    assert lines + sum(1 for _ in (tmp_path / "trace.jsonl").open()) == sum(1 for _ in (tmp_path / "all.jsonl").open())
    assert (tmp_path / "seen" / "result.json").is_file()


def unlimited(folder: Path) -> dict[str, Any]:
    """Return the metrics of the same run with room for everything."""
    options = ["--out", "all", "--capture", "sender", "--trace", "all.jsonl"]
    command = ["env", f"PYTHONPATH={ROOT}", sys.executable, "-m", "mcastlab", *RUN, *options]
    return reported(subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder))[0]


def test_a_full_disk_costs_the_time_series_but_not_the_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(table: object, path: Path) -> None:
        path.write_bytes(b"PAR1")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(parquet, "write_table", full)
    assert invoke([*RUN, "--out", str(tmp_path), "--series", "10ms"]) == 0
    out, err = capsys.readouterr()
    rows = json.loads(out)["metrics"]["unwritten"]["series"]
    assert rows > 100
    assert err == f"warning: series: the disk is full: {rows:,} missing rows\n"
    assert not (tmp_path / "series.parquet").exists()
