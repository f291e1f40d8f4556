"""Files of records that lose what the disk has no room for, rather than end the run that writes them."""

import os
from contextlib import suppress
from errno import EDQUOT, EFBIG, EIO, ENOSPC
from io import FileIO
from pathlib import Path
from typing import Self

from protocols.errors import UsageError

__all__ = ["NO_ROOM", "RecordFile", "open_unbuffered"]

NO_ROOM = (ENOSPC, EDQUOT, EFBIG, EIO)
"""Errors of a file that can't take more."""
_HELD = 1 << 18


def open_unbuffered(path: Path, *, empty: bool = True) -> FileIO:
    """Create a file, and its folder, and open it to write, empty or as it is. UsageError if it can't be written."""
    kept = 0 if empty else os.O_TRUNC
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return FileIO(path, "wb", opener=lambda name, flags: os.open(name, flags & ~kept, 0o666))
    except OSError as error:
        raise UsageError(f"{path}: can't be written ({error.strerror})") from error


class RecordFile:
    """A file that is written in whole records, one for each `write`; the first for which there is no room is the end of it.

    `written` and `unwritten` count the records that begin with `counted`, once the file is closed. A file that was there is
    emptied when the first records are written; a `with` that ends by an error before the first counted record leaves it as it
    was. UsageError if the file can't be opened; OSError of `write` and `close` for what is no lack of room, as where the reader
    of a pipe is gone.
    """

    def __init__(self, path: Path, counted: bytes) -> None:
        self._path, self._is_new = path, not os.path.lexists(path)
        self._file = open_unbuffered(path, empty=False)
        self._counted = counted
        self._begun = self._full = False
        self._held: list[bytes] = []
        self._size = 0
        self.written = self.unwritten = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if kind is None or self._begun or any(record.startswith(self._counted) for record in self._held):
            self.close()
            return
        self._file.close()
        if self._is_new:
            self._path.unlink()

    def write(self, record: bytes | str) -> int:
        """Keep a record, of text or bytes, to be written with others; return its length."""
        data = record.encode() if isinstance(record, str) else record
        self._held.append(data)
        self._size += len(data)
        if self._size > _HELD:
            self._flush()
        return len(record)

    def close(self) -> None:
        """Write what is held, and close the file."""
        try:
            self._flush()
        finally:
            self._file.close()

    def _flush(self) -> None:
        records, size = self._held, self._size
        self._held, self._size = [], 0
        if not self._begun:
            self._begun = True
            self._cut(0)
        room = 0 if self._full else self._put(b"".join(records))
        self._full = self._full or room < size
        fitting, whole = len(records), size
        while whole > room:
            fitting -= 1
            whole -= len(records[fitting])
        counted = [record.startswith(self._counted) for record in records]
        self.written += sum(counted[:fitting])
        self.unwritten += sum(counted[fitting:])
        if whole < room:
            self._cut(self._file.tell() - room + whole)

    def _cut(self, length: int) -> None:
        """Shorten the file, but for a device or a pipe, which has no end to cut off."""
        with suppress(OSError):
            os.ftruncate(self._file.fileno(), length)

    def _put(self, data: bytes) -> int:
        """Write data, and return how much of it there was room for."""
        rest = memoryview(data)
        try:
            while rest:
                rest = rest[self._file.write(rest) :]
        except OSError as error:
            if error.errno not in NO_ROOM:
                raise
        return len(data) - len(rest)
