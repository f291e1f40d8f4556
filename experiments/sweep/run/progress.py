"""Progress of a sweep, counted from committed files and shown as a live line on a terminal, else as plain lines."""

import sys
import time
from collections import Counter
from pathlib import Path
from typing import TextIO

from pyarrow import parquet

__all__ = ["Progress"]

PLAIN_INTERVAL = 10.0
"""Seconds between lines if the output is not a terminal."""


class Progress:
    """Count the rows of one job and report them; `quiet` suppresses all output."""

    def __init__(self, part: Path, total: int, before: int, quiet: bool = False, to: TextIO | None = None) -> None:
        self._part = part
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

    def report(self, last: bool = False) -> None:
        """Count, and write a progress line if one is due."""
        self.count_new()
        now = time.monotonic()
        if self._quiet or not (self._live or last or now - self._reported_at >= PLAIN_INTERVAL):
            return
        self._reported_at = now
        if self._live:
            self._to.write(f"\r\x1b[K{self.line(now)}" + ("\n" if last else ""))
        else:
            self._to.write(self.line(now) + "\n")
        self._to.flush()

    def line(self, now: float) -> str:
        """Return the line: runs done, failed and left, the rate and the estimated time to completion."""
        failed = self.done - self.status["ok"]
        left = self._total - self.done
        spent = now - self._began
        rate = self.done / spent if spent > 0 else 0.0
        known = f", {self._before} known" if self._before else ""
        over = f", {rate:.3g} runs/s, about {_clock(left / rate)} to go" if rate and left else f", {_clock(spent)}"
        return f"{self.done} of {self._total} done{known}, {failed} failed, {left} left{over}"


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
