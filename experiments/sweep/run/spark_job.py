"""Run a set of runs as one Spark job; the Parquet file of each task is committed as soon as the task ends."""

import errno
import json
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from experiments.output.counted import counted
from experiments.running.child_process import CALLS_PER_SECOND
from experiments.sweep.run.progress import Progress
from experiments.sweep.run.spark_session import is_full, loss_of, no_space, temporary_folder
from experiments.sweep.run.task import TODO_SCHEMA, Task
from experiments.sweep.spec.grid import SweepRun
from experiments.sweep.spec.quantities import Value, number_of
from experiments.sweep.store.datasets import location
from experiments.sweep.store.schema import column_of, runs_schema
from protocols.errors import McastlabError, UnsupportedError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["SweepError", "run_job", "todo_table"]

COMMITTER = "mapreduce.fileoutputcommitter.algorithm.version"
"""Algorithm version 2 commits a task's file at the end of the task instead of the end of the job."""
FULL = (errno.ENOSPC, errno.EDQUOT)
GRACE = 2.0
"""Seconds after an interrupt until tasks that have not ended are killed with what they have not stored."""
NOTICE = 2 / CALLS_PER_SECOND
"""Seconds after an interrupt in which all tasks under way see it."""
POLL_INTERVAL = 0.25
"""Seconds between updates of the progress line."""


class SweepError(McastlabError):
    """The Spark job failed; rows of finished tasks are kept."""


def todo_table(runs: Sequence[SweepRun], tasks: Sequence[int], axes: Mapping[str, str], version: str) -> Any:
    """Return the runs as an Arrow table of TODO_SCHEMA; `version` is that of the code that makes them."""
    rows = [
        {
            "task": task,
            "run_id": run.run_id,
            "version": version,
            "point": run.point.index,
            "case": run.point.case,
            "seed": run.seed,
            "params": json.dumps({name: str(value) for name, value in run.point.values.items()}),
            "axes": json.dumps({column_of(name): _typed(run.point.values[name], kind) for name, kind in axes.items()}),
            "scenario": run.scenario,
        }
        for run, task in zip(runs, tasks, strict=True)
    ]
    return pa.Table.from_pylist(rows, TODO_SCHEMA)


def _typed(value: Value, kind: str) -> Value:
    number: Any = number_of(value)
    return str(value) if kind == "string" else float(number) if kind == "double" else number


def run_job(spark: "SparkSession", todo: Any, task: Task, part: Path, progress: Progress) -> bool:
    """Execute the runs of `todo` and write their rows to `part`; return False if interrupted by SIGINT.

    Raises SweepError if the Spark job fails. In all cases the files of finished tasks are committed. After SIGINT tasks
    end without their present run. What remains of the job is killed once all runs that were reported are stored, after
    `GRACE` seconds at the latest.
    """
    from pyspark.sql.pandas.types import from_arrow_schema

    def work(batches: Iterator[Any]) -> Iterator[Any]:
        yield from task(batches)

    tasks = max(todo["task"].to_pylist()) + 1
    try:
        frame = spark.createDataFrame(todo)
    except OSError as error:
        # PySpark hands the table to Java in a temporary file.
        if error.errno not in FULL:
            raise
        raise UnsupportedError(no_space(spark)) from error
    rows = frame.repartitionById(tasks, "task").mapInArrow(work, from_arrow_schema(runs_schema(task.axes)))
    return _in_background(spark, lambda: _write(rows, part), progress, Path(task.stop))


def _write(frame: "DataFrame", part: Path) -> None:
    frame.write.option(COMMITTER, "2").option("compression", "zstd").parquet(location(part))


def _in_background(spark: "SparkSession", action: Callable[[], None], progress: Progress, stop_file: Path) -> bool:
    """Run `action` in a thread, so that the main thread can handle SIGINT; then create `stop_file`, at which tasks end."""
    failed: list[Exception] = []
    stop = threading.Event()

    def act() -> None:
        try:
            action()
        except Exception as error:  # noqa: BLE001  (reported below, in the main thread)
            failed.append(error)

    with _sigint_sets(stop):
        thread = threading.Thread(target=act, daemon=True)
        thread.start()
        while thread.is_alive() and not stop.is_set():
            thread.join(POLL_INTERVAL)
            progress.report()
        if stop.is_set():
            stop_file.touch()
            until = time.monotonic() + GRACE
            thread.join(NOTICE)
            # Thousands of tasks may not have begun; each would take 30 ms to end without a run.
            while thread.is_alive() and not progress.is_stored() and time.monotonic() < until:
                thread.join(0.05)
            if thread.is_alive():
                spark.interruptAll()
                thread.join(2.0)
    progress.report(last=True)
    if failed and not stop.is_set():
        kept = f"after {counted(progress.done, 'run')}, which are kept (--resume runs the others)"
        raise SweepError(f"the Spark job failed {kept}: {_reason(failed[0], spark, stop_file.parent)}") from failed[0]
    return not stop.is_set()


def _reason(error: Exception, spark: "SparkSession", folder: Path) -> str:
    if (loss := loss_of(error, spark)) is not None:
        return loss
    if is_full(error):
        temporary = temporary_folder(spark)
        is_here = temporary is None or shutil.disk_usage(folder).free < shutil.disk_usage(temporary).free
        return f"there is no space left in {folder}" if is_here else no_space(spark)
    # Names of functions on the stack may contain these words, too.
    lines = [line.strip() for line in str(error).splitlines() if line.strip() and not line.startswith("\tat ")]
    errors = [line for line in lines if "Error" in line or "Exception" in line]
    return (errors or lines or [type(error).__name__])[-1][:300]


@contextmanager
def _sigint_sets(stop: threading.Event) -> Iterator[None]:
    """Set `stop` on SIGINT instead of Spark's own handler; a no-op outside the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def handle(number: int, frame: FrameType | None) -> None:
        stop.set()

    before = signal.signal(signal.SIGINT, handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
