"""A sweep from its file to its last row: what is missing is computed, and what came of it is counted."""

from collections import Counter
from collections.abc import Container, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from experiments.sweep.run.costs import Calibration, calibrate
from experiments.sweep.run.execute import execute, todo_table, write_nested
from experiments.sweep.run.guard import Guard, Perform
from experiments.sweep.run.packing import pack
from experiments.sweep.run.progress import Progress
from experiments.sweep.run.rounds import asked_metrics, wanted
from experiments.sweep.run.shipping import ship
from experiments.sweep.run.spark import cores_of, session, stop
from experiments.sweep.run.task import Task
from experiments.sweep.run.work import perform as make_run
from experiments.sweep.spec.grid import SweepPlan, SweepRun
from experiments.sweep.store.datasets import Known, known_runs, metric_values, set_aside
from experiments.sweep.store.folder import claim, new_job, prepare
from protocols.errors import UsageError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Options", "Summary", "conduct", "missing_runs"]


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
    version: str
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
        told = {"folder": str(self.folder), "version": self.version, "interrupted": self.interrupted}
        return {**told, **counts, "status": dict(sorted(self.status.items()))}


def missing_runs(runs: Sequence[SweepRun], known: Known, retry: bool = False) -> list[SweepRun]:
    """Those without a row; with `retry` also those whose row is not ok."""
    done = known.done
    return [run for run in runs if run.run_id not in done or (retry and done[run.run_id] != "ok")]


def conduct(plan: SweepPlan, folder: Path, options: Options, spark: "SparkSession | None" = None) -> Summary:
    """Compute what is missing in the folder. A session that is given is used, and left as it is."""
    prepare(plan, folder, options.resume or options.retry)
    with claim(folder):
        return _Conductor(plan, folder, options, spark).go()


class _Conductor:
    def __init__(self, plan: SweepPlan, folder: Path, options: Options, spark: "SparkSession | None") -> None:
        self.plan, self.folder, self.options = plan, folder, options
        self.spark = spark
        self.own = spark is None
        self.calibration: Calibration | None = None
        self.summary = Summary(folder, plan.version)

    def go(self) -> Summary:
        try:
            runs = self._go_on()
            self._count(runs)
            if self.spark is not None and not self.summary.interrupted:
                write_nested(self.spark, self.folder, self._nested())
        finally:
            if self.own and self.spark is not None:
                stop(self.spark)
        return self.summary

    def _go_on(self) -> Sequence[SweepRun]:
        """Compute until nothing more is asked for, or it is told to stop; returns all runs asked for."""
        metrics, asked = asked_metrics(self.plan), set[str]()
        while True:
            runs = wanted(self.plan, metric_values(self.folder, metrics))
            todo = self._todo(runs, asked)
            if todo:
                self._make(todo)
            if not todo or not metrics or self.summary.interrupted:
                return runs
            asked |= {run.run_id for run in runs}

    def _nested(self) -> list[str]:
        keep = self.plan.sweep.keep
        return [name for name, kept in (("receivers", keep.receivers), ("series", keep.series is not None)) if kept]

    def _todo(self, runs: Sequence[SweepRun], asked: Container[str]) -> Sequence[SweepRun]:
        """What is to be made of the runs, without those this invocation has been asked for."""
        known = known_runs(self.folder)
        set_aside(known.unreadable)
        new = [run for run in runs if run.run_id not in asked]
        todo = missing_runs(new, known, self.options.retry)
        self.summary.known += len(new) - len(todo)
        self.summary.unreadable += len(known.unreadable)
        if self.options.limit is not None:
            todo = todo[: max(0, self.options.limit - self.summary.made)]
        return todo

    def _make(self, todo: Sequence[SweepRun]) -> None:
        sweep, options = self.plan.sweep, self.options
        if self.calibration is None:
            # The child is forked before Java and its threads are there.
            with Guard(options.perform, min(3.0, sweep.time_limit), sweep.memory) as guard:
                self.calibration = calibrate(guard, todo)
        if self.spark is None:
            self.spark = session(self._master(), self.folder / "spark.log", options.remote)
            if options.remote is not None or not options.master.startswith("local["):
                ship(self.spark)
        tasks = pack([self.calibration.cost(run) for run in todo], cores_of(self.spark))
        if "emu" in sweep.backends:
            # Each is long, and what is finished should be safe.
            tasks = list(range(len(todo)))
        job = new_job(self.folder, options.remote or options.master, len(todo), self.plan.version)
        part = self.folder / "runs" / f"job={job}"
        progress = Progress(part, len(todo), self.summary.known, options.quiet)
        table = todo_table(todo, tasks, self.plan.axis_types, self.plan.version)
        self.summary.interrupted = not execute(self.spark, table, self._task(), part, progress)
        self.summary.made += progress.done

    def _master(self) -> str:
        """Emulations share the machine's kernel, and one at a time is what it can take."""
        if "emu" not in self.plan.sweep.backends:
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
            modules=self.plan.modules,
        )

    def _count(self, runs: Sequence[SweepRun]) -> None:
        known = known_runs(self.folder)
        done = known.done
        self.summary.other_versions = sum(version != self.plan.version for version, _ in known.status.values())
        self.summary.total = len(runs)
        self.summary.status = Counter(done[run.run_id] for run in runs if run.run_id in done)
