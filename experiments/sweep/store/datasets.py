"""Read the Parquet datasets of a sweep's folder, one part per invocation.

sweep.yaml            copy of the sweep file
base.yaml             base scenario as read
plan.json             what a sweep that resumes must have in common
jobs/<uuid>.json      versions, commit, machine and master of each invocation
runs/job=<uuid>/      one row per run
receivers/job=<uuid>/ one row per run and receiver
series/job=<uuid>/    one row per run, name and time
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

from experiments.sweep.store.invocations import chosen_version
from experiments.sweep.store.parts import parts
from protocols.errors import UsageError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = [
    "KEYS",
    "NESTED",
    "OF_A_RUN",
    "StoredRuns",
    "exploded",
    "location",
    "metric_values",
    "nested_table",
    "quarantine",
    "read_dataset",
    "receivers",
    "runs",
    "series",
    "stored_runs",
    "table",
    "unwritten",
]

NESTED = ("receivers", "series")
"""Datasets whose rows are nested in `runs` until they are written separately."""
KEYS = {"runs": ("run_id",), "receivers": ("run_id", "receiver"), "series": ("run_id", "name", "t")}
"""Primary key of each dataset."""
OF_A_RUN = ("run_id", "version", "point", "seed", "status")
"""Columns that all files of `runs` have."""
SMALL = 20_000
"""Rows up to which this process looks for duplicates itself."""


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
    """Return a path as Spark accepts it under any default file system; not a URI, so = and spaces stay unescaped."""
    return f"file://{path.absolute()}"


def stored_runs(folder: Path) -> StoredRuns:
    """List the stored runs without Spark; a damaged or foreign file counts as unreadable, and its runs as missing."""
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
    """Return run_id -> metric -> value of every stored run; an ok row takes precedence over a failed one."""
    found: dict[str, dict[str, float | None]] = {}
    ok: set[str] = set()
    for path in parts(folder):
        for row in _columns(path, ["run_id", "status", *(f"m_{name}" for name in dict.fromkeys(metrics))]) or ():
            if row["run_id"] not in ok:
                found[row["run_id"]] = {name: row.get(f"m_{name}") for name in metrics}
                ok |= {row["run_id"]} if row["status"] == "ok" else set()
    return found


def quarantine(files: Iterable[Path]) -> None:
    """Rename unreadable files so that no reader finds them."""
    for path in files:
        path.rename(path.with_name(f".{path.name}.broken"))


def _columns(path: Path, names: list[str]) -> Iterator[dict[str, Any]] | None:
    """Return the rows of a file of `runs` with these columns, as far as it has them; None if it is damaged or foreign."""
    import pyarrow as pa
    from pyarrow import parquet

    try:
        file = parquet.ParquetFile(path)
        if not set(OF_A_RUN) <= set(file.schema_arrow.names):
            return None
        rows: list[dict[str, Any]] = file.read(columns=names, use_threads=False).to_pylist()
    except (pa.ArrowException, OSError):
        return None
    return iter(rows)


def runs(spark: "SparkSession", folder: Path, version: str | None = None) -> "DataFrame":
    """Return one row per point and seed of one code version (default: the latest invocation's), without the nested columns.

    A run has several rows if it was interrupted, repeated with --retry, or made again because `keep` of the sweep file had
    changed, which gives it another id. Of these one with status ok takes precedence, then the latest.
    """
    from pyspark.sql import functions as f

    wanted = chosen_version(folder, version)
    frame = read_dataset(spark, folder, "runs").where(f.col("version") == wanted)
    return _once(frame, folder, "runs", _of_a_seed(frame.columns))


def receivers(spark: "SparkSession", folder: Path) -> "DataFrame":
    """Return one row per run and receiver, of all code versions; join with `runs` to select one."""
    return read_dataset(spark, folder, "receivers")


def series(spark: "SparkSession", folder: Path) -> "DataFrame":
    """Return one row per run, name and time, of all code versions; join with `runs` to select one."""
    return read_dataset(spark, folder, "series")


def read_dataset(spark: "SparkSession", folder: Path, dataset: str) -> "DataFrame":
    """Return every row of a dataset once, without nested columns; UsageError if it is empty.

    Receivers and series of interrupted invocations are still nested in their runs.
    """
    nested = [exploded(spark, part, dataset) for part in unwritten(folder, dataset)] if dataset in NESTED else []
    frames = [frame for frame in nested if frame is not None]
    if parts(folder, dataset):
        frames.append(spark.read.schema(_schema(folder, dataset)).parquet(location(folder / dataset)).drop(*NESTED, "job"))
    if not frames:
        raise _none_of(folder, dataset)
    frame = reduce(lambda one, other: one.unionByName(other), frames)
    # Of an invocation that was killed while it wrote a part, some rows are in both places.
    return (
        frame.dropDuplicates(list(KEYS[dataset]))
        if len(frames) > 1 or not parts(folder, dataset)
        else _once(frame, folder, dataset, KEYS[dataset])
    )


def _of_a_seed(columns: Iterable[str]) -> tuple[str, ...]:
    """Return the columns that tell the runs of one code version apart, whatever was kept of them."""
    return tuple(name for name in columns if name in ("version", "case", "seed") or name.startswith("p_"))


def unwritten(folder: Path, dataset: str) -> list[Path]:
    """Return the parts of `runs` whose nested rows were not written to the dataset, as that of an interrupted invocation."""
    found = sorted((folder / "runs").glob("job=*"))
    return [part for part in found if any(part.glob("*.parquet")) and not (folder / dataset / part.name / "_SUCCESS").exists()]


def exploded(spark: "SparkSession", part: Path, dataset: str) -> "DataFrame | None":
    """Return the rows of a dataset that are nested in a part of `runs`; None if it has no such column."""
    from pyspark.sql import functions as f

    frame = spark.read.parquet(location(part))
    if dataset not in frame.columns:
        return None
    return frame.select("run_id", f.explode(dataset).alias("one")).select("run_id", "one.*")


def _none_of(folder: Path, dataset: str) -> UsageError:
    kept = "" if dataset == "runs" else f" (keep.{dataset} in the sweep file says whether they are kept)"
    return UsageError(f"{folder}: holds no {dataset} of a sweep{kept}")


def _schema(folder: Path, dataset: str) -> Any:
    """Return Spark's schema of a dataset, from one file of each part: reading all footers would take a Spark job.

    Raises UsageError for parts whose columns have different types.
    """
    import pyarrow as pa
    from pyarrow import parquet
    from pyspark.sql.pandas.types import from_arrow_schema

    first = {path.parent: path for path in reversed(parts(folder, dataset))}
    try:
        return from_arrow_schema(pa.unify_schemas([parquet.read_schema(path) for path in first.values()]))
    except pa.ArrowTypeError as error:
        raise UsageError(f"{folder}: the columns of {dataset} have different types in its parts ({error})") from error


def _once(frame: "DataFrame", folder: Path, dataset: str, key: Sequence[str]) -> "DataFrame":
    """Return one row per key, preferring status ok, then the latest.

    Deduplication by a window shuffles every row, so it is applied only if some key occurs twice.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    if not _has_duplicates(frame, folder, dataset, key):
        return frame
    if "status" not in frame.columns:
        return frame.dropDuplicates(list(key))
    columns = [f"`{name}`" for name in key]
    best = Window.partitionBy(*columns).orderBy((f.col("status") != "ok").cast("int"), f.col("started").desc())
    return frame.withColumn("_rank", f.row_number().over(best)).where("_rank = 1").drop("_rank")


def _has_duplicates(frame: "DataFrame", folder: Path, dataset: str, key: Sequence[str]) -> bool:
    """Return whether a key occurs twice, without Spark for a small dataset, where its jobs would take longer than all else."""
    from pyarrow import parquet
    from pyspark.sql import functions as f

    files = [parquet.ParquetFile(path) for path in parts(folder, dataset)]
    rows: int = sum(file.metadata.num_rows for file in files)
    if rows > SMALL:
        # As one structure, since rows with a missing value would not be counted as columns.
        whole = f.struct(*(f"`{name}`" for name in key))
        counts = frame.agg(f.count("*").alias("rows"), f.countDistinct(whole).alias("keys")).first()
        return bool(counts is not None and counts["rows"] != counts["keys"])
    found = {
        row for file in files for row in zip(*(column.to_pylist() for column in file.read(columns=list(key))), strict=True)
    }
    return len(found) != rows


def table(folder: Path, version: str | None = None) -> list[dict[str, Any]]:
    """Return the rows of `runs` without Spark, each point and seed once, sorted by these, for small results."""
    from pyarrow import parquet

    wanted = chosen_version(folder, version)
    best: dict[tuple[Any, ...], dict[str, Any]] = {}
    for path in parts(folder):
        file = parquet.ParquetFile(path)
        names = [name for name in file.schema_arrow.names if name not in NESTED]
        for row in file.read(columns=names, use_threads=False).to_pylist():
            key = tuple(row[name] for name in _of_a_seed(names))
            if row["version"] == wanted and (key not in best or _preference(row) > _preference(best[key])):
                best[key] = row
    if not best:
        raise UsageError(f"{folder}: holds no runs of version {wanted}")
    return sorted(best.values(), key=lambda row: (row["point"], row["seed"], row["run_id"]))


def _preference(row: Mapping[str, Any]) -> tuple[bool, str]:
    # Folders of other programs may lack the time of a run.
    return row["status"] == "ok", str(row.get("started"))


def nested_table(folder: Path, dataset: str, version: str | None = None) -> list[dict[str, Any]]:
    """Return the rows of `receivers` or `series` without Spark, each with the parameters of its run; sorted by point and seed.

    UsageError if there is none.
    """
    from pyarrow import parquet

    found: dict[str, list[dict[str, Any]]] = {}
    for path in parts(folder):
        file = parquet.ParquetFile(path)
        rows = (
            file.read(columns=["run_id", dataset], use_threads=False).to_pylist() if dataset in file.schema_arrow.names else ()
        )
        found |= {row["run_id"]: row[dataset] for row in rows if row[dataset] is not None}
    # Runs that were compacted have their rows in the dataset alone.
    flat: dict[str, dict[Any, dict[str, Any]]] = {}
    for path in parts(folder, dataset):
        for row in parquet.ParquetFile(path).read(use_threads=False).to_pylist():
            run_id = row.pop("run_id")
            if run_id not in found:
                flat.setdefault(run_id, {})[tuple(row[name] for name in KEYS[dataset][1:])] = row
    found |= {run_id: list(rows.values()) for run_id, rows in flat.items()}
    if not any(found.values()):
        raise _none_of(folder, dataset)
    heads = [{name: value for name, value in run.items() if not name.startswith("m_")} for run in table(folder, version)]
    return [head | row for head in heads for row in found.get(head["run_id"], ())]
