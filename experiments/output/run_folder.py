"""The folder that one run writes to, and no two runs at once."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from experiments.captures.trace_file import NAME as TRACE
from experiments.output.folder_lock import LOCK, claim
from protocols.errors import LivelockError, McastlabError, UsageError

__all__ = ["check_trace", "claim_run", "is_sweep"]

_RESULTS = ("result.json", "scenario.json", "receivers.csv", "series.parquet")
_LAST = "receivers.csv"
"""The file of a result that is written last."""
_EARLIER = ".earlier"
"""Folder, in that of a run, of the files that an earlier run wrote, while the run has no result."""

_NO_RUN = (McastlabError, OSError, ImportError, KeyboardInterrupt)
"""Errors after which there is no run: a refusal, an extra that is missing, a full disk, an interrupt."""


@contextmanager
def claim_run(folder: Path) -> Iterator[None]:
    """Create the folder of a run, hold an exclusive lock on it, and replace the files of an earlier run there.

    They are set aside, as a report would show the earlier run's trace and captures as this one's, and removed in the end. After
    a refusal, an interrupt or an error in writing they are put back, in place of what the run has written. An error of the
    protocol removes them if the run has recorded something, which is kept. UsageError as for `claim`, and for the folder of a
    sweep.
    """
    if is_sweep(folder):
        raise UsageError(f"--out: value {str(folder)!r} is not allowed; it is the folder of a sweep")
    aside, known = folder / _EARLIER, (folder / LOCK).exists()
    with claim(folder, "run"):
        if aside.exists() and not (folder / _LAST).exists():
            # A run was killed here.
            _put_back(folder)
        shutil.rmtree(aside, ignore_errors=True)
        if known:
            _move(folder, aside)
        try:
            yield
        except BaseException as error:
            recorded = _files(folder) and (isinstance(error, LivelockError) or not isinstance(error, _NO_RUN))
            if aside.exists() and not recorded:
                _put_back(folder)
            raise
        finally:
            shutil.rmtree(aside, ignore_errors=True)


def _put_back(folder: Path) -> None:
    """Replace the files of a run by those that were set aside."""
    for path in _files(folder):
        path.unlink()
    _move(folder / _EARLIER, folder)


def _move(source: Path, target: Path) -> None:
    """Move the files that a run has written to another folder on the same disk."""
    for path in _files(source):
        new = target / path.relative_to(source)
        new.parent.mkdir(parents=True, exist_ok=True)
        path.replace(new)


def _files(folder: Path) -> list[Path]:
    """Return the files in a folder whose names are those that a run writes."""
    named = [folder / name for name in (*_RESULTS, TRACE)]
    return [path for path in (*named, *(folder / "captures").glob("*.pcapng")) if path.is_file() or path.is_symlink()]


def check_trace(trace: Path | None, folder: Path | None) -> None:
    """Raise UsageError for a trace that is to be one of the other files of the folder."""
    others = () if folder is None else (folder.resolve() / name for name in _RESULTS)
    if trace is not None and trace.resolve() in others:
        raise UsageError(f"--trace: value {str(trace)!r} is not allowed; --out writes another file there")


def is_sweep(folder: Path) -> bool:
    """Return whether a folder holds the results of a sweep."""
    return (folder / "sweep.yaml").exists()
