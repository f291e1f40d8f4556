"""Execute a sweep: determine missing runs, run them as Spark jobs, repeat while adaptive rules add runs, count the results."""

import shutil
from collections import Counter
from collections.abc import Container, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from experiments.output.folder_lock import claim
from experiments.output.html_table import html_table
from experiments.running.child_process import ChildProcess, Perform
from experiments.sweep.run import warm_session
from experiments.sweep.run.adaptive import deciding_metrics, planned_runs
from experiments.sweep.run.calibration import LIMIT, Calibration, calibrate
from experiments.sweep.run.deployment import deploy
from experiments.sweep.run.progress import Progress
from experiments.sweep.run.single_run import perform as perform_run
from experiments.sweep.run.spark_job import run_job, todo_table
from experiments.sweep.run.spark_session import cores_of, session, stop
from experiments.sweep.run.task import Task
from experiments.sweep.run.task_packing import pack
from experiments.sweep.spec.grid import SweepPlan, SweepRun
from experiments.sweep.store.datasets import StoredRuns, metric_values, quarantine, stored_runs
from experiments.sweep.store.folder import check_folder, prepare
from experiments.sweep.store.invocations import read_invocations, record_invocation
from experiments.sweep.store.nested import write_nested
from protocols.errors import UsageError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["SweepOptions", "SweepSummary", "missing_runs", "run_sweep"]

REPORTS, STOP = "progress", "stop"
"""Prefixes of what exists while a job runs: the folder of the reports of tasks, and the file that makes tasks end."""


@dataclass(frozen=True, slots=True)
class SweepOptions:
    """Execution options; none of them changes results."""

    master: str = "local[*]"
    remote: str | None = None
    resume: bool = False
    retry: bool = False
    limit: int | None = None
    quiet: bool = False
    perform: Perform = perform_run


