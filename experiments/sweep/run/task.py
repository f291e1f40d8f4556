"""What a Spark task does: makes its runs one after the other and gives back a row for each."""

import gc
import json
import socket
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from typing import Any

import pyarrow as pa

from experiments.scenario.protocol_modules import provide
from experiments.sweep.run.guard import Guard, Outcome, Perform
from experiments.sweep.spec.sweep_file import BACKEND
from experiments.sweep.store.catalog import METRICS
from experiments.sweep.store.schema import column_of, runs_schema

__all__ = ["WANTED_RUNS", "Task", "row_of"]

WANTED_RUNS = pa.schema(
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
"""A run that is to be made. `params` and `axes` are JSON: as the user wrote them, and as numbers by column."""


@cache
def _once_per_worker() -> None:
    # PySpark's daemon collects after every task, and the packages loaded make that slow.
    gc.collect()
    gc.freeze()


@dataclass(frozen=True)
class Task:
    """Called by Spark in a worker with batches of `WANTED_RUNS`; yields batches of `runs`."""

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

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        """The rows of one task."""
        from pyspark import TaskContext

        context = TaskContext.get()
        attempt = 0 if context is None else context.attemptNumber()
        schema = runs_schema(self.axes)
        provide(self.modules)
        with Guard(self.perform, self.time_limit, self.memory) as guard:
            for batch in batches:
                wanted = batch.to_pylist()
                # One row first: Java opens the file for it while the other runs are made.
                for some in filter(None, (wanted[:1], wanted[1:])):
                    rows = [self._row(guard, todo, attempt) for todo in some]
                    yield from pa.Table.from_pylist(rows, schema).to_batches()
        # By now everything that a task needs is imported.
        _once_per_worker()

    def _row(self, guard: Guard, todo: Mapping[str, Any], attempt: int) -> dict[str, Any]:
        started = datetime.now(UTC)
        outcome = guard.run(self._job(todo))
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


def row_of(todo: Mapping[str, Any], outcome: Outcome) -> dict[str, Any]:
    """The row of `runs` for what came of a run, without what depends on the machine."""
    told = outcome.told or {"metrics": {}, "fingerprint": None, "receivers": None, "series": None}
    return {
        **{key: todo[key] for key in ("run_id", "version", "point", "case", "seed")},
        "params": sorted(json.loads(todo["params"]).items()),
        **json.loads(todo["axes"]),
        "status": outcome.status,
        "error": outcome.error,
        "fingerprint": told["fingerprint"],
        **{f"m_{name}": told["metrics"].get(name) for name in METRICS},
        "receivers": told["receivers"],
        "series": told["series"],
        "duration_s": outcome.duration,
        "cpu_s": outcome.cpu,
    }
