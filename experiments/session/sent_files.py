"""Which files of a watched folder were sent, kept in a file so that a sender that was killed goes on where it was.

The file is replaced as a whole, in a thread beside the event loop: the disk may take tens of milliseconds for it.
"""

import fcntl
import json
import os
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Literal, TypeAlias

from protocols.errors import UsageError
from topologies.input_file import read_bytes

__all__ = ["SentFiles", "Stage", "Version"]

Version: TypeAlias = tuple[int, int, int]
"""Size, time of modification in nanoseconds, and inode of a file: others mean other content."""
Stage: TypeAlias = Literal["sent", "done"]
"""sent: the command that follows a file is still to be run; done: nothing is."""
_FORMAT = "mcastlab-sent-files"
_STAGES = ("sent", "done")
_LONGEST = 1 << 30
"""Most bytes of a state file: several million files."""


class SentFiles:
    """The versions of files that were sent, by name; `path` is the file that keeps them.

    UsageError for a file that holds something else, is a device or a pipe, can't be written, or is used by another sender.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.names = frozenset((path.name, f"{path.name}.lock", f"{path.name}.new"))
        """Names of the files that are made in the folder of the state file."""
        self._lock = self._claim()
        self._pool = ThreadPoolExecutor(1, "sent files")
        # The last write that was requested.
        self._last: Future[None] | None = None
        try:
            self._files = self._read()
        except BaseException:
            self.close()
            raise

    def stage(self, name: str, version: Version) -> Stage | None:
        """Return how far this version of a file got; None if it was not sent."""
        known = self._files.get(name)
        return known[1] if known is not None and known[0] == version else None

    def note(self, name: str, version: Version, stage: Stage) -> None:
        """Note how far a file got; the next `save` writes it."""
        self._files[name] = (version, stage)

    def forget_others(self, names: set[str]) -> bool:
        """Forget files that are not there any more, and return whether there are any; `names` are those that are there."""
        gone = [name for name in self._files if name not in names]
        for name in gone:
            del self._files[name]
        return bool(gone)

    def save(self) -> "Future[None]":
        """Write what was noted; return a future that is done once it is on the disk, with OSError if that fails.

        Calls during a write share the one that follows it, so that many files cost few writes.
        """
        if self._last is None or self._last.running() or self._last.done():
            self._last = self._pool.submit(self._write)
        return self._last

    def close(self) -> None:
        """Finish the writes that were requested, and let other senders use the file."""
        self._pool.shutdown()
        if self._last is not None and self._last.cancelled():
            # Without it the next sender sends these files again.
            with suppress(OSError):
                self._write()
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def _claim(self) -> int:
        lock = self.path.with_name(f"{self.path.name}.lock")
        try:
            fd = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise UsageError(f"state file {self.path}: can't be written ({error.strerror})") from error
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(fd)
            in_use = isinstance(error, BlockingIOError)
            why = "is in use by another sender" if in_use else f"can't be locked ({error.strerror})"
            raise UsageError(f"state file {self.path}: {why}") from None
        return fd

    def _read(self) -> dict[str, tuple[Version, Stage]]:
        try:
            text = read_bytes(self.path, _LONGEST)
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise UsageError(f"state file {self.path}: can't be read ({error.strerror})") from error
        try:
            data = json.loads(text.decode("utf-8"))
            if data["format"] != _FORMAT:
                raise ValueError
            return {name: self._entry(*entry) for name, entry in data["files"].items()}
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            raise UsageError(
                f"state file {self.path}: is none of `mcastlab send --watch`; remove it to send all files"
            ) from None

    @staticmethod
    def _entry(version: list[int], stage: Stage) -> tuple[Version, Stage]:
        size, changed, inode = version
        if stage not in _STAGES or not all(isinstance(value, int) for value in version):
            raise ValueError
        return (size, changed, inode), stage

    def _write(self) -> None:
        """Replace the file by one with the present entries; OSError that names the file if that fails."""
        try:
            self._replace()
        except OSError as error:
            raise OSError(f"state file {self.path}: can't be written ({error.strerror})") from error

    def _replace(self) -> None:
        """Replace the file; the old one or the new one is there whatever happens."""
        temporary = self.path.with_name(f"{self.path.name}.new")
        text = json.dumps({"format": _FORMAT, "files": dict(self._files)})
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
        try:
            with os.fdopen(fd, "w", encoding="utf-8", errors="surrogateescape") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, self.path)
        except OSError:
            with suppress(OSError):
                os.unlink(temporary)
            raise
        folder = os.open(self.path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
