"""Write text files that others read meanwhile, and that have to survive a kill and a full disk."""

import os
import shutil
from pathlib import Path

__all__ = ["write_whole"]


def write_whole(path: Path, text: str, errors: str = "strict") -> None:
    """Write a text file that has its old or its new contents at any time; OSError, with the old ones kept, if it can't.

    `errors` says what becomes of characters that UTF-8 lacks, as of `open`. A file keeps its permissions.
    """
    part = path.with_name(f".{path.name}.part")
    try:
        with part.open("w", encoding="utf-8", errors=errors) as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        if path.exists():
            shutil.copymode(path, part)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
