"""Open files that users name: regular files only, so that no device or pipe blocks a command or fills its memory."""

import os
from errno import EFBIG, EINVAL
from pathlib import Path
from stat import S_ISDIR, S_ISREG

__all__ = ["TEXT_LIMIT", "open_input", "read_bytes", "read_text"]

TEXT_LIMIT = 10_000_000
"""Most bytes of a text file that is read whole."""


def open_input(path: Path) -> int:
    """Open a file for reading and return its descriptor. OSError if it can't be read or is not a regular file."""
    # Without O_NONBLOCK the open of a pipe would wait for a writer.
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    mode = os.fstat(fd).st_mode
    if S_ISREG(mode):
        return fd
    os.close(fd)
    raise OSError(EINVAL, "is a folder" if S_ISDIR(mode) else "not a regular file", str(path))


def read_bytes(path: Path, limit: int = TEXT_LIMIT) -> bytes:
    """Return the contents of a regular file. OSError if it can't be read, or has more than `limit` bytes."""
    with open(open_input(path), "rb") as file:
        data = file.read(limit + 1)
    if len(data) > limit:
        raise OSError(EFBIG, f"more than {limit:,} bytes", str(path))
    return data


def read_text(path: Path, limit: int = TEXT_LIMIT) -> str:
    """Return the text of a regular file in UTF-8. OSError as in `read_bytes`; UnicodeDecodeError if it is not UTF-8."""
    return read_bytes(path, limit).decode("utf-8")
