"""`mcastlab validate`: measure the reference values of theory, and compare."""

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
    resume: Annotated[bool, typer.Option("--resume", help="Continue an interrupted run with --out.")] = False,
    jobs: Annotated[
        int | None, typer.Option(help="Parallel processes.  (default: all processors)", metavar="N", min=1, show_default=False)
    ] = None,
    as_json: Json = False,
) -> int:
    """Measure reference values of theory with the real machines and links.

    While it runs, --out keeps the measured values in FILE.part.
    Exit code 0: all agree; 1: some differ; 2: bad input; 130: interrupted.
    """
    # Imported here, since the simulator would slow down the start of other commands.
    from experiments.validation.families import select, validate
    from experiments.validation.measurement_log import MeasurementLog
    from experiments.validation.references import REFERENCES, read_references
    from experiments.validation.validation_page import validation_page

    if not 0.0 < effort <= 100.0:
        raise UsageError(f"--effort: value {effort!r} is not allowed; a number above 0, at most 100")
    if resume and out is None:
        raise UsageError("--resume: nothing to go on with without --out")
    file = reference or REFERENCES
    references = select(read_references(file), family or ())
    log = None if out is None else MeasurementLog(out, effort, file, resume=resume)
    measure = partial(validate, effort=effort, jobs=jobs or os.cpu_count() or 1)
    checks: list[ReferenceCheck] = []
    for found in measure(references) if log is None else log.through(references, measure):
        checks += found
        if not as_json:
            _show(found)
    if log is not None:
        log.finish(validation_page(checks, effort))
    if as_json:
        typer.echo(json.dumps([asdict(check) for check in checks]))
    return 0 if all(check.good for check in checks) else 1


def _show(checks: "list[ReferenceCheck]") -> None:
    for check in checks:
        mark = "agrees " if check.good else "DIFFERS"
        numbers = f"{check.reference:.6g} measured {check.measured:.6g} +- {check.error:.2g}"
        typer.echo(f"{mark} {check.id} {check.name}: {numbers} (allowed {check.allowed:.2g})")
