"""Turn file names from the network into names that are safe and free in a folder."""

import os
import re
import unicodedata
from contextlib import suppress
from itertools import count

__all__ = ["LONGEST", "FinalNames", "safe_name"]

LONGEST = 200
"""Bytes of UTF-8 in a name: file systems allow 255, and a number may be appended."""
NAMES_KEPT = 4096
"""Names of which the number given last is kept."""


def _harmless(letter: str) -> str:
    # Categories C* are control, format (which reorder text on a terminal), surrogate and unassigned characters;
    # Zl and Zp break lines.
    category = unicodedata.category(letter)
    return "_" if category[0] == "C" or category in ("Zl", "Zp") else letter


def _shorten(name: str) -> str:
    """Truncate the stem of a name to `LONGEST` bytes and keep a short extension."""
    raw = name.encode()
    if len(raw) <= LONGEST:
        return name
    stem, dot, extension = name.rpartition(".")
    tail = dot + extension if stem and len(extension.encode()) <= 16 else ""
    return raw[: LONGEST - len(tail.encode())].decode(errors="ignore") + tail


def safe_name(info: bytes, fallback: str) -> str:
    """Return a file name that stays inside its folder: the last component of `info`, or `fallback` when nothing safe is left.

    The name has no separators, no control characters, no leading dot (a hidden file, `..`), no leading dash (an option to a
    command that reads the folder), and at most `LONGEST` bytes.
    """
    text = unicodedata.normalize("NFC", info.rstrip(b"\0").decode(errors="replace").replace("\ufffd", "_"))
    last = text.replace("\\", "/").rpartition("/")[2]
    name = re.sub(r"^[\s.]+", "", "".join(map(_harmless, last)).strip())
    if name.startswith("-"):
        name = "_" + name[1:]
    name = _shorten(name).rstrip()
    return name if name.strip("._ ") else fallback


class FinalNames:
    """Give complete files their names in a folder, given by its descriptor; existing files are replaced only with `force`."""

    def __init__(self, folder: int, force: bool) -> None:
        self._folder = folder
        self._force = force
        # The number that the last file of a name was given, so that the next is not compared with all before it.
        self._numbers: dict[str, int] = {}

    def place(self, temporary: str, asked: str) -> str:
        """Rename a file to `asked`, with a number behind it if that is taken; return its name. OSError when that fails."""
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
        if known is not None and not self._force:
            return known + 1
        taken, free = 0, 1
        while not self._force and self._exists(f"{asked}.{free}"):
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
            os.stat(name, dir_fd=self._folder, follow_symlinks=False)
        except FileNotFoundError:
            return False
        return True

    def _rename(self, temporary: str, name: str) -> None:
        if self._force:
            os.replace(temporary, name, src_dir_fd=self._folder, dst_dir_fd=self._folder)
            return
        # O_EXCL fails when the name exists, so the file that os.replace overwrites is the empty one created here.
        os.close(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=self._folder))
        try:
            os.replace(temporary, name, src_dir_fd=self._folder, dst_dir_fd=self._folder)
        except OSError:
            with suppress(OSError):
                os.unlink(name, dir_fd=self._folder)
            raise
