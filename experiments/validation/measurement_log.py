"""What a validation has measured so far, kept beside the page it will write until that is written."""

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
    """One JSON line for each entry measured, after one that says with which effort and by which code.

    UsageError when there is one already and `resume` is not asked for, when it is of something else, when the page can't be
    written.
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
            raise UsageError(f"--out: {self._path} is left from an interrupted run; go on with --resume, or remove it")
        try:
            if begun:
                self._read(head)
            self._file = self._path.open("a", encoding="utf-8")
        except OSError as error:
            raise _unwritable(page, error.strerror) from error
        if not begun:
            self._write(head)

    def through(
        self, entries: Sequence[Reference], measure: Callable[[Sequence[Reference]], Iterator[list[ReferenceCheck]]]
    ) -> Iterator[list[ReferenceCheck]]:
        """The verdicts on each entry; measured are those that are not known."""
        found = measure([entry for entry in entries if entry.id not in self._known])
        for entry in entries:
            verdicts = self._known.get(entry.id)
            if verdicts is None:
                verdicts = next(found)
                self._write(json.dumps([asdict(verdict) for verdict in verdicts]))
            yield verdicts

    def finish(self, text: str) -> None:
        """All is measured: write the page. UsageError when that can't be done; what was measured stays."""
        try:
            self._page.write_text(text, encoding="utf-8")
        except OSError as error:
            raise _unwritable(self._page, error.strerror) from error
        self._file.close()
        self._path.unlink()

    def _read(self, head: str) -> None:
        data = self._path.read_bytes()
        # What comes after the last line break was not written to its end.
        whole = data[: data.rfind(b"\n") + 1]
        try:
            found, *lines = whole.decode().splitlines() or [""]
            for line in lines if found == head else ():
                verdicts = [ReferenceCheck(**row) for row in json.loads(line)]
                self._known[verdicts[0].id] = verdicts
        except (ValueError, TypeError, IndexError) as error:
            raise UsageError(
                f"--resume: {self._path} was changed by somebody else ({error}); remove it to begin anew"
            ) from error
        if found != head:
            raise UsageError(f"--resume: {self._path} is of {found}, and this is {head}; remove it to begin anew")
        os.truncate(self._path, len(whole))

    def _write(self, line: str) -> None:
        print(line, file=self._file, flush=True)


def _unwritable(page: Path, why: str | None) -> UsageError:
    return UsageError(f"--out: value {str(page)!r} is not allowed; a file that can be written ({why})")
