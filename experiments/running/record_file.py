"""Files of records that lose what the disk has no room for, rather than end the run that writes them."""

import os
from contextlib import suppress
from errno import EDQUOT, EFBIG, EIO, ENOSPC
from io import FileIO
from pathlib import Path

from protocols.errors import UsageError

__all__ = ["NO_ROOM", "RecordFile", "open_unbuffered"]

NO_ROOM = (ENOSPC, EDQUOT, EFBIG, EIO)
"""Errors of a file that can't take more."""
_HELD = 1 << 18


def open_unbuffered(path: Path) -> FileIO:
    """Create a file, and its folder, and open it to write. UsageError if it can't be written."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return path.open("wb", buffering=0)
    except OSError as error:
        raise UsageError(f"{path}: can't be written ({error.strerror})") from error


class RecordFile:
    """A file that is written in whole records, one for each `write`; the first for which there is no room is the end of it.

    `written` and `unwritten` count the records that begin with `counted`, once the file is closed. UsageError if the file can't
    be opened; OSError of `write` and `close` for what is no lack of room, as where the reader of a pipe is gone.
    """

    def __init__(self, path: Path, counted: bytes) -> None:
        self._file = open_unbuffered(path)
        self._counted = counted
        self._full = False
        self._held: list[bytes] = []
        self._size = 0
        self.written = self.unwritten = 0

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
            # A device or a pipe has no end to cut off.
            with suppress(OSError):
                os.ftruncate(self._file.fileno(), self._file.tell() - room + whole)

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