@dataclass(slots=True)
class SweepSummary:
    """Result of an invocation: `status` counts all runs the sweep consists of, `made` those of this invocation."""

    folder: Path
    version: str
    total: int = 0
    made: int = 0
    known: int = 0
    other_versions: int = 0
    unreadable: int = 0
    incomplete: int = 0
    """Runs with status ok at whose end a receiver did not have everything."""
    interrupted: bool = False
    status: Counter[str] = field(default_factory=Counter)

    @property
    def left(self) -> int:
        """Runs not executed because of an interrupt or a limit."""
        return self.total - self.status.total()

    @property
    def failed(self) -> int:
        """Runs whose status is not ok."""
        return self.status.total() - self.status["ok"]

    def _repr_html_(self) -> str:
        counts = {
            "runs": self.total,
            **self.status,
            "incomplete": self.incomplete,
            "left": self.left,
            "made now": self.made,
            "there before": self.known,
        }
        return html_table(((name, str(count)) for name, count in counts.items()), caption=str(self.folder))

    def plain(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        counts = {
            key: getattr(self, key)
            for key in ("total", "made", "known", "left", "failed", "incomplete", "other_versions", "unreadable")
        }
        about = {"folder": str(self.folder), "version": self.version, "interrupted": self.interrupted}
        return {**about, **counts, "status": dict(sorted(self.status.items()))}


def missing_runs(runs: Sequence[SweepRun], known: StoredRuns, retry: bool = False) -> list[SweepRun]:
    """Return the runs without a row; with `retry` also those whose status is not ok."""
    done = known.done
    return [run for run in runs if run.run_id not in done or (retry and done[run.run_id] != "ok")]


def run_sweep(plan: SweepPlan, folder: Path, options: SweepOptions, spark: "SparkSession | None" = None) -> SweepSummary:
    """Execute the missing runs of a sweep in `folder`. A Spark session that is passed is used and left open."""
    resume = options.resume or options.retry
    # A refused folder gets no lock; once locked it is checked again, since another sweep may have written to it meanwhile.
    check_folder(plan, folder, resume)
    with claim(folder, "sweep"):
        prepare(plan, folder, resume)
        _remove_signs(folder)
        return _Driver(plan, folder, options, spark).run()


def _remove_signs(folder: Path) -> None:
    """Remove the reports and stop files of drivers that were killed."""
    for path in folder.glob(f".{REPORTS}-*"):
        shutil.rmtree(path, ignore_errors=True)
    for path in folder.glob(f".{STOP}-*"):
        path.unlink()


class _Driver:
    def __init__(self, plan: SweepPlan, folder: Path, options: SweepOptions, spark: "SparkSession | None") -> None:
        self.plan, self.folder, self.options = plan, folder, options
        self.spark = spark
        self.owns_session = spark is None
        self.calibration: Calibration | None = None
        self.summary = SweepSummary(folder, plan.version)

    def run(self) -> SweepSummary:
        before = [job["version"] for job in read_invocations(self.folder)]
        try:
            runs = self._execute_until_done()
            self._count(runs)
            if self.summary.status and not self.summary.made and before[-1:] != [self.plan.version]:
                # All its runs were there; results of this version are the ones to show from now on.
                record_invocation(self.folder, self.options.remote or self.options.master, 0, self.plan.version)
            if self.spark is not None and not self.summary.interrupted:
                write_nested(self.spark, self.folder, self._nested())
        finally:
            if self.owns_session and self.spark is not None:
                stop(self.spark)
        return self.summary

    def _execute_until_done(self) -> Sequence[SweepRun]:
        """Execute runs until no more are planned or the user interrupts; return all planned runs."""
        metrics, asked = deciding_metrics(self.plan), set[str]()
        while True:
            runs = planned_runs(self.plan, metric_values(self.folder, metrics))
            todo = self._todo(runs, asked)
            if todo:
                self._execute(todo)
            if not todo or not metrics or self.summary.interrupted:
                return runs
            asked |= {run.run_id for run in runs}

    def _nested(self) -> list[str]:
        keep = self.plan.sweep.keep
        return [name for name, kept in (("receivers", keep.receivers), ("series", keep.series is not None)) if kept]

    def _todo(self, runs: Sequence[SweepRun], asked: Container[str]) -> Sequence[SweepRun]:
        """Return the runs to execute, without those this invocation planned before."""
        known = stored_runs(self.folder)
        quarantine(known.unreadable)
        new = [run for run in runs if run.run_id not in asked]
        todo = missing_runs(new, known, self.options.retry)
        self.summary.known += len(new) - len(todo)
        self.summary.unreadable += len(known.unreadable)
        if self.options.limit is not None:
            todo = todo[: max(0, self.options.limit - self.summary.made)]
        return todo

    def _execute(self, todo: Sequence[SweepRun]) -> None:
        sweep, options = self.plan.sweep, self.options
        if self.spark is None and options.remote is None and warm_session.fits(self._master()):
            # Its Spark starts while runs are timed.
            warm_session.prepare()
        if self.calibration is None:
            # Fork the child before Java starts its threads.
            with ChildProcess(options.perform, min(LIMIT, sweep.time_limit), sweep.memory) as child:
                self.calibration = calibrate(child, todo)
        if self.spark is None:
            self.spark = session(self._master(), self.folder / "spark.log", options.remote)
            if options.remote is not None or not options.master.startswith("local["):
                deploy(self.spark)
        tasks = pack([self.calibration.cost(run) for run in todo], cores_of(self.spark))
        if "emu" in sweep.backends:
            # Emulated runs are long, so each gets its own task and is stored when it ends.
            tasks = list(range(len(todo)))
        job = record_invocation(self.folder, options.remote or options.master, len(todo), self.plan.version)
        part = self.folder / "runs" / f"job={job}"
        reports, stop_file = (self.folder.absolute() / f".{name}-{job}" for name in (REPORTS, STOP))
        progress = Progress(part, len(todo), self.summary.known, options.quiet, reports=reports)
        table = todo_table(todo, tasks, self.plan.axis_types, self.plan.version)
        try:
            self.summary.interrupted = not run_job(self.spark, table, self._task(reports, stop_file), part, progress)
        finally:
            shutil.rmtree(reports, ignore_errors=True)
            stop_file.unlink(missing_ok=True)
        self.summary.made += progress.done

    def _master(self) -> str:
        """Return the Spark master; emulations share the kernel of this machine, so they run one at a time on local[1].

        Its session is this process's own: workers have to be in the network and user namespaces of the command.
        """
        if "emu" not in self.plan.sweep.backends:
            return self.options.master
        if not self.options.master.startswith("local") or self.options.remote:
            raise UsageError(
                f"--master: value {self.options.master!r} is not allowed; emulations run on this machine, local[1]"
            )
        return "local[1]"

    def _task(self, reports: Path, stop_file: Path) -> Task:
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
            reports=str(reports),
            stop=str(stop_file),
        )

    def _count(self, runs: Sequence[SweepRun]) -> None:
        known = stored_runs(self.folder)
        done = known.done
        self.summary.other_versions = sum(version != self.plan.version for version, _ in known.status.values())
        self.summary.total = len(runs)
        values = metric_values(self.folder, ["completed"])
        self.summary.incomplete = sum(values.get(run.run_id, {}).get("completed") == 0.0 for run in runs)
        self.summary.status = Counter(done[run.run_id] for run in runs if run.run_id in done)
