"""The folder of a sweep: Parquet datasets, one part per invocation, and what is in them.

sweep.yaml            a copy of the sweep file
base.yaml             the base scenario as it was read
jobs/<uuid>.json      versions, commit, machine and master of each invocation
runs/job=<uuid>/      one row per run
receivers/job=<uuid>/ one row per run and receiver
series/job=<uuid>/    one row per run, name and time
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from experiments.sweep.store.invocations import latest_version
from protocols.errors import UsageError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = [
    "NESTED",
    "StoredRuns",
    "location",
    "metric_values",
    "parts",
    "quarantine",
    "read_dataset",
    "receivers",
    "runs",
    "series",
    "stored_runs",
    "table",
]

NESTED = ("receivers", "series")
KEYS = {"runs": ("run_id",), "receivers": ("run_id", "receiver"), "series": ("run_id", "name", "t")}
"""What names a row of each dataset."""


@dataclass(frozen=True, slots=True)
class StoredRuns:
    """The runs a folder holds: run_id -> (version, status), and the files that could not be read."""

    status: dict[str, tuple[str, str]]
    unreadable: tuple[Path, ...] = ()

    @property
    def done(self) -> dict[str, str]:
        """run_id -> status of every run."""
        return {run_id: status for run_id, (_, status) in self.status.items()}


def location(path: Path) -> str:
    """The path as Spark takes it, also where its own file system is another one. No URI: = and spaces stay as they are."""
    return f"file://{path.absolute()}"


def parts(folder: Path, dataset: str = "runs") -> list[Path]:
    """The Parquet files of a dataset that are finished, sorted."""
    return sorted(path for path in (folder / dataset).glob("job=*/*.parquet") if not path.name.startswith(("_", ".")))


def stored_runs(folder: Path) -> StoredRuns:
    """What has been computed; needs no Spark. A file that broke off counts as not there, and its runs as missing."""
    found: dict[str, tuple[str, str]] = {}
    unreadable = []
    for path in parts(folder):
        rows = _columns(path, ["run_id", "version", "status"])
        if rows is None:
            unreadable.append(path)
            continue
        for row in rows:
            if found.get(row["run_id"], ("", ""))[1] != "ok":
                found[row["run_id"]] = (row["version"], row["status"])
    return StoredRuns(found, tuple(unreadable))


def metric_values(folder: Path, metrics: Sequence[str]) -> dict[str, dict[str, float | None]]:
    """run_id -> metric -> value of every run that has a row; an ok row counts before one that is not."""
    found: dict[str, dict[str, float | None]] = {}
    ok: set[str] = set()
    for path in parts(folder):
        for row in _columns(path, ["run_id", "status", *(f"m_{name}" for name in dict.fromkeys(metrics))]) or ():
            if row["run_id"] not in ok:
                found[row["run_id"]] = {name: row[f"m_{name}"] for name in metrics}
                ok |= {row["run_id"]} if row["status"] == "ok" else set()
    return found


def quarantine(files: Iterable[Path]) -> None:
    """Keep files that can't be read, under a name that nobody reads."""
    for path in files:
        path.rename(path.with_name(f".{path.name}.broken"))


def _columns(path: Path, names: list[str]) -> Iterator[dict[str, Any]] | None:
    import pyarrow as pa
    from pyarrow import parquet

    try:
        rows: list[dict[str, Any]] = parquet.ParquetFile(path).read(columns=names, use_threads=False).to_pylist()
    except (pa.ArrowInvalid, OSError):
        return None
    return iter(rows)


def runs(spark: "SparkSession", folder: Path, version: str | None = None) -> "DataFrame":
    """One row per run of one version of the code (default: of the last invocation), without the nested columns.

    A run that was computed more than once counts once; a row that is ok wins.
    """
    from pyspark.sql import functions as f

    wanted = version or latest_version(folder)
    return read_dataset(spark, folder, "runs").where(f.col("version") == wanted)


def receivers(spark: "SparkSession", folder: Path) -> "DataFrame":
    """One row per run and receiver, of all versions of the code: join with `runs` for one."""
    return read_dataset(spark, folder, "receivers")


def series(spark: "SparkSession", folder: Path) -> "DataFrame":
    """One row per run, name and time, of all versions of the code: join with `runs` for one."""
    return read_dataset(spark, folder, "series")


def read_dataset(spark: "SparkSession", folder: Path, dataset: str) -> "DataFrame":
    """Everything in a dataset, each row once, without nested columns. UsageError when there is nothing."""
    if not parts(folder, dataset):
        kept = "" if dataset == "runs" else f" (keep.{dataset} in the sweep file says whether they are kept)"
        raise UsageError(f"{folder}: holds no {dataset} of a sweep{kept}")
    frame = spark.read.option("mergeSchema", "true").parquet(location(folder / dataset)).drop(*NESTED, "job")
    return _once(frame, list(KEYS[dataset]))


def _once(frame: "DataFrame", key: list[str]) -> "DataFrame":
    """One row per key, an ok one first. A window would move every row, so it is made only where something is there twice."""
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    counts = frame.agg(f.count("*").alias("rows"), f.countDistinct(*key).alias("keys")).first()
    if counts is None or counts["rows"] == counts["keys"]:
        return frame
    if "status" not in frame.columns:
        return frame.dropDuplicates(key)
    best = Window.partitionBy(*key).orderBy((f.col("status") != "ok").cast("int"), f.col("started"))
    return frame.withColumn("_rank", f.row_number().over(best)).where("_rank = 1").drop("_rank")


def table(folder: Path, version: str | None = None) -> list[dict[str, Any]]:
    """The rows of `runs` without Spark, sorted by point and seed: for small questions."""
    from pyarrow import parquet

    wanted = version or latest_version(folder)
    best: dict[str, dict[str, Any]] = {}
    for path in parts(folder):
        file = parquet.ParquetFile(path)
        names = [name for name in file.schema_arrow.names if name not in NESTED]
        for row in file.read(columns=names, use_threads=False).to_pylist():
            if row["version"] == wanted and best.get(row["run_id"], {"status": ""})["status"] != "ok":
                best[row["run_id"]] = row
    return sorted(best.values(), key=lambda row: (row["point"], row["seed"], row["run_id"]))
