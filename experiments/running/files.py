"""Files as sources and sinks: read and written in blocks, never held in memory as a whole.

A received file has a temporary name until it is complete. It is then renamed without replacing an existing file, and hashed in
a separate thread.
"""

import os
import secrets
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from hashlib import sha256
from itertools import count
from math import inf
from pathlib import Path
from threading import Event

from experiments.running.names import safe_name
from protocols.errors import UsageError
from protocols.machine import Offer

__all__ = ["FileSink", "FileSource", "Folder", "Hasher", "ScratchSink", "Stored"]

COALESCE = 1 << 18
"""Bytes of adjacent segments that are written together, at most."""
MOST_PIECES = 512
"""Adjacent segments that are written together, at most."""
READ = 1 << 20
"""Bytes read at a time for hashing."""
NAMES_KEPT = 4096
"""Names of which the number given last is kept."""


class FileSource:
    """A file to send, opened at the first `read`. UsageError for a path that is no readable file."""

    __slots__ = ("_fd", "path", "size")

    def __init__(self, path: Path) -> None:
        if not path.is_file():
            raise UsageError(f"{path}: is not a file")
        if not os.access(path, os.R_OK):
            raise UsageError(f"{path}: can't be read (no permission)")
        self._fd = -1
        self.path = path
        self.size = path.stat().st_size

    def read(self, offset: int, n: int) -> bytes:
        """Return `n` bytes from `offset`. OSError when the file has become shorter."""
        if n and self._fd < 0:
            self._fd = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        data = os.pread(self._fd, n, offset) if n else b""
        if len(data) != n:
            raise OSError(f"{self.path}: {n} bytes at {offset} are not there any more")
        return data

    def close(self) -> None:
        """Close the file; another `read` opens it again."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


class Hasher:
    """Compute the SHA-256 of files in one thread beside the event loop, in order."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1, "sha256")
        self._stopped = Event()

    def hash(self, fd: int) -> "Future[str]":
        """Return a future of the digest of an open file, in hexadecimal; the file is closed afterwards."""
        return self._pool.submit(self._sha256_and_close, fd)

    def stop(self) -> None:
        """Give up hashing now; digests that are not ready raise CancelledError."""
        self._stopped.set()

    def results(self, digests: "Sequence[Future[str]]", seconds: float) -> list[str | None]:
        """Wait at most so many seconds for digests; None for those that are not ready then."""
        if seconds < inf:
            wait(digests, max(seconds, 0.0))
            self.stop()
        found: list[str | None] = []
        for digest in digests:
            try:
                found.append(digest.result())
            except CancelledError:
                found.append(None)
        return found

    def close(self) -> None:
        """Wait for the hashes in progress."""
        self._pool.shutdown()

    def _sha256_and_close(self, fd: int) -> str:
        total, offset = sha256(), 0
        try:
            while piece := os.pread(fd, READ, offset):
                if self._stopped.is_set():
                    raise CancelledError
                total.update(piece)
                offset += len(piece)
        finally:
            os.close(fd)
        return total.hexdigest()


class _Spool:
    """Object content in an open file; adjacent segments are written together."""

    __slots__ = ("_end", "_fd", "_pending", "_start", "size", "written")

    def __init__(self, fd: int, size: int) -> None:
        self.size = size
        self.written = 0
        self._fd = fd
        self._pending: list[bytes] = []
        self._start = self._end = 0

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
        if not self._pending:
            return
        left, offset = memoryview(b"".join(self._pending)), self._start
        self._pending.clear()
        while left:
            n = os.pwrite(self._fd, left, offset)
            left, offset = left[n:], offset + n
        self._start = self._end

    def read(self, offset: int, n: int) -> bytes:
        """Return `n` stored bytes from `offset`. OSError where none were written."""
        self._flush()
        data = os.pread(self._fd, n, offset)
        if len(data) != n:
            raise OSError(f"{n} bytes at {offset} were not written yet")
        return data

    def _complete(self) -> None:
        self._flush()
        if os.fstat(self._fd).st_size != self.size:
            raise OSError(f"{os.fstat(self._fd).st_size} bytes are there, {self.size} were announced")


class ScratchSink(_Spool):
    """A sink that stores an object in an unnamed temporary file and keeps its SHA-256."""

    __slots__ = ("_hasher", "digest")

    def __init__(self, size: int, hasher: Hasher) -> None:
        with tempfile.TemporaryFile() as file:
            super().__init__(os.dup(file.fileno()), size)
        self._hasher = hasher
        self.digest: Future[str] | None = None

    def commit(self, info: bytes) -> None:
        """Start hashing the content; `digest` is the future of its SHA-256."""
        self._complete()
        self.digest = self._hasher.hash(self._fd)

    def abort(self) -> None:
        """Close the file, which frees its space."""
        os.close(self._fd)


