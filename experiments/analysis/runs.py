"""The runs of a sweep as a Spark DataFrame, one row per run, with its columns classified as axes and metrics."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Any

from experiments.analysis.derived import DERIVED, with_derived
from experiments.scenario.suggestion import one_of
from experiments.sweep.spec.metrics import METRICS
from experiments.sweep.store.datasets import runs
from experiments.sweep.store.invocations import chosen_version, read_invocations
from protocols.errors import UsageError

__all__ = ["AXIS", "CASE", "METRIC", "Runs", "axis_column", "flat_row", "metric_column", "open_runs", "pick", "plain_name"]

AXIS, METRIC = "p_", "m_"
CASE = "case"
"""Column of the named case a run belongs to; treated as an axis."""
_COMPLETED = "m_completed"
_CPU_BOUND = "cpu_bound"
"""Metric that is 1 for a run that a core of the machine limited."""


def plain_name(column: str) -> str:
    """Convert a column name to the user's name: `p_topology__receivers` to `topology.receivers`."""
    return column.removeprefix(AXIS).removeprefix(METRIC).replace("__", ".")


def axis_column(name: str) -> str:
    """Return the column of an axis, or of the case."""
    return CASE if name == CASE else AXIS + name.replace(".", "__")


def metric_column(name: str) -> str:
    """Return the column of a metric."""
    return METRIC + name.replace(".", "__")


def flat_row(keys: Mapping[str, Any], numbers: Mapping[str, Any]) -> dict[str, Any]:
    """Return one flat row: the values of the axes, then the numbers; an axis named like a number has the name of its column."""
    return {axis_column(name) if name in numbers else name: value for name, value in keys.items()} | dict(numbers)


def pick(option: str, written: str, known: Sequence[str], kind: str) -> str:
    """Return the one of `known` dotted names that `written` is, or is an unambiguous suffix of; UsageError otherwise.

    `kind` is what these names are, axis or metric.
    """
    if written in known:
        return written
    ends = [name for name in known if name.endswith("." + written)]
    if len(ends) == 1:
        return ends[0]
    why = one_of(written, known) if known else f"these runs have no {kind}"
    if ends:
        why = f"it is ambiguous: {', '.join(ends)}"
    raise UsageError(f"{option}: value {written!r} is not allowed; {why}")


@dataclass(frozen=True)
class Runs:
    """One row per run. `frame` has the columns of the store; names of axes and metrics are dotted, as users write them.

    `metrics` are those with a value in any run. `failed` counts runs whose status is not ok; `incomplete` those with status ok
    at whose end a receiver lacked something, so that they have no completion time. `version` is the code version of these runs,
    `versions` are all in the store.
    """

    frame: Any
    axes: tuple[str, ...]
    metrics: tuple[str, ...]
    count: int
    failed: int
    version: str
    versions: tuple[str, ...]
    incomplete: int = 0

    @property
    def ok(self) -> Any:
        """The runs with status ok."""
        from pyspark.sql import functions as f

        return self.frame.where(f.col("status") == "ok")

    @property
    def judged(self) -> Any:
        """The runs with status ok that no core of the machine limited: those that theory and other runs are compared with."""
        from pyspark.sql import functions as f

        if _CPU_BOUND not in self.metrics:
            return self.ok
        return self.ok.where(f.coalesce(f.col(metric_column(_CPU_BOUND)), f.lit(0.0)) == 0.0)

    def bound_points(self) -> frozenset[tuple[Any, ...]]:
        """Return the points, as values of the axes in their order, at which a core of the machine limited a run."""
        if _CPU_BOUND not in self.metrics:
            return frozenset()
        rows = self.ok.where(f"{metric_column(_CPU_BOUND)} > 0").select(*map(axis_column, self.axes)).distinct().collect()
        return frozenset(map(tuple, rows))

    def check_some_succeeded(self, folder: Path) -> None:
        """Raise UsageError if there is no run with status ok."""
        if not self.count:
            raise UsageError(f"{folder}: holds no runs of version {self.version}")
        if self.failed == self.count:
            raise UsageError(f"{folder}: no run succeeded; `mcastlab results {quote(str(folder))}` shows the reasons")

    def chosen_axes(self, written: Iterable[str]) -> tuple[str, ...]:
        """Resolve axis names given to `--by` to full names. UsageError for an unknown or ambiguous one."""
        return tuple(dict.fromkeys(pick("--by", name.strip(), self.axes, "axis") for name in written if name.strip()))

    def chosen_metrics(self, written: Iterable[str]) -> tuple[str, ...]:
        """Resolve metric names given to `--metric` to full names; all metrics if there are none.

        UsageError for an unknown or ambiguous one, and one of which no run has a value.
        """
        written = [name.strip() for name in written if name.strip()]
        for name in written:
            if name not in self.metrics and (name in METRICS or name in DERIVED):
                raise UsageError(f"--metric: value {name!r} is not allowed; no run here has a value of it")
        chosen = [pick("--metric", name, self.metrics, "metric") for name in written]
        return tuple(dict.fromkeys(chosen)) or self.metrics


def open_runs(session: Any, folder: Path, version: str | None = None) -> Runs:
    """Open the runs in a sweep's folder, each once, of one code version: that of the latest invocation, or `version`.

    Raises UsageError for a version the folder does not hold.
    """
    from pyspark.sql import functions as f

    chosen = chosen_version(folder, version)
    known = sorted({str(job["version"]) for job in read_invocations(folder)})
    frame: Any = runs(session, folder, chosen)
    axes = [plain_name(name) for name in frame.columns if name.startswith(AXIS)]
    metrics = sorted(plain_name(name) for name in frame.columns if name.startswith(METRIC))
    # One pass counts the runs and the failed ones, finds the metrics with a value, and finds whether there are named cases.
    failed = f.count_if(f.col("status") != "ok")
    # Folders of other programs may not have this metric.
    incomplete = f.count_if(f.col(_COMPLETED) == 0.0) if _COMPLETED in frame.columns else f.lit(0)
    values = [f.count(metric_column(metric)) for metric in metrics]
    seen = frame.agg(f.count("*"), f.count(CASE), failed, incomplete, *values).first()
    if seen[1]:
        axes.append(CASE)
    frame, there = with_derived(frame, [metric for metric, count in zip(metrics, seen[4:], strict=True) if count])
    return Runs(frame, tuple(axes), there, seen[0], seen[2], chosen, tuple(known), seen[3])
