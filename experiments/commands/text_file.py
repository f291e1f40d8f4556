"""Write the text files that commands produce."""

from pathlib import Path

from experiments.output.whole_file import write_whole
from protocols.errors import UsageError

__all__ = ["write_text"]


def write_text(option: str, path: Path, text: str) -> None:
    """Write a text file, and make its folder.

    UsageError, which names the option, if it can't be written; the file is as it was then.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # The text may name a file whose name is not UTF-8.
        if path.exists() and not path.is_file():
            # A pipe or a device.
            path.write_text(text, encoding="utf-8", errors="backslashreplace")
        else:
            write_whole(path.resolve(), text, "backslashreplace")
    except OSError as error:
        raise UsageError(f"{option}: value {str(path)!r} is not allowed; it can't be written ({error.strerror})") from error
