"""Files as sources and sinks: opened when they are first read or written, in blocks, never held in memory as a whole."""

import os
import tempfile
from abc import ABC, abstractmethod
from concurrent.futures import Future
from pathlib import Path

from experiments.running.hashing import Hasher
from experiments.running.open_files import OpenFiles
from protocols.errors import UsageError

__all__ = ["FileSource", "ScratchSink", "Spool"]

COALESCE = 1 << 18
"""Bytes of adjacent segments that are written together, at most."""
CHANGED = "the file was changed while it was sent"
MOST_PIECES = 512
"""Adjacent segments that are written together, at most."""


class FileSource:
    """A file to send, opened at the first `read`. UsageError for a path that is no readable file.

    A file that changes (its size, its time of modification, or another file under its name) can't be read any more: receivers
    would get a mixture. `opened` limits the open files.
    """

    __slots__ = ("_opened", "_version", "path", "size")

    def __init__(self, path: Path, opened: OpenFiles | None = None) -> None:
        try:
            if not path.is_file():
                raise UsageError(f"{path}: is not a file")
        except OSError as error:
            # Its folder may not be entered.
            raise UsageError(f"{path}: can't be read ({error.strerror})") from error
        if not os.access(path, os.R_OK):
            raise UsageError(f"{path}: can't be read (no permission)")
        self._opened = OpenFiles(1) if opened is None else opened
        self.path = path
        state = path.stat()
        self.size = state.st_size
        self._version = _version(state)
        if not self.size:
            self._check_empty()

    def _check_empty(self) -> None:
        """Raise UsageError for a file of /proc or the like, which has content and no size: nothing of it would be sent."""
        try:
            fd = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
            try:
                has_content = bool(os.pread(fd, 1, 0)) and not os.fstat(fd).st_size
            finally:
                os.close(fd)
        except OSError as error:
            raise UsageError(f"{self.path}: can't be read ({error.strerror})") from error
        if has_content:
            raise UsageError(f"{self.path}: can't be sent (it has content and no size); a copy of it can")

    def read(self, offset: int, n: int) -> bytes:
        """Return `n` bytes from `offset`. OSError when the file has changed."""
        if not n:
            return b""
        fd = self._opened.descriptor(self)
        data = os.pread(fd, n, offset)
        if len(data) != n or _version(os.fstat(fd)) != self._version:
            raise OSError(CHANGED)
        return data

    def open(self) -> int:
        """Open the file and return its descriptor. OSError when it is not the file it was."""
        try:
            fd = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except OSError as error:
            raise OSError(error.strerror) from error
        if _version(os.fstat(fd)) != self._version:
            os.close(fd)
            raise OSError(CHANGED)
        return fd

    def close(self) -> None:
        """Close the file; another `read` opens it again."""
        self._opened.close(self)

    def check(self) -> None:
        """Raise OSError if the file has changed since it was first looked at."""
        try:
            state = self.path.stat()
        except OSError as error:
            raise OSError(error.strerror) from error
        if _version(state) != self._version:
            raise OSError(CHANGED)


def _version(state: os.stat_result) -> tuple[int, int, int, int]:
    return state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns


class Spool(ABC):
    """Object content that becomes a file: adjacent segments are written together, and the first write opens the file.

    A subclass opens the file.
    """

    __slots__ = ("_end", "_pending", "_start", "flushed", "size", "written")

    def __init__(self, size: int) -> None:
        self.size = size
        self.written = self.flushed = 0
        """Bytes stored, and those of them that are in the file."""
        self._pending: list[bytes] = []
        self._start = self._end = 0

    @abstractmethod
    def _descriptor(self) -> int:
        """Return the descriptor of the open file."""

    def write(self, offset: int, data: bytes | memoryview) -> None:
        """Store a segment. OSError for one that lies outside the object."""
        end = offset + len(data)
        if end > self.size:
            raise OSError(f"segment [{offset}, {end}) lies outside an object of {self.size} bytes")
        if offset != self._end or offset - self._start >= COALESCE or len(self._pending) >= MOST_PIECES:
            self._flush()
            self._start = offset
        self._pending.append(bytes(data))
        self._end = end
        self.written += len(data)

    def _flush(self) -> None:
        """Write what waits in memory."""
        if not self._pending:
            return
        data = b"".join(self._pending)
        self._pending.clear()
        self._put(data, self._start)
        self.flushed = self.written
        self._start = self._end

    def _put(self, data: bytes, offset: int) -> None:
        """Write bytes to the file."""
        left, fd = memoryview(data), self._descriptor()
        while left:
            n = os.pwrite(fd, left, offset)
            left, offset = left[n:], offset + n

    def read(self, offset: int, n: int) -> bytes:
        """Return `n` stored bytes from `offset`. OSError where none were written."""
        self._flush()
        data = os.pread(self._descriptor(), n, offset)
        if len(data) != n:
            raise OSError(f"{n} bytes at {offset} were not written yet")
        return data

    def _complete(self) -> None:
        """Write the rest. OSError when bytes are missing."""
        self._flush()
        size = os.fstat(self._descriptor()).st_size
        if size != self.size:
            raise OSError(f"{size} bytes are there, {self.size} were announced")


class ScratchSink(Spool):
    """A sink that stores an object in an unnamed temporary file and keeps its SHA-256."""

    __slots__ = ("_fd", "_hasher", "aborted", "digest")

    def __init__(self, size: int, hasher: Hasher) -> None:
        super().__init__(size)
        self._fd = -1
        self._hasher = hasher
        self.digest: Future[str] | None = None
        self.aborted = False

    def _descriptor(self) -> int:
        if self._fd < 0:
            with tempfile.TemporaryFile() as file:
                self._fd = os.dup(file.fileno())
        return self._fd

    def commit(self, info: bytes) -> None:
        """Start hashing the content; `digest` is the future of its SHA-256."""
        self._complete()
        self.digest = self._hasher.hash_open(self._fd)

    def abort(self) -> None:
        """Close the file, which frees its space."""
        self.aborted = True
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
