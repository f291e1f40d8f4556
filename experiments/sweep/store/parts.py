"""The Parquet files of a sweep's folder."""

from pathlib import Path

__all__ = ["holds_version", "parts"]


def parts(folder: Path, dataset: str = "runs") -> list[Path]:
    """Return the complete Parquet files of a dataset, sorted."""
    return sorted(path for path in (folder / dataset).glob("job=*/*.parquet") if not path.name.startswith(("_", ".")))


def holds_version(path: Path, version: str) -> bool:
    """Return whether a file of `runs` has a row of this code version; False for a damaged or foreign file."""
    import pyarrow as pa
    from pyarrow import parquet

    try:
        return version in parquet.ParquetFile(path).read(columns=["version"], use_threads=False)["version"].to_pylist()
    except (pa.ArrowException, OSError, KeyError):
        return False
