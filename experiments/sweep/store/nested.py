"""Copy the rows nested in `runs` (one list per run) to the flat datasets `receivers` and `series`."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from experiments.sweep.store.datasets import exploded, location, unwritten
from experiments.sweep.store.parts import parts

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["is_nested", "write_nested"]


def is_nested(folder: Path, dataset: str) -> bool:
    """Return whether any run holds rows of this dataset nested in its own."""
    from pyarrow import parquet

    for path in parts(folder):
        file = parquet.ParquetFile(path)
        if dataset in file.schema_arrow.names:
            column = file.read(columns=[dataset], use_threads=False)[dataset]
            if column.null_count < len(column):
                return True
    return False


def write_nested(spark: "SparkSession", folder: Path, datasets: Sequence[str]) -> None:
    """Write the datasets `receivers` and `series` from the rows nested in `runs`, for parts not yet written."""
    for dataset in datasets:
        for part in unwritten(folder, dataset):
            flat = exploded(spark, part, dataset)
            # Parts that were compacted before this dataset was to be kept do not have it.
            if flat is not None:
                target = folder / dataset / part.name
                flat.write.mode("overwrite").option("compression", "zstd").parquet(location(target))
