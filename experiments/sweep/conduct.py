"""A sweep from its file to its last row: what is missing is computed, and what came of it is counted."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from experiments.sweep.costs import Calibration, calibrate
from experiments.sweep.execute import execute, todo_table, write_nested
from experiments.sweep.folder import claim, new_job, prepare
from experiments.sweep.grid import Plan, Run
from experiments.sweep.guard import Guard, Perform
from experiments.sweep.packing import pack
from experiments.sweep.progress import Progress
from experiments.sweep.spark import cores_of, session
from experiments.sweep.store import Known, known_runs, set_aside
from experiments.sweep.task import Task
from experiments.sweep.version import code_version
from experiments.sweep.work import perform as make_run
from protocols.errors import UsageError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Options", "Summary", "conduct", "missing_runs", "planned"]


@dataclass(frozen=True, slots=True)
class Options:
    """How a sweep is made; nothing here changes results."""

    master: str = "local[*]"
    remote: str | None = None
    resume: bool = False
    retry: bool = False
    limit: int | None = None
    quiet: bool = False
    perform: Perform = make_run


@dataclass(slots=True)
class Summary:
    """What came of an invocation. `status` counts all runs the sweep asks for, `made` those of this invocation."""

    folder: Path
    total: int = 0
    made: int = 0
    known: int = 0
    other_versions: int = 0
    unreadable: int = 0
    interrupted: bool = False
    status: Counter[str] = field(default_factory=Counter)

    @property
    def left(self) -> int:
        """Runs that were not made, since it was interrupted or limited."""
        return self.total - self.status.total()

    @property
    def failed(self) -> int:
        """Runs that are not ok."""
        return self.status.total() - self.status["ok"]

    def plain(self) -> dict[str, Any]:
        """For JSON."""
        counts = {
            key: getattr(self, key) for key in ("total", "made", "known", "left", "failed", "other_versions", "unreadable")
        }
        told = {"folder": str(self.folder), "version": code_version(), "interrupted": self.interrupted}
        return {**told, **counts, "status": dict(sorted(self.status.items()))}


def planned(plan: Plan) -> list[Run]:
    """Every run the sweep asks for."""
    found = [run for point in plan.points() for run in plan.runs(point, 0, plan.sweep.replications)]
    if not found:
        raise UsageError(f"{plan.path}: leave_out: leaves no point at all")
    return found


def missing_runs(runs: Sequence[Run], known: Known, retry: bool = False) -> list[Run]:
    """Those without a row; with `retry` also those whose row is not ok."""
    done = known.done
    return [run for run in runs if run.run_id not in done or (retry and done[run.run_id] != "ok")]


def conduct(plan: Plan, folder: Path, options: Options, spark: "SparkSession | None" = None) -> Summary:
    """Compute what is missing in the folder. A session that is given is used, and left as it is."""
    prepare(plan, folder, options.resume or options.retry)
    with claim(folder):
        return _Conductor(plan, folder, options, spark).go()


class _Conductor:
    def __init__(self, plan: Plan, folder: Path, options: Options, spark: "SparkSession | None") -> None:
        self.plan, self.folder, self.options = plan, folder, options
        self.spark = spark
        self.own = spark is None
        self.calibration: Calibration | None = None
        self.summary = Summary(folder)

    def go(self) -> Summary:
        try:
            runs = planned(self.plan)
            self._compute(runs)
            self._count(runs)
            if self.spark is not None and not self.summary.interrupted:
                write_nested(self.spark, self.folder, self._nested())
        finally:
            if self.own and self.spark is not None:
                self.spark.stop()
        return self.summary

    def _nested(self) -> list[str]:
        keep = self.plan.sweep.keep
        return [name for name, kept in (("receivers", keep.receivers), ("series", keep.series is not None)) if kept]

    def _compute(self, runs: Sequence[Run]) -> None:
        known = known_runs(self.folder)
        todo = missing_runs(runs, known, self.options.retry)
        self.summary.known = len(runs) - len(todo)
        self.summary.unreadable += len(known.unreadable)
        set_aside(known.unreadable)
        self.summary.other_versions = sum(version != code_version() for version, _ in known.status.values())
        if self.options.limit is not None:
            todo = todo[: max(0, self.options.limit - self.summary.made)]
        if todo:
            self._make(todo)

    def _make(self, todo: Sequence[Run]) -> None:
        sweep, options = self.plan.sweep, self.options
        if self.calibration is None:
            # The child is forked before Java and its threads are there.
            with Guard(options.perform, min(3.0, sweep.time_limit), sweep.memory) as guard:
                self.calibration = calibrate(guard, todo, sweep.backend)
        if self.spark is None:
            self.spark = session(self._master(), self.folder / "spark.log", options.remote)
        tasks = pack([self.calibration.cost(run) for run in todo], cores_of(self.spark))
        if sweep.backend == "emu":
            # Each is long, and what is finished should be safe.
            tasks = list(range(len(todo)))
        job = new_job(self.folder, options.remote or options.master, len(todo))
        part = self.folder / "runs" / f"job={job}"
        progress = Progress(part, len(todo), self.summary.known, options.quiet)
        table = todo_table(todo, tasks, self.plan.axis_types)
        self.summary.interrupted = not execute(self.spark, table, self._task(), part, progress)
        self.summary.made += progress.done

    def _master(self) -> str:
        """Emulations share the machine's kernel, and one at a time is what it can take."""
        if self.plan.sweep.backend == "sim":
            return self.options.master
        if not self.options.master.startswith("local") or self.options.remote:
            raise UsageError(
                f"--master: value {self.options.master!r} is not allowed; emulations run on this machine, local[1]"
            )
        return "local[1]"

    def _task(self) -> Task:
        sweep = self.plan.sweep
        return Task(
            perform=self.options.perform,
            axes=self.plan.axis_types,
            backend=sweep.backend,
            receivers=sweep.keep.receivers,
            series=sweep.keep.series,
            captures=sweep.keep.captures,
            folder=str(self.folder.absolute() / "captures"),
            time_limit=sweep.time_limit,
            memory=sweep.memory,
        )

    def _count(self, runs: Sequence[Run]) -> None:
        done = known_runs(self.folder).done
        self.summary.total = len(runs)
        self.summary.status = Counter(done[run.run_id] for run in runs if run.run_id in done)
