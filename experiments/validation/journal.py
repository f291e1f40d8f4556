"""What a validation has measured so far, kept beside the page it will write until that is written."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path

from experiments.sweep.version import code_version
from experiments.validation.frame import Entry, Verdict
from protocols.errors import UsageError

__all__ = ["Journal"]


class Journal:
    """One JSON line for each entry measured, after one that says with which effort and by which code.

    UsageError when there is one already and `resume` is not asked for, or it is of something else, or can't be written.
    """

    def __init__(self, page: Path, effort: float, references: Path, *, resume: bool) -> None:
        self.path = page.with_name(page.name + ".part")
        # By the id of the entry.
        self._known: dict[str, list[Verdict]] = {}
        digest = sha256(references.read_bytes()).hexdigest()[:12]
        self._head = {"effort": effort, "references": digest, "code": code_version("experiments.validation.families")}
        if self.path.exists():
            if not resume:
                raise UsageError(f"--out: {self.path} is left from an interrupted run; go on with --resume, or remove it")
            self._read()
        try:
            self._file = self.path.open("w", encoding="utf-8")
        except OSError as error:
            why = f"a file that can be written ({error.strerror})"
            raise UsageError(f"--out: value {str(page)!r} is not allowed; {why}") from error
        self._write(self._head)
        for verdicts in self._known.values():
            self._keep(verdicts)

    def through(
        self, entries: Sequence[Entry], measure: Callable[[Sequence[Entry]], Iterator[list[Verdict]]]
    ) -> Iterator[list[Verdict]]:
        """The verdicts on each entry; measured are those that are not known."""
        found = measure([entry for entry in entries if entry.id not in self._known])
        for entry in entries:
            verdicts = self._known.get(entry.id)
            if verdicts is None:
                verdicts = next(found)
                self._keep(verdicts)
            yield verdicts

    def remove(self) -> None:
        """The page is written."""
        self._file.close()
        self.path.unlink()

    def _read(self) -> None:
        head, *lines = self.path.read_text(encoding="utf-8").split("\n")
        this = json.dumps(self._head)
        if head != this:
            raise UsageError(f"--resume: {self.path} is of {head}, and this is {this}; remove it to begin anew")
        # What comes after the last line break was not written to its end.
        for line in lines[:-1]:
            verdicts = [Verdict(**row) for row in json.loads(line)]
            self._known[verdicts[0].id] = verdicts

    def _keep(self, verdicts: list[Verdict]) -> None:
        self._write([asdict(verdict) for verdict in verdicts])

    def _write(self, line: object) -> None:
        print(json.dumps(line), file=self._file, flush=True)
