"""The folder of received files.

A received file has a temporary name until it is complete. It is then renamed without replacing an existing file, and hashed in
a separate thread. Whatever goes wrong with one file ends that file alone.
"""

import errno
import os
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from math import inf
from pathlib import Path
from time import monotonic
from typing import TypeVar

from experiments.running.hashing import Hasher
from experiments.running.names import FinalNames, safe_name
from experiments.running.open_files import OpenFiles
from experiments.running.part_files import PartFiles, remove_stale
from experiments.running.unfinished import GIVEN_UP, Tracked, Unfinished
from protocols.errors import UsageError
from protocols.machine import Offer
from topologies.units import format_size

__all__ = ["FileSink", "Folder", "Refused", "Stored"]

T = TypeVar("T")
REMOVED = "the unfinished file was removed"
_FULL = (errno.ENOSPC, errno.EDQUOT)
_NEW_FILE = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class Stored:
    """A received file. `asked` is the sender's name for it, made safe; `name` differs from it when that name was taken."""

    sender: int
    object_id: int
    name: str
    asked: str
    size: int
    digest: "Future[str]"


@dataclass(frozen=True, slots=True)
class Refused:
    """An object that is not received, or no longer, and why."""

    offer: Offer
    reason: str


def _about(octets: float) -> str:
    """Format a size with three digits."""
    whole = int(octets)
    return format_size(round(whole, min(0, 3 - len(str(whole)))))


class FileSink(Tracked):
    """A sink that stores an object in a file with a temporary name; `commit` gives it its final name."""

    __slots__ = ("_folder", "_inode", "_temporary", "aborted", "offer")

    def __init__(self, folder: "Folder", offer: Offer) -> None:
        super().__init__(offer.size)
        self.offer = offer
        self._folder = folder
        self._temporary = ""
        self._inode = 0
        self.aborted = False

    @property
    def ended(self) -> bool:
        """Whether the file is complete or given up."""
        return self not in self._folder.unfinished

    def write(self, offset: int, data: bytes | memoryview) -> None:
        """Store a segment. OSError when that is not possible, or when the file was given up for another."""
        folder = self._folder
        try:
            if self.ended:
                raise OSError(GIVEN_UP)
            self.heard = monotonic()
            super().write(offset, data)
            if folder.unfinished.stored(self, len(data)):
                self._flush()
        except OSError as error:
            raise folder.explained(error) from error

    def read(self, offset: int, n: int) -> bytes:
        """Return `n` stored bytes from `offset`. OSError where none were written, or they can't be read."""
        try:
            return super().read(offset, n)
        except OSError as error:
            raise self._folder.explained(error) from error

    def _flush(self) -> None:
        before = self.flushed
        super()._flush()
        if self.flushed != before:
            self._folder.unfinished.flushed(self.flushed - before)

    def _put(self, data: bytes, offset: int) -> None:
        self._folder.with_space(lambda: Tracked._put(self, data, offset))

    def _descriptor(self) -> int:
        if self.ended:
            raise OSError(GIVEN_UP)
        self.heard = monotonic()
        return self._folder.opened.descriptor(self)

    def open(self) -> int:
        """Open the file, which is made at the first call. OSError when it is not there any more."""
        folder = self._folder
        if not self._temporary:
            fd, self._temporary = folder.create()
            self._inode = os.fstat(fd).st_ino
            return fd
        fd = os.open(self._temporary, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, dir_fd=folder.fd)
        if os.fstat(fd).st_ino != self._inode:
            os.close(fd)
            raise OSError("the unfinished file was replaced by another")
        return fd

    def commit(self, info: bytes) -> None:
        """Store the file in the folder under the name in `info`."""
        try:
            self._complete()
            if not os.fstat(self._descriptor()).st_nlink:
                raise FileNotFoundError(errno.ENOENT, REMOVED)
            self._folder.store(self, self._temporary, info)
        except OSError as error:
            raise self._folder.explained(error) from error

    def abort(self) -> None:
        """Remove the incomplete file, unless it was given up. OSError when it can't be removed."""
        self.aborted = True
        if not self.ended:
            self._pending.clear()
            try:
                self._folder.discard(self, self._temporary)
            except OSError as error:
                raise self._folder.explained(error) from error


