"""Progress of a sweep: runs as workers report them, rows as files are committed; one live line on a terminal, else many."""

import os
import sys
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import TextIO

from pyarrow import parquet

from experiments.output.clock import clock

__all__ = ["Progress", "report_run"]

PLAIN_INTERVAL = 10.0
"""Seconds between lines if the output is not a terminal."""
OK, FAILED = b"+", b"-"


def report_run(folder: Path, task: int, attempt: int, status: str) -> None:
    """Report a finished run of a task: a byte at the end of the file of this attempt, in a folder that the driver reads.

    A report that can't be written is left out; the row, which comes later, counts in any case.
    """
    with suppress(OSError):
        folder.mkdir(exist_ok=True)
        with (folder / f"{task}.{attempt}").open("ab", buffering=0) as file:
            file.write(OK if status == "ok" else FAILED)


class Progress:
    """Count the runs of one job and report them; `quiet` suppresses all output.

    `part` is the folder of the job's rows, `reports` that of the workers' reports of runs, whose rows follow; None: no reports.
    """

    def __init__(
        self, part: Path, total: int, before: int, quiet: bool = False, to: TextIO | None = None, reports: Path | None = None
    ) -> None:
        self._part = part
        self._reports = reports
        self._told = (0, 0)
        self._total = total
        self._before = before
        self._to = to or sys.stderr
        self._quiet = quiet
        self._live = self._to.isatty()
        self._seen: set[str] = set()
        self._began = time.monotonic()
        self._reported_at = self._began
        self.status: Counter[str] = Counter()

    @property
    def done(self) -> int:
        """Rows committed to disk."""
        return self.status.total()

    def count_new(self) -> None:
        """Count the rows of new files."""
        for path in self._part.glob("*.parquet"):
            if path.name not in self._seen and not path.name.startswith(("_", ".")):
                self._seen.add(path.name)
                self.status.update(parquet.ParquetFile(path).read(columns=["status"], use_threads=False)["status"].to_pylist())

    def count_reports(self) -> None:
        """Count the runs that workers have reported; of a task that was started again, those of the last attempt."""
        latest: dict[str, tuple[int, Path]] = {}
        for path in self._reports.iterdir() if self._reports is not None and self._reports.is_dir() else ():
            task, _, attempt = path.name.partition(".")
            latest[task] = max(latest.get(task, (-1, path)), (int(attempt), path))
        told = b"".join(path.read_bytes() for _, path in latest.values())
        self._told = (len(told), told.count(FAILED))

    def is_stored(self) -> bool:
        """Count, and return whether the rows of all runs that workers have reported are committed."""
        self.count_new()
        self.count_reports()
        return self.done >= self._told[0]

    def report(self, last: bool = False) -> None:
        """Count, and write a progress line if one is due."""
        self.count_new()
        if not last and not self._quiet:
            self.count_reports()
        now = time.monotonic()
        if self._quiet or not (self._live or last or now - self._reported_at >= PLAIN_INTERVAL):
            return
        self._reported_at = now
        try:
            self._to.write(
                (f"\r\x1b[K{self.line(now)}" if self._live else self.line(now)) + ("" if self._live and not last else "\n")
            )
            self._to.flush()
        except OSError:
            # As on a terminal that was closed. The runs go on, whatever is told of them later.
            self._quiet = True
            os.dup2(os.open(os.devnull, os.O_WRONLY), self._to.fileno())

    def line(self, now: float) -> str:
        """Return the line: runs done, failed and left, the rate and the estimated time to completion."""
        done, failed = max((self.done, self.done - self.status["ok"]), self._told)
        left = self._total - done
        spent = now - self._began
        rate = done / spent if spent > 0 else 0.0
        known = f", {self._before} known" if self._before else ""
        over = f", {rate:.3g} runs/s, about {clock(left / rate)} to go" if rate and left else f", {clock(spent)}"
        return f"{done} of {self._total} done{known}, {failed} failed, {left} left{over}"
