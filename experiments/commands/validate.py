"""`mcastlab validate`: measure what theory says, and compare."""

import json
import os
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from experiments.commands.options import Json
from protocols.errors import UsageError

if TYPE_CHECKING:
    from experiments.validation.references import ReferenceCheck

__all__ = ["validate_command"]


def validate_command(
    *,
    family: Annotated[
        list[str] | None, typer.Option(help="Measure this family only; may be repeated.", metavar="F", show_default=False)
    ] = None,
    effort: Annotated[float, typer.Option(help="Fraction of the events of a full measurement.", metavar="X")] = 1.0,
    reference: Annotated[
        Path | None, typer.Option(help="File of references.  (default: the repository's)", metavar="FILE", show_default=False)
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Write the table as Markdown.", metavar="FILE", show_default=False)] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Measure what an interrupted run with --out left.")] = False,
    jobs: Annotated[
        int | None, typer.Option(help="So many at a time.  (default: all processors)", metavar="N", min=1, show_default=False)
    ] = None,
    as_json: Json = False,
) -> int:
    """Measure reference values of theory with the real machines and links.

    Until all is measured, --out keeps what is so far in FILE.part.
    Exit code 0: all agree; 1: some differ; 2: bad input; 130: interrupted.
    """
    # The simulator is loaded here alone: it takes longer than other commands should take to start.
    from experiments.validation.families import select, validate
    from experiments.validation.measurement_log import MeasurementLog
    from experiments.validation.references import REFERENCES, read_references
    from experiments.validation.validation_page import validation_page

    if not 0.0 < effort <= 100.0:
        raise UsageError(f"--effort: value {effort!r} is not allowed; a number above 0, at most 100")
    if resume and out is None:
        raise UsageError("--resume: nothing to go on with without --out")
    file = reference or REFERENCES
    entries = select(read_references(file), family or ())
    journal = None if out is None else MeasurementLog(out, effort, file, resume=resume)
    measure = partial(validate, effort=effort, jobs=jobs or os.cpu_count() or 1)
    verdicts: list[ReferenceCheck] = []
    for found in measure(entries) if journal is None else journal.through(entries, measure):
        verdicts += found
        if not as_json:
            _show(found)
    if journal is not None:
        journal.finish(validation_page(verdicts, effort))
    if as_json:
        typer.echo(json.dumps([asdict(verdict) for verdict in verdicts]))
    return 0 if all(verdict.good for verdict in verdicts) else 1


def _show(verdicts: "list[ReferenceCheck]") -> None:
    for verdict in verdicts:
        mark = "agrees " if verdict.good else "DIFFERS"
        numbers = f"{verdict.reference:.6g} measured {verdict.measured:.6g} +- {verdict.error:.2g}"
        typer.echo(f"{mark} {verdict.id} {verdict.name}: {numbers} (allowed {verdict.allowed:.2g})")
