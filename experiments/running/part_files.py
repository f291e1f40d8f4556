"""Names of unfinished files, and their removal when the receiver they belonged to was killed.

Unfinished files are named `.mcastlab-ID-N.part`. While there are any, and a moment longer, their receiver holds a lock
(flock(2)) on the file `.mcastlab-ID.lock` beside them. The kernel releases it when the receiver ends, in whatever way, so that
the next one in this folder finds which files are abandoned.
"""

import fcntl
import os
import re
import secrets
from contextlib import suppress

__all__ = ["PartFiles", "remove_stale"]

_NAME = re.compile(r"\.mcastlab-([0-9a-f]{16})(?:(?:-[0-9]+)?\.part|\.lock)")
_TRIES = 8


def _lock_name(key: str) -> str:
    return f".mcastlab-{key}.lock"


class PartFiles:
    """Gives names to the unfinished files of one receiver in the folder with descriptor `folder`."""

    def __init__(self, folder: int) -> None:
        self._folder = folder
        self._key = ""
        self._lock = -1
        self._number = 0

    def claim(self) -> None:
        """Hold the lock of this receiver, if it is not held yet. OSError when its file can't be made."""
        for _ in range(_TRIES):
            if self._lock >= 0:
                return
            self._key = secrets.token_hex(8)
            flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            fd = os.open(_lock_name(self._key), flags, 0o666, dir_fd=self._folder)
            if self._is_held(fd):
                self._lock = fd
            else:
                os.close(fd)

    def next_name(self) -> str:
        """Return the name of another unfinished file. OSError when the lock can't be held."""
        self.claim()
        self._number += 1
        return f".mcastlab-{self._key}-{self._number}.part"

    def release(self) -> None:
        """Give the lock back, when no file is unfinished."""
        if self._lock >= 0:
            with suppress(OSError):
                os.unlink(_lock_name(self._key), dir_fd=self._folder)
            os.close(self._lock)
            self._lock = -1

    def _is_held(self, fd: int) -> bool:
        """Lock the new file; return False when another receiver, which just began, has removed it before."""
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.stat(_lock_name(self._key), dir_fd=self._folder)
        except (BlockingIOError, FileNotFoundError):
            return False
        except OSError:
            # On a file system without locks, no other receiver can lock this file and take it for abandoned.
            return True
        return True


def remove_stale(folder: int) -> tuple[int, bool]:
    """Remove the unfinished files of receivers that were killed; `folder` is a descriptor.

    Return how many there were, and whether any receiver was killed, which may have had nothing on the disk yet.
    """
    found: dict[str, list[str]] = {}
    for name in sorted(os.listdir(folder)):
        match = _NAME.fullmatch(name)
        if match:
            found.setdefault(match[1], []).append(name)
    removed, killed = 0, False
    for key, names in found.items():
        lock = _take(folder, _lock_name(key))
        if lock is None:
            continue
        killed = True
        # The lock comes last: if this is interrupted, it still marks the rest.
        for name in sorted(names, key=lambda name: name.endswith(".lock")):
            with suppress(OSError):
                os.unlink(name, dir_fd=folder)
                removed += name.endswith(".part")
        if lock >= 0:
            os.close(lock)
    return removed, killed


def _take(folder: int, name: str) -> int | None:
    """Lock a lock file and return its descriptor; -1 if there is no such file, None if its receiver may be alive."""
    try:
        fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, dir_fd=folder)
    except FileNotFoundError:
        return -1
    except OSError:
        return None
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(fd)
        return None
    return fd
