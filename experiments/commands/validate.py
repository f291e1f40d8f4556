"""`mcastlab validate`: measure the reference values of theory, and compare."""

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from hashlib import sha256
from itertools import chain, groupby
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from experiments.commands.options import Brief, Columns, Jobs, Json, Wide
from experiments.output.budget import Column, Table
from experiments.output.counted import counted
from experiments.output.printer import Printer, View
from experiments.output.working import working
from protocols.errors import UsageError

if TYPE_CHECKING:
    from experiments.output.result_log import ResultLog
    from experiments.validation.references import ReferenceCheck

__all__ = ["validate_command"]

MOST_EFFORT = 100
_COLUMNS = (
    Column("agrees", rank=0),
    Column("value", rank=0),
    Column("theory", rank=1, digits=6),
    Column("measured", rank=1, digits=6),
    Column("error", rank=3, digits=2),
    Column("allowed", rank=2, digits=2),
)


def validate_command(
    *,
    family: Annotated[
        list[str] | None, typer.Option(help="Measure this family only; may be repeated.", metavar="F", show_default=False)
    ] = None,
    effort: Annotated[float, typer.Option(help="Fraction of the events of a full measurement.", metavar="X")] = 1.0,
    reference: Annotated[
        Path | None, typer.Option(help="File of references.  (default: the project's)", metavar="FILE", show_default=False)
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Write the table as Markdown.", metavar="FILE", show_default=False)] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue an interrupted run with --out.")] = False,
    jobs: Jobs = None,
    wide: Wide = False,
    columns: Columns = "",
    brief: Brief = False,
    as_json: Json = False,
) -> int:
    """Measure reference values of theory with the real machines and links.

    While it runs, --out keeps the measured values in FILE.part.

    Exit code 0: all agree; 1: some differ; 2: bad input; 130: interrupted.
    """
    view = View.of(wide=wide, columns=columns, brief=brief, as_json=as_json)
    view.check(column.name for column in _COLUMNS)
    if not 0 < effort <= MOST_EFFORT:
        raise UsageError(f"--effort: value {effort!r} is not allowed; more than 0, at most {MOST_EFFORT}")
    # Imported here, since the simulator would slow down the start of other commands.
    from experiments.validation.families import select, validate
    from experiments.validation.references import REFERENCES, read_references
    from experiments.validation.validation_page import validation_page

    if resume and out is None:
        raise UsageError("--resume: nothing to go on with without --out")
    file = reference or REFERENCES
    references = select(read_references(file), family or ())
    log = None if out is None else _log(out, effort, file, resume)
    by_id = {reference.id: reference for reference in references}

    def measure(ids: Sequence[str]) -> "Iterator[list[ReferenceCheck]]":
        return validate([by_id[each] for each in ids], effort, jobs or os.cpu_count() or 1)

    checks: list[ReferenceCheck] = []
    for found in _by_family(measure(list(by_id)) if log is None else log.through(list(by_id), measure)):
        checks += found
        if not as_json and not brief:
            _show(Printer(view), found)
    if log is not None:
        log.finish(validation_page(checks, effort))
    if as_json:
        typer.echo(json.dumps([asdict(check) for check in checks]))
    elif brief:
        Printer(view).verbatim(f"{counted(sum(check.good for check in checks), 'value', len(checks))} agree")
    return 0 if all(check.good for check in checks) else 1


def _log(out: Path, effort: float, file: Path, resume: bool) -> "ResultLog[list[ReferenceCheck]]":
    """Return the log of the values measured with an effort for a file of references."""
    from experiments.output.result_log import ResultLog
    from experiments.sweep.spec.code_version import code_version
    from experiments.validation.references import ReferenceCheck

    digest = sha256(file.read_bytes()).hexdigest()[:12]
    head = {"effort": effort, "references": digest, "code": code_version("experiments.validation.families")}

    def read(rows: list[dict[str, Any]]) -> tuple[str, list[ReferenceCheck]]:
        checks = [ReferenceCheck(**row) for row in rows]
        return checks[0].id, checks

    return ResultLog(out, head, lambda checks: [asdict(check) for check in checks], read, resume=resume)


def _by_family(found: "Iterable[list[ReferenceCheck]]") -> "Iterator[list[ReferenceCheck]]":
    """Join the checks of each family, with a spinner while they are measured."""
    for family, checks in groupby(chain.from_iterable(found), attrgetter("family")):
        with working(f"measuring {family}"):
            joined = list(checks)
        yield joined


def _show(printer: Printer, checks: "list[ReferenceCheck]") -> None:
    rows = [
        ["yes" if each.good else "NO", f"{each.id} {each.name}", each.reference, each.measured, each.error, each.allowed]
        for each in checks
    ]
    printer.table(Table(_COLUMNS, rows, checks[0].family))
    printer.line()
