"""`mcastlab validate`: measure what theory says, and compare."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from experiments.commands.options import Json
from protocols.errors import UsageError

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
    as_json: Json = False,
) -> int:
    """Measure reference values of theory with the real machines and links.

    Exit code 0: all agree; 1: some differ; 2: bad input.
    """
    # The simulator is loaded here alone: it takes longer than other commands should take to start.
    from experiments.validation.families import select, validate
    from experiments.validation.frame import REFERENCES, read_entries
    from experiments.validation.page import page

    if not 0.0 < effort <= 100.0:
        raise UsageError(f"--effort: value {effort!r} is not allowed; a number above 0, at most 100")
    verdicts = []
    for verdict in validate(select(read_entries(reference or REFERENCES), family or ()), effort):
        verdicts.append(verdict)
        if not as_json:
            mark = "agrees " if verdict.good else "DIFFERS"
            numbers = f"{verdict.reference:.6g} measured {verdict.measured:.6g} +- {verdict.error:.2g}"
            typer.echo(f"{mark} {verdict.id} {verdict.name}: {numbers} (allowed {verdict.allowed:.2g})")
    if out is not None:
        try:
            out.write_text(page(verdicts, effort), encoding="utf-8")
        except OSError as error:
            raise UsageError(f"--out: value {str(out)!r} is not allowed; a file that can be written ({error})") from error
    if as_json:
        typer.echo(json.dumps([asdict(verdict) for verdict in verdicts]))
    return 0 if all(verdict.good for verdict in verdicts) else 1