class Folder:
    """The folder of received files; `on_stored` is called for each complete one.

    A sender's file names can't lead out of the folder. Existing files are replaced only with `force`. Unfinished files of
    receivers that were killed are removed: `removed` is their number, and `resumed` tells whether there was such a receiver.
    `refused` holds objects that were declined, `given_up` those that were given up for others; the application reads and clears
    both. UsageError when the folder can't be made or written; `option` is what it calls the folder.
    """

    def __init__(self, path: Path, *, force: bool, on_stored: Callable[[Stored], None], option: str = "folder") -> None:
        self.unfinished: Unfinished[FileSink] = Unfinished()
        self.opened = OpenFiles()
        self.refused: deque[Refused] = deque()
        self.given_up: deque[Refused] = deque()
        self.path = path
        self.last: Stored | None = None
        """The file that was stored last."""
        self._hasher = Hasher()
        self._on_stored = on_stored
        try:
            path.mkdir(parents=True, exist_ok=True)
            self.fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise UsageError(
                f"{option}: value {str(path)!r} is not allowed; a folder to write to ({error.strerror})"
            ) from error
        if not os.access(path, os.W_OK | os.X_OK):
            raise UsageError(f"{option}: value {str(path)!r} is not allowed; a folder to write to (no permission to write)")
        self.removed, self.resumed = remove_stale(self.fd)
        self._parts = PartFiles(self.fd)
        self._names = FinalNames(self.fd, force)

    # -- unfinished files ------------------------------------------------------------------------------------------

    def sink(self, offer: Offer) -> FileSink | None:
        """Return the sink of an offered object; None, with an entry in `refused`, when there is no room for it."""
        surplus = self.unfinished.surplus()
        if surplus is not None:
            self._give_up(surplus, "the one silent longest of too many unfinished files")
        reason = self._make_space(offer.size)
        if reason:
            self.refused.append(Refused(offer, reason))
            return None
        # If that fails, the first write fails with the reason.
        with suppress(OSError):
            self._parts.claim()
        sink = FileSink(self, offer)
        self.unfinished.add(sink)
        return sink

    def create(self) -> tuple[int, str]:
        """Create an unfinished file; return its descriptor and name."""
        return self.with_space(self._create)

    def _create(self) -> tuple[int, str]:
        name = self._parts.next_name()
        return os.open(name, _NEW_FILE, 0o666, dir_fd=self.fd), name

    def store(self, sink: FileSink, temporary: str, info: bytes) -> None:
        """Give a complete file its final name, then start hashing it."""
        offer = sink.offer
        asked = safe_name(info, f"norm-{offer.sender}-{offer.object_id}")
        name = self.with_space(lambda: self._names.place(temporary, asked))
        fd = self.opened.take(sink)
        inode = os.fstat(fd).st_ino
        self.unfinished.remove(sink)
        digest = self._hasher.hash_open(fd, lambda: self._reopened(name, inode))
        self.last = Stored(offer.sender, offer.object_id, name, asked, offer.size, digest)
        self._on_stored(self.last)

    def discard(self, sink: FileSink, temporary: str) -> None:
        """Remove an unfinished file. OSError when it can't be removed."""
        self.opened.close(sink)
        try:
            if temporary:
                with suppress(FileNotFoundError):
                    os.unlink(temporary, dir_fd=self.fd)
        finally:
            self.unfinished.remove(sink)

    def explained(self, error: OSError) -> OSError:
        """Return an error whose text says what is wrong with the folder or its disk, without numbers and temporary names."""
        text = error.strerror or str(error)
        if isinstance(error, FileNotFoundError):
            text = REMOVED if os.fstat(self.fd).st_nlink else "the folder was removed"
        return OSError(text)

    def remove_unfinished(self) -> None:
        """Remove unfinished files; what can't be removed stays."""
        for sink in self.unfinished:
            with suppress(OSError):
                sink.abort()
        self.unlock()

    def unlock(self) -> None:
        """Remove the lock file if no file is unfinished; call it now and then."""
        if not self.unfinished:
            self._parts.release()

    def stop_hashing(self) -> None:
        """Give up the hashes in progress."""
        self._hasher.stop()

    def close(self) -> None:
        """Remove unfinished files, wait for the hashes in progress, and close the folder."""
        self.remove_unfinished()
        self._hasher.close()
        os.close(self.fd)

    # -- space -----------------------------------------------------------------------------------------------------

    def _give_up(self, sink: FileSink, reason: str) -> None:
        """Abort an unfinished file for the sake of another."""
        self.given_up.append(Refused(sink.offer, reason))
        with suppress(OSError):
            sink.abort()

    def _make_space(self, size: int) -> str:
        """Give up idle files until `size` bytes are free that no other file has claimed; return why that fails, or ""."""
        free, claimed = self._free(), self.unfinished.claimed
        if claimed + size > free:
            idle = self.unfinished.idle(size, claimed + size - free)
            if not idle:
                others = f", {_about(claimed)} of them for other files" if claimed else ""
                return f"{_about(size)} were announced, {_about(free)} are free{others}"
            for sink in idle:
                self._give_up(sink, "idle, and others need its space")
        return ""

    def _free(self) -> float:
        try:
            disk = os.fstatvfs(self.fd)
        except OSError:
            return inf
        # Some file systems report no sizes.
        return disk.f_bavail * disk.f_frsize if disk.f_blocks else inf

    def with_space(self, action: Callable[[], T]) -> T:
        """Return `action()`; where the disk is full, try again without the files that have been silent."""
        while True:
            try:
                return action()
            except OSError as error:
                idle = self.unfinished.silent_on_disk()
                if error.errno not in _FULL or idle is None:
                    raise
            self._give_up(idle, "silent, and the disk is full")

    def _reopened(self, name: str, inode: int) -> int:
        """Open a stored file to hash it. OSError when another has its name meanwhile."""
        fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, dir_fd=self.fd)
        if os.fstat(fd).st_ino != inode:
            os.close(fd)
            raise OSError(f"{name}: was replaced")
        return fd
