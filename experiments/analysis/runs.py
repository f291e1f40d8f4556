"""The runs of a sweep as a Spark DataFrame: one row per run, and which of its columns are axes and which metrics."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from protocols.errors import UsageError

__all__ = ["AXIS", "CASE", "METRIC", "Runs", "axis_column", "metric_column", "open_runs", "plain_name", "pick", "read_rows"]

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
    """One row per run. `frame` holds the columns of the store; names of axes and metrics are dotted, as users write them."""

    frame: Any
    axes: tuple[str, ...]
    metrics: tuple[str, ...]
    count: int
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


def open_runs(session: Any, folder: Path | str, version: str | None = None) -> Runs:
    """The runs below `folder`, each once (a good one before a failed one), of one code version: the last that ran, or `version`."""
    frame = read_rows(session, folder, "runs")
    versions = _versions(frame)
    if version is not None and version not in versions:
        raise UsageError(f"--code: value {version!r} is not allowed; one of {', '.join(versions)}")
    if len(versions) > 1:
        from pyspark.sql import functions as f

        frame = frame.where(f.col("version") == (version or versions[0]))
    frame, count = _each_once(frame)
    axes = [plain_name(name) for name in frame.columns if name.startswith(AXIS)]
    metrics = [plain_name(name) for name in frame.columns if name.startswith(METRIC)]
    if _has_cases(frame):
        axes.append(CASE)
    return Runs(frame, tuple(axes), tuple(sorted(metrics)), count, versions)


def read_rows(session: Any, folder: Path | str, dataset: str) -> Any:
    """A dataset of the store (`runs`, `receivers`, `series`); UsageError where it is not there."""
    from pyspark.errors import AnalysisException

    place = f"{folder}/{dataset}"
    try:
        # Files of one sweep can differ in columns: a metric that no run of a file had is missing there.
        return session.read.option("mergeSchema", "true").parquet(place)
    except AnalysisException as error:
        raise UsageError(f"{place}: no results are there; `mcastlab sweep SWEEP.yaml --out {folder}` makes them") from error


def _versions(frame: Any) -> tuple[str, ...]:
    """Code versions in the store, the one that ran last first."""
    from pyspark.sql import functions as f

    rows = frame.groupBy("version").agg(f.max("started").alias("last")).collect()
    return tuple(row["version"] for row in sorted(rows, key=lambda row: (row["last"], row["version"]), reverse=True))


def _each_once(frame: Any) -> tuple[Any, int]:
    """Without repetitions of a run, and how many there are. Sorting them out is only paid for when there are any."""
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    total, different = frame.agg(f.count("*"), f.countDistinct("run_id")).first()
    if total != different:
        best = Window.partitionBy("run_id").orderBy((f.col("status") == "ok").desc(), f.col("attempt").desc(), f.col("started"))
        frame = frame.withColumn("_place", f.row_number().over(best)).where("_place = 1").drop("_place")
    return frame, different


def _has_cases(frame: Any) -> bool:
    return CASE in frame.columns and not frame.where("`case` is not null").isEmpty()
