"""Compact the many small Parquet files of a sweep into few; above a thousand files, reading them dominates a query."""

import shutil
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from experiments.output.folder_lock import claim
from experiments.sweep.store.datasets import NESTED, location, read_dataset
from experiments.sweep.store.nested import is_nested, write_nested
from experiments.sweep.store.parts import parts

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["compact"]

ROWS_OF_FILE = 1_000_000


def compact(spark: "SparkSession", folder: Path) -> tuple[int, int]:
    """Rewrite every dataset as few files; return (files before, files after). UsageError while a sweep writes to the folder.

    New files are complete before old ones are removed; rows duplicated by a crash in between are read once.
    """
    with claim(folder, "sweep"):
        write_nested(spark, folder, [name for name in NESTED if is_nested(folder, name)])
        before = _files(folder)
        job = f"job={uuid4()}"
        for dataset in ("receivers", "series", "runs"):
            _rewrite(spark, folder, dataset, job)
        return before, _files(folder)


def _files(folder: Path) -> int:
    return sum(len(parts(folder, dataset)) for dataset in ("runs", *NESTED))


def _rewrite(spark: "SparkSession", folder: Path, dataset: str, job: str) -> None:
    old = sorted({path.parent for path in parts(folder, dataset)})
    if not old:
        return
    frame = read_dataset(spark, folder, dataset)
    files = max(1, frame.count() // ROWS_OF_FILE)
    frame.coalesce(files).write.option("compression", "zstd").parquet(location(folder / dataset / job))
    for part in old:
        shutil.rmtree(part)
