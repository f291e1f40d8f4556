"""Name the file of a sweep's folder that is damaged, and say what to do about it."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shlex import quote

from experiments.sweep.store.datasets import KEYS, OF_A_RUN
from experiments.sweep.store.parts import parts
from protocols.errors import McastlabError, UsageError

__all__ = ["naming_damage"]

_FILE = re.compile(r"file:/+([^\s'\"\]]+\.parquet)")
"""A Parquet file as messages of Spark name it."""


@contextmanager
def naming_damage(*folders: Path) -> Iterator[None]:
    """Raise UsageError in place of an error of what is done with the results in these folders, if a file of them is damaged."""
    try:
        yield
    except McastlabError:
        raise
    except Exception as error:
        for folder in folders:
            for dataset in KEYS:
                _check(folder, dataset, error)
        raise


def _check(folder: Path, dataset: str, error: Exception) -> None:
    """Raise UsageError if a file of a dataset can't be read, holds something else, or is named in the error."""
    named, place = {Path("/", name).resolve() for name in _FILE.findall(_text_of(error))}, quote(str(folder))
    for path in parts(folder, dataset):
        why = _wrong_with(path, OF_A_RUN if dataset == "runs" else KEYS[dataset])
        if why is not None and dataset == "runs":
            advice = f"mcastlab sweep SWEEP.yaml --out {place} --resume sets it aside and makes its runs again"
        elif why is not None:
            advice = f"remove {path.parent}; mcastlab results {place} --compact writes it again if runs still have the rows"
        elif path.resolve() in named:
            why, advice = "differs from its checksum", f"remove {path.parent / f'.{path.name}.crc'} if the file is right"
        else:
            continue
        raise UsageError(f"{path}: {why}; {advice}") from error


def _text_of(error: Exception) -> str:
    try:
        return str(error)
    except Exception:  # noqa: BLE001  (the text of an error of Java may be missing)
        return ""


def _wrong_with(path: Path, columns: tuple[str, ...]) -> str | None:
    """Return what is wrong with a Parquet file that has to have these columns; None if nothing is."""
    import pyarrow as pa
    from pyarrow import parquet

    try:
        file = parquet.ParquetFile(path)
        missing = [name for name in columns if name not in file.schema_arrow.names]
        if missing:
            return f"is no file of a sweep, it has no column {missing[0]}"
        for group in range(file.num_row_groups):
            file.read_row_group(group, use_threads=False)
    except (pa.ArrowException, OSError) as error:
        return f"is damaged, or no Parquet file ({(str(error).splitlines() or [''])[0][:100]})"
    return None