@dataclass(frozen=True, slots=True)
class Stored:
    """A received file. `asked` is the sender's name for it, made safe; `name` differs from it when that name was taken."""

    sender: int
    object_id: int
    name: str
    asked: str
    size: int
    digest: "Future[str]"


class FileSink(_Spool):
    """A sink that stores an object in a file with a temporary name; `commit` gives it its final name."""

    __slots__ = ("_folder", "_open", "_temporary", "offer")

    def __init__(self, folder: "Folder", fd: int, temporary: str, offer: Offer) -> None:
        super().__init__(fd, offer.size)
        self.offer = offer
        self._folder = folder
        self._temporary = temporary
        self._open = True

    def commit(self, info: bytes) -> None:
        """Store the file in the folder under the name in `info`."""
        self._complete()
        self._folder.store(self, self._temporary, info, self._fd)
        self._open = False

    def abort(self) -> None:
        """Remove the incomplete file; after `commit`, do nothing."""
        if self._open:
            self._open = False
            self._folder.discard(self, self._temporary)
            os.close(self._fd)


class Folder:
    """The folder of received files; `on_stored` is called for each complete one.

    A sender's file names can't lead out of the folder. Existing files are replaced only with `force`. UsageError when the
    folder can't be made or written.
    """

    def __init__(self, path: Path, *, force: bool, on_stored: Callable[[Stored], None]) -> None:
        self.force = force
        self.unfinished: dict[FileSink, None] = {}
        self._hasher = Hasher()
        self._on_stored = on_stored
        # The number that the last file of a name was given, so that the next is not compared with all before it.
        self._numbers: dict[str, int] = {}
        try:
            path.mkdir(parents=True, exist_ok=True)
            self._fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise UsageError(f"--dir: value {str(path)!r} is not allowed; a folder to write to ({error.strerror})") from error
        if not os.access(path, os.W_OK | os.X_OK):
            raise UsageError(f"--dir: value {str(path)!r} is not allowed; a folder to write to (no permission)")

    def sink(self, offer: Offer) -> FileSink:
        """Create the file for an offered object and return its sink."""
        temporary = f".mcastlab-{secrets.token_hex(8)}.part"
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        sink = FileSink(self, os.open(temporary, flags, 0o666, dir_fd=self._fd), temporary, offer)
        self.unfinished[sink] = None
        return sink

    def store(self, sink: FileSink, temporary: str, info: bytes, fd: int) -> None:
        """Give a complete file its final name, then start hashing it (which closes `fd`)."""
        offer = sink.offer
        asked = safe_name(info, f"norm-{offer.sender}-{offer.object_id}")
        name = self._place(temporary, asked)
        del self.unfinished[sink]
        self._on_stored(Stored(offer.sender, offer.object_id, name, asked, offer.size, self._hasher.hash(fd)))

    def discard(self, sink: FileSink, temporary: str) -> None:
        """Remove an unfinished file."""
        del self.unfinished[sink]
        os.unlink(temporary, dir_fd=self._fd)

    def close(self) -> None:
        """Remove unfinished files and wait for the hashes in progress."""
        for sink in list(self.unfinished):
            sink.abort()
        self._hasher.close()
        os.close(self._fd)

    def _place(self, temporary: str, asked: str) -> str:
        """Rename a file to `asked`, with a number behind it if that is taken; return its name."""
        for n in count(self._first_free(asked)):
            name = f"{asked}.{n}" if n else asked
            try:
                self._rename(temporary, name)
            except (FileExistsError, IsADirectoryError):
                continue
            self._numbers.pop(asked, None)
            if n:
                self._numbers[asked] = n
                if len(self._numbers) > NAMES_KEPT:
                    del self._numbers[next(iter(self._numbers))]
            return name
        raise AssertionError("unreachable: count() does not end")

    def _first_free(self, asked: str) -> int:
        """Return a number to begin with: that behind the last one given, else behind an unbroken row that is there."""
        known = self._numbers.get(asked)
        if known is not None and not self.force:
            return known + 1
        taken, free = 0, 1
        while not self.force and self._exists(f"{asked}.{free}"):
            taken, free = free, 2 * free
        while free - taken > 1:
            middle = (taken + free) // 2
            if self._exists(f"{asked}.{middle}"):
                taken = middle
            else:
                free = middle
        return free if taken and self._exists(asked) else 0

    def _exists(self, name: str) -> bool:
        try:
            os.stat(name, dir_fd=self._fd, follow_symlinks=False)
        except FileNotFoundError:
            return False
        return True

    def _rename(self, temporary: str, name: str) -> None:
        if not self.force:
            # O_EXCL fails when the name exists, so the file that os.replace overwrites is the empty one created here.
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            os.close(os.open(name, flags, 0o600, dir_fd=self._fd))
        os.replace(temporary, name, src_dir_fd=self._fd, dst_dir_fd=self._fd)
