"""Keep the number of open files below a limit: the least recently used one is closed, and opened again when it is needed."""

import errno
import os
import resource
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

__all__ = ["EXHAUSTED", "OpenFiles", "Reopenable", "most_open"]

MOST_OPEN = 256
"""Files open at a time, where the system allows twice as many."""
KEPT_FREE = 16
"""Descriptors for sockets, terminals and libraries."""
EXHAUSTED = frozenset({errno.EMFILE, errno.ENFILE})
"""Errors of open(2) when there are no descriptors left, for this process or for the system."""


class Reopenable(Protocol):
    """A file that can be opened any number of times."""

    def open(self) -> int:
        """Open the file and return its descriptor. OSError when that is not possible."""


def most_open() -> int:
    """Return how many files to keep open: half of what `ulimit -n` leaves, at most `MOST_OPEN`, at least 1."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return MOST_OPEN
    return max(1, min(MOST_OPEN, (soft - KEPT_FREE) // 2))


class OpenFiles:
    """The open files of a program, the least recently used first; `limit` is the most of them."""

    def __init__(self, limit: int | None = None) -> None:
        self.limit = most_open() if limit is None else limit
        self._open: dict[Reopenable, int] = {}
        # Errors of close(2): earlier writes failed (NFS, quotas).
        self._failed: dict[Reopenable, OSError] = {}

    def __len__(self) -> int:
        return len(self._open)

    def descriptor(self, file: Reopenable) -> int:
        """Return the descriptor of a file, which is opened if need be. OSError when it can't be opened or was not stored."""
        if file in self._failed:
            raise self._failed.pop(file)
        fd = self._open.pop(file, -1)
        if fd < 0:
            while len(self._open) >= self.limit:
                self._close_oldest()
            fd = self._retried(file.open)
        self._open[file] = fd
        return fd

    def take(self, file: Reopenable) -> int:
        """Return the descriptor of a file, which the caller has to close."""
        fd = self.descriptor(file)
        del self._open[file]
        return fd

    def close(self, file: Reopenable) -> None:
        """Close a file that is not needed any more, if it is open."""
        self._failed.pop(file, None)
        fd = self._open.pop(file, -1)
        if fd >= 0:
            with suppress(OSError):
                os.close(fd)

    def _close_oldest(self) -> None:
        file = next(iter(self._open))
        try:
            os.close(self._open.pop(file))
        except OSError as error:
            self._failed[file] = error

    def _retried(self, opening: Callable[[], int]) -> int:
        """Open a file; while there are no descriptors, close the least recently used one and try again."""
        while True:
            try:
                return opening()
            except OSError as error:
                if error.errno not in EXHAUSTED or not self._open:
                    raise
            self._close_oldest()
