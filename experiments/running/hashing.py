"""SHA-256 of files, in a thread beside the event loop."""

import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor, wait
from hashlib import sha256
from math import inf
from threading import BoundedSemaphore, Event

from experiments.running.open_files import most_open

__all__ = ["Hasher", "digest_of"]

READ = 1 << 20
"""Bytes read at a time."""


def digest_of(digest: "Future[str]") -> str | None:
    """Wait for a digest and return it; None if hashing was given up, or the file could not be read."""
    try:
        return digest.result()
    except (CancelledError, OSError):
        return None


class Hasher:
    """Compute the SHA-256 of files in one thread beside the event loop, in order.

    Files that wait keep their descriptors while there are few; others are opened when it is their turn.
    """

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1, "sha256")
        self._stopped = Event()
        self._room = BoundedSemaphore(max(1, most_open() // 2))

    def hash(self, opening: Callable[[], int]) -> "Future[str]":
        """Return a future of the digest, in hexadecimal, of the file that `opening` opens in the other thread."""
        return self._pool.submit(self._sha256, opening)

    def hash_all(self, openings: Iterable[Callable[[], int]]) -> "Future[list[str | None]]":
        """Return a future of the digests of many files, in order; None for those that can't be read or are not hashed any more.

        A future for each would take more memory than all else that is kept of a small file.
        """
        return self._pool.submit(lambda: [self._digest(opening) for opening in openings])

    def _digest(self, opening: Callable[[], int]) -> str | None:
        try:
            return None if self._stopped.is_set() else self._sha256(opening)
        except (CancelledError, OSError):
            return None

    def hash_open(self, fd: int, reopening: Callable[[], int] | None = None) -> "Future[str]":
        """Return a future of the digest of an open file, which is closed at last, or now if `reopening` opens it again."""
        if self._room.acquire(blocking=False):
            return self._pool.submit(self._sha256_kept, fd)
        if reopening is None:
            return self._pool.submit(self._sha256, lambda: fd)
        os.close(fd)
        return self.hash(reopening)

    def stop(self) -> None:
        """Give up hashing now; digests that are not ready raise CancelledError."""
        self._stopped.set()

    def results(self, digests: "Sequence[Future[str]]", seconds: float = inf) -> list[str | None]:
        """Wait at most so many seconds for digests; None for those that are not ready then or that failed."""
        if seconds < inf:
            wait(digests, max(seconds, 0.0))
            self.stop()
        return [digest_of(digest) for digest in digests]

    def close(self) -> None:
        """Wait for the hashes in progress."""
        self._pool.shutdown()

    def _sha256_kept(self, fd: int) -> str:
        try:
            return self._sha256(lambda: fd)
        finally:
            self._room.release()

    def _sha256(self, opening: Callable[[], int]) -> str:
        total, offset = sha256(), 0
        fd = opening()
        try:
            while not self._stopped.is_set():
                piece = os.pread(fd, READ, offset)
                if not piece:
                    return total.hexdigest()
                total.update(piece)
                offset += len(piece)
        finally:
            os.close(fd)
        raise CancelledError
