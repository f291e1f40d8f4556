"""The function a Spark worker applies: execute runs one after another and yield a row for each."""

import gc
import json
import socket
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa

from experiments.running.child_process import ChildProcess, Perform, RunOutcome
from experiments.scenario.protocol_modules import provide
from experiments.sweep.run.progress import report_run
from experiments.sweep.spec.metrics import METRICS
from experiments.sweep.spec.sweep_file import BACKEND
from experiments.sweep.store.schema import column_of, runs_schema

__all__ = ["TODO_SCHEMA", "Task", "row_of"]

TODO_SCHEMA = pa.schema(
    [
        ("task", pa.int32()),
        ("run_id", pa.string()),
        ("version", pa.string()),
        ("point", pa.int32()),
        ("case", pa.string()),
        ("seed", pa.int64()),
        ("params", pa.string()),
        ("axes", pa.string()),
        ("scenario", pa.string()),
    ]
)
"""A run to execute. `params` and `axes` are JSON: values as the user wrote them, and numbers by column."""


@cache
def _freeze_heap() -> None:
    # PySpark's daemon runs the garbage collector after every task; freezing loaded packages makes that fast.
    gc.collect()
    gc.freeze()


@dataclass(frozen=True)
class Task:
    """Callable applied by Spark to batches of TODO_SCHEMA; yields batches of the schema of `runs`."""

    perform: Perform
    axes: Mapping[str, str]
    backend: str
    receivers: bool
    series: float | None
    captures: Sequence[str]
    folder: str
    time_limit: float
    memory: int
    modules: Mapping[str, bytes] = field(default_factory=dict)
    """Source of protocols from outside, by the path that scenarios name them by."""
    reports: str = ""
    """Folder in which every finished run is reported at once, long before its row is on disk; empty for none.

    An interrupted sweep waits for the rows of these.
    """
    stop: str = ""
    """File whose existence ends a task and its present run, so that rows of finished runs are stored; empty for none."""

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        """Yield the rows of one task."""
        from pyspark import TaskContext

        context = TaskContext.get()
        attempt = 0 if context is None else context.attemptNumber()
        schema = runs_schema(self.axes)
        provide(self.modules)
        with ChildProcess(self.perform, self.time_limit, self.memory) as child:
            for batch in batches:
                wanted = batch.to_pylist()
                # Yield one row first, so that Java opens the file while the other runs execute.
                for some in filter(None, (wanted[:1], wanted[1:])):
                    rows = [self._row(child, todo, attempt) for todo in some if not self._is_stopped()]
                    yield from pa.Table.from_pylist([row for row in rows if row is not None], schema).to_batches()
        # All modules a task needs are imported by now.
        _freeze_heap()

    def _is_stopped(self) -> bool:
        return bool(self.stop) and Path(self.stop).exists()

    def _row(self, child: ChildProcess, todo: Mapping[str, Any], attempt: int) -> dict[str, Any] | None:
        """Make a run and return its row; None if it was stopped."""
        started = datetime.now(UTC)
        outcome = child.run(self._job(todo), self._is_stopped)
        if outcome.status == "stopped":
            return None
        if self.reports:
            report_run(Path(self.reports), todo["task"], attempt, outcome.status)
        return row_of(todo, outcome) | {"attempt": attempt, "started": started, "machine": socket.gethostname()}

    def _job(self, todo: Mapping[str, Any]) -> dict[str, Any]:
        return {
            "scenario": todo["scenario"],
            "backend": json.loads(todo["axes"]).get(column_of(BACKEND), self.backend),
            "receivers": self.receivers,
            "series": self.series,
            "captures": tuple(self.captures),
            "folder": f"{self.folder}/{todo['run_id']}",
        }


def row_of(todo: Mapping[str, Any], outcome: RunOutcome) -> dict[str, Any]:
    """Return the row of `runs` for an outcome, without columns that depend on the machine."""
    result = outcome.result or {"metrics": {}, "fingerprint": None, "receivers": None, "series": None}
    return {
        **{key: todo[key] for key in ("run_id", "version", "point", "case", "seed")},
        "params": sorted(json.loads(todo["params"]).items()),
        **json.loads(todo["axes"]),
        "status": outcome.status,
        "error": outcome.error,
        "fingerprint": result["fingerprint"],
        **{f"m_{name}": result["metrics"].get(name) for name in METRICS},
        "receivers": result["receivers"],
        "series": result["series"],
        "duration_s": outcome.duration,
        "cpu_s": outcome.cpu,
    }
