"""The folder that one run writes to, and no two runs at once."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from experiments.captures.trace_file import NAME as TRACE
from experiments.output.folder_lock import LOCK, claim
from protocols.errors import UsageError

__all__ = ["check_trace", "claim_run", "is_sweep"]

_RESULTS = ("result.json", "scenario.json", "receivers.csv", "series.parquet")


@contextmanager
def claim_run(folder: Path) -> Iterator[None]:
    """Create the folder of a run, hold an exclusive lock on it, and remove the files that an earlier run left there.

    A report would show the earlier run's trace and captures as this one's. UsageError as for `claim`, and for the folder of a
    sweep.
    """
    if is_sweep(folder):
        raise UsageError(f"--out: value {str(folder)!r} is not allowed; it is the folder of a sweep")
    earlier = (folder / LOCK).exists()
    with claim(folder, "run"):
        if earlier:
            for path in (*(folder / name for name in (*_RESULTS, TRACE)), *(folder / "captures").glob("*.pcapng")):
                path.unlink(missing_ok=True)
        yield


def check_trace(trace: Path | None, folder: Path | None) -> None:
    """Raise UsageError for a trace that is to be one of the other files of the folder."""
    others = () if folder is None else (folder.resolve() / name for name in _RESULTS)
    if trace is not None and trace.resolve() in others:
        raise UsageError(f"--trace: value {str(trace)!r} is not allowed; --out writes another file there")


def is_sweep(folder: Path) -> bool:
    """Return whether a folder holds the results of a sweep."""
    return (folder / "sweep.yaml").exists()
