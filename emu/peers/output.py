"""The output of a foreign program, in a file of any size."""

import os
from pathlib import Path

__all__ = ["last_line"]

_END = 1 << 16
_LONGEST = 200


def last_line(output: Path) -> str:
    """Return the last line that is not blank in the last 64 KiB of a file, at most 200 characters of it."""
    with output.open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - _END))
        lines = file.read(_END).decode(errors="replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "it printed nothing")[:_LONGEST]
