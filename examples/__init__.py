"""Programs to read, run and change."""

from argparse import ArgumentTypeError
from pathlib import Path
from tempfile import TemporaryFile

__all__ = ["at_least_one", "new_file"]


def at_least_one(text: str) -> int:
    """Return the whole number of an option, from 1 on. ArgumentTypeError for anything else, which argparse shows."""
    if not text.isdecimal() or int(text) < 1:
        raise ArgumentTypeError(f"{text!r} is not allowed; a whole number from 1 on")
    return int(text)


def new_file(text: str) -> Path:
    """Return the file that an option names, in a folder that is created. ArgumentTypeError if none can be written there."""
    path = Path(text)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        TemporaryFile(dir=path.parent).close()
    except OSError as error:
        raise ArgumentTypeError(f"{text!r} is not allowed; it can't be written ({error.strerror})") from error
    if path.is_dir():
        raise ArgumentTypeError(f"{text!r} is not allowed; it is a folder")
    return path
