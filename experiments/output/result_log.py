"""Log of the results of a long command, kept beside the file that it writes in the end, so that it can be resumed."""

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Generic, TypeVar

from protocols.errors import UsageError

__all__ = ["ResultLog"]

T = TypeVar("T")


class ResultLog(Generic[T]):
    """One JSON line per result, after a header that says what the results depend on.

    `page` is the file to write in the end, and the log is beside it, with the suffix `.part`. `plain` turns a result into plain
    values, and `read` these into the key and the result.

    Raises UsageError if a log with a result exists and `resume` is not set, if the log has another header, or if the page
    cannot be written.
    """

    def __init__(
        self,
        page: Path,
        header: Mapping[str, object],
        plain: Callable[[T], Any],
        read: Callable[[Any], tuple[str, T]],
        *,
        resume: bool,
    ) -> None:
        self._page = page
        self._path = page.with_name(page.name + ".part")
        self._plain = plain
        self._known: dict[str, T] = {}
        head = json.dumps(header)
        # A header alone is left where the first run was refused or interrupted.
        begun = self._path.exists() and self._path.read_bytes().count(b"\n") > 1
        if begun and not resume:
            raise UsageError(f"--out: {self._path} is left from an interrupted run; continue with --resume, or remove it")
        try:
            if begun:
                self._read(head, read)
            self._path.open("a" if begun else "w").close()
        except OSError as error:
            raise _unwritable(page, error.strerror) from error
        if not begun:
            self._write(head)

    def through(self, keys: Sequence[str], work: Callable[[Sequence[str]], Iterator[T]]) -> Iterator[T]:
        """Yield the result of each key; `work` yields those of the keys that are not in the log."""
        found = work([key for key in keys if key not in self._known])
        for key in keys:
            result = self._known.get(key)
            if result is None:
                result = next(found)
                self._write(json.dumps(self._plain(result)))
            yield result

    def finish(self, text: str) -> None:
        """Write the page and remove the log; UsageError, keeping the log, if the page cannot be written."""
        try:
            self._page.write_text(text, encoding="utf-8")
        except OSError as error:
            raise _unwritable(self._page, error.strerror) from error
        self._path.unlink()

    def _read(self, head: str, read: Callable[[Any], tuple[str, T]]) -> None:
        data = self._path.read_bytes()
        # A line without line break was not completely written.
        whole = data[: data.rfind(b"\n") + 1]
        try:
            found, *lines = whole.decode().splitlines() or [""]
            self._known.update(read(json.loads(line)) for line in (lines if found == head else ()))
        except (ValueError, TypeError, LookupError) as error:
            raise UsageError(f"--resume: {self._path} is damaged ({error}); remove it to start over") from error
        if found != head:
            raise UsageError(f"--resume: {self._path} belongs to {found}, not to {head}; remove it to start over")
        os.truncate(self._path, len(whole))

    def _write(self, line: str) -> None:
        with self._path.open("a", encoding="utf-8") as file:
            print(line, file=file)


def _unwritable(page: Path, why: str | None) -> UsageError:
    return UsageError(f"--out: value {str(page)!r} is not allowed; a file that can be written ({why})")
