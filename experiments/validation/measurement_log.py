"""Log of the values measured by a validation, kept beside the page until the page is written, for resumption."""

import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path

from experiments.sweep.spec.code_version import code_version
from experiments.validation.references import Reference, ReferenceCheck
from protocols.errors import UsageError

__all__ = ["MeasurementLog"]


class MeasurementLog:
    """One JSON line per measured reference, after a header with effort, digest of the references and code version.

    Raises UsageError if a log exists and `resume` is not set, if the log has another header, or if the page cannot be written.
    """

    def __init__(self, page: Path, effort: float, references: Path, *, resume: bool) -> None:
        if page.is_dir():
            raise _unwritable(page, "Is a directory")
        self._page = page
        self._path = page.with_name(page.name + ".part")
        # By the id of the entry.
        self._known: dict[str, list[ReferenceCheck]] = {}
        digest = sha256(references.read_bytes()).hexdigest()[:12]
        head = json.dumps({"effort": effort, "references": digest, "code": code_version("experiments.validation.families")})
        begun = self._path.exists() and self._path.stat().st_size > 0
        if begun and not resume:
            raise UsageError(f"--out: {self._path} is left from an interrupted run; continue with --resume, or remove it")
        try:
            if begun:
                self._read(head)
            self._file = self._path.open("a", encoding="utf-8")
        except OSError as error:
            raise _unwritable(page, error.strerror) from error
        if not begun:
            self._write(head)

    def through(
        self, references: Sequence[Reference], measure: Callable[[Sequence[Reference]], Iterator[list[ReferenceCheck]]]
    ) -> Iterator[list[ReferenceCheck]]:
        """Yield the checks of each reference; measure only those not in the log."""
        found = measure([reference for reference in references if reference.id not in self._known])
        for reference in references:
            checks = self._known.get(reference.id)
            if checks is None:
                checks = next(found)
                self._write(json.dumps([asdict(check) for check in checks]))
            yield checks

    def finish(self, text: str) -> None:
        """Write the page and remove the log; UsageError, keeping the log, if the page cannot be written."""
        try:
            self._page.write_text(text, encoding="utf-8")
        except OSError as error:
            raise _unwritable(self._page, error.strerror) from error
        self._file.close()
        self._path.unlink()

    def _read(self, head: str) -> None:
        data = self._path.read_bytes()
        # A line without line break was not completely written.
        whole = data[: data.rfind(b"\n") + 1]
        try:
            found, *lines = whole.decode().splitlines() or [""]
            for line in lines if found == head else ():
                checks = [ReferenceCheck(**row) for row in json.loads(line)]
                self._known[checks[0].id] = checks
        except (ValueError, TypeError, IndexError) as error:
            raise UsageError(f"--resume: {self._path} is damaged ({error}); remove it to start over") from error
        if found != head:
            raise UsageError(f"--resume: {self._path} belongs to {found}, not to {head}; remove it to start over")
        os.truncate(self._path, len(whole))

    def _write(self, line: str) -> None:
        print(line, file=self._file, flush=True)


def _unwritable(page: Path, why: str | None) -> UsageError:
    return UsageError(f"--out: value {str(page)!r} is not allowed; a file that can be written ({why})")
