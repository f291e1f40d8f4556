"""The runs of a sweep as a Spark DataFrame: one row per run, and which of its columns are axes and which metrics."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experiments.analysis.derived import with_derived
from experiments.sweep.store.datasets import runs
from experiments.sweep.store.invocations import latest_version, read_invocations
from protocols.errors import UsageError

__all__ = ["AXIS", "CASE", "METRIC", "Runs", "axis_column", "metric_column", "open_runs", "pick", "plain_name"]

AXIS, METRIC = "p_", "m_"
CASE = "case"
"""A column beside the axes: the named case a run belongs to."""


def plain_name(column: str) -> str:
    """What a user calls a column: `p_topology__receivers` is `topology.receivers`."""
    return column.removeprefix(AXIS).removeprefix(METRIC).replace("__", ".")


def axis_column(name: str) -> str:
    """The column of an axis, or of the case."""
    return CASE if name == CASE else AXIS + name.replace(".", "__")


def metric_column(name: str) -> str:
    """The column of a metric."""
    return METRIC + name.replace(".", "__")


def pick(option: str, said: str, known: Sequence[str]) -> str:
    """The one of the `known` dotted names that a user meant: the whole of it, or an end of it that no other has."""
    if said in known:
        return said
    ends = [name for name in known if name.endswith("." + said)]
    if len(ends) == 1:
        return ends[0]
    what = f"several are meant by it: {', '.join(ends)}" if ends else f"one of {', '.join(known) or 'none at all'}"
    raise UsageError(f"{option}: value {said!r} is not allowed; {what}")


@dataclass(frozen=True)
class Runs:
    """One row per run. `frame` holds the columns of the store; names of axes and metrics are dotted, as users write them.

    `metrics` are those that any run came to; `versions` are all those of the code in the store, `version` that of these runs.
    """

    frame: Any
    axes: tuple[str, ...]
    metrics: tuple[str, ...]
    count: int
    version: str
    versions: tuple[str, ...]

    @property
    def ok(self) -> Any:
        """The runs that came to a result."""
        from pyspark.sql import functions as f

        return self.frame.where(f.col("status") == "ok")

    def chosen_axes(self, said: Iterable[str], option: str = "--by") -> tuple[str, ...]:
        """Axes as the user wrote them, by their whole names."""
        return tuple(dict.fromkeys(pick(option, name.strip(), self.axes) for name in said if name.strip()))

    def chosen_metrics(self, said: Iterable[str], option: str = "--metric") -> tuple[str, ...]:
        """Metrics as the user wrote them, by their whole names; all when none was written."""
        return tuple(dict.fromkeys(pick(option, name.strip(), self.metrics) for name in said if name.strip())) or self.metrics


def open_runs(session: Any, folder: Path, version: str | None = None) -> Runs:
    """The runs in a sweep's folder, each once, of one version of the code: the last that ran, or `version`."""
    from pyspark.sql import functions as f

    known = sorted({str(job["version"]) for job in read_invocations(folder)})
    if version is not None and version not in known:
        raise UsageError(f"--version: value {version!r} is not allowed; one of {', '.join(known) or 'none at all'}")
    chosen = version or latest_version(folder)
    frame: Any = runs(session, folder, chosen)
    axes = [plain_name(name) for name in frame.columns if name.startswith(AXIS)]
    metrics = sorted(plain_name(name) for name in frame.columns if name.startswith(METRIC))
    # One pass says how many runs there are, which metrics any of them came to, and whether there are named cases.
    seen = frame.agg(f.count("*"), f.count(CASE), *(f.count(metric_column(metric)) for metric in metrics)).first()
    if seen[1]:
        axes.append(CASE)
    frame, there = with_derived(frame, [metric for metric, count in zip(metrics, seen[2:], strict=True) if count])
    return Runs(frame, tuple(axes), there, seen[0], chosen, tuple(known))
