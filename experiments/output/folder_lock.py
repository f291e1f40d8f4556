"""Lock the folder that a run or a sweep writes to, so that no other process writes there meanwhile."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from protocols.errors import UsageError

__all__ = ["LOCK", "claim"]

LOCK = ".lock"


@contextmanager
def claim(folder: Path, writer: str) -> Iterator[None]:
    """Create the folder and hold an exclusive lock on it; `writer` ("run", "sweep") names who else may hold it.

    UsageError if another process has the lock, or if the folder can't be created, written or locked.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = (folder / LOCK).open("w")
    except OSError as error:
        raise UsageError(
            f"--out: value {str(folder)!r} is not allowed; a folder that can be made and written ({error.strerror})"
        ) from error
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            in_use = isinstance(error, BlockingIOError)
            why = f"another {writer} is writing to it" if in_use else f"a folder that can be locked ({error.strerror})"
            raise UsageError(f"--out: value {str(folder)!r} is not allowed; {why}") from error
        yield
