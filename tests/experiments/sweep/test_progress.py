"""Progress of a sweep, counted from finished files."""

import io
import os
import pty
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from experiments.sweep.run.progress import Progress, report_run


class Terminal(io.StringIO):
    """Text stream that claims to be a terminal."""

    def isatty(self) -> bool:
        return True


def finish(part: Path, name: str, *status: str) -> None:
    part.mkdir(exist_ok=True)
    parquet.write_table(pa.table({"status": list(status)}), part / name)


def test_finished_files_are_counted_once_and_unfinished_ones_not(tmp_path: Path) -> None:
    progress = Progress(tmp_path / "job", 10, 0, quiet=True)
    progress.count_new()
    assert progress.done == 0
    finish(tmp_path / "job", "a.parquet", "ok", "ok", "error")
    finish(tmp_path / "job", ".b.parquet", "ok")
    progress.count_new()
    finish(tmp_path / "job", "c.parquet", "timeout")
    progress.count_new()
    assert progress.status == {"ok": 2, "error": 1, "timeout": 1}


def test_the_line_shows_done_known_failed_left_rate_and_estimated_end(tmp_path: Path) -> None:
    progress = Progress(tmp_path, 3600, 7, quiet=True)
    finish(tmp_path, "a.parquet", *(["ok"] * 99), "crashed")
    progress.count_new()
    line = progress.line(progress._began + 10.0)
    assert line == "100 of 3600 done, 7 known, 1 failed, 3500 left, 10 runs/s, about 5:50 to go"


@pytest.mark.parametrize(
    ("to", "wanted"), [(io.StringIO(), "1 of 1 done, 0 failed, 0 left, 0:00\n"), (Terminal(), "\r\x1b[K1 of 1")]
)
def test_a_terminal_gets_one_updated_line_and_a_file_gets_many(to: io.StringIO, wanted: str, tmp_path: Path) -> None:
    progress = Progress(tmp_path, 1, 0, to=to)
    progress.report()
    finish(tmp_path, "a.parquet", "ok")
    progress.report(last=True)
    assert wanted in to.getvalue()
    assert to.getvalue().endswith("\n")
    assert ("\r" in to.getvalue()) == to.isatty()


def test_runs_are_shown_as_they_are_reported_and_a_repeated_task_counts_its_last_attempt(tmp_path: Path) -> None:
    reports = tmp_path / "reports"
    progress = Progress(tmp_path / "job", 10, 0, quiet=True, reports=reports)
    for task, attempt, status in ((0, 0, "ok"), (0, 0, "error"), (1, 0, "ok"), (1, 0, "ok"), (1, 1, "ok")):
        report_run(reports, task, attempt, status)
    progress.count_reports()
    assert progress.line(progress._began + 1.0).startswith("3 of 10 done, 1 failed, 7 left")
    assert progress.done == 0


def test_runs_are_stored_once_there_are_as_many_rows_as_reports(tmp_path: Path) -> None:
    part, reports = tmp_path / "part", tmp_path / "reports"
    progress = Progress(part, 4, 0, quiet=True, reports=reports)
    assert progress.is_stored()
    report_run(reports, 0, 0, "ok")
    report_run(reports, 0, 0, "failed")
    assert not progress.is_stored()
    finish(part, "a.parquet", "ok", "failed")
    assert progress.is_stored()


def test_a_terminal_that_was_closed_does_not_end_the_runs(tmp_path: Path) -> None:
    terminal, shown = pty.openpty()
    with os.fdopen(shown, "w") as to:
        progress = Progress(tmp_path, 1, 0, to=to)
        progress.report()
        os.close(terminal)
        progress.report()
        progress.report(last=True)
        print("more", file=to, flush=True)
