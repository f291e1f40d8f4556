"""`mcastlab claims`: judge the claims of a document by runs."""

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from experiments.commands.options import Brief, Columns, Json, Wide
from experiments.output.budget import Column, Table
from experiments.output.printer import Printer, View
from experiments.output.working import working
from protocols.errors import UsageError

if TYPE_CHECKING:
    from experiments.claims.claim import ClaimFile, World
    from experiments.claims.judge import Judgement
    from experiments.output.result_log import ResultLog

__all__ = ["claims_command"]

_COLUMNS = (
    Column("id", rank=0),
    Column("verdict", rank=0),
    Column("claim", rank=3),
    Column("criterion", rank=6),
    Column("wanted", rank=2),
    Column("measured", rank=1, digits=5),
    Column("error", rank=4, digits=2),
    Column("scenario", rank=5),
    Column("command", rank=7),
)


def claims_command(
    *,
    seed: Annotated[
        str,
        typer.Argument(metavar="SEED", help="Number of the document: 000 (FJM2), 003 (the Distributor).", show_default=False),
    ],
    only: Annotated[
        list[str] | None, typer.Option(help="Judge this claim only; may be repeated.", metavar="ID", show_default=False)
    ] = None,
    backend: Annotated[str, typer.Option("--on", help="sim: the simulator; emu: Mininet.", metavar="sim|emu")] = "sim",
    out: Annotated[
        Path | None, typer.Option(help="Write the section of the document into this page.", metavar="FILE", show_default=False)
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue an interrupted run with --out.")] = False,
    jobs: Annotated[
        int | None,
        typer.Option(
            help="Parallel processes.  (default: all processors, in Mininet 1)", metavar="N", min=1, show_default=False
        ),
    ] = None,
    wide: Wide = False,
    columns: Columns = "",
    brief: Brief = False,
    as_json: Json = False,
) -> int:
    """Judge the claims of a document: run the scenario of each, and compare what is measured with its criterion.

    A claim holds, fails, or has a caveat: it holds with a restriction that is told, or can't be judged in this world. While it
    runs, --out keeps the verdicts in FILE.part.

    Exit code 0: no claim fails; 1: some do; 2: bad input; 3: this machine can't run it; 130: interrupted.
    """
    # Imported here, since the simulator would slow down the start of other commands.
    from experiments.claims.claim import read_claims
    from experiments.claims.claims_page import claims_section, section_name, with_section

    view = View.of(wide=wide, columns=columns, brief=brief, as_json=as_json)
    view.check(column.name for column in _COLUMNS)
    if backend not in ("sim", "emu"):
        raise UsageError(f"--on: value {backend!r} is not allowed; one of sim, emu")
    if resume and out is None:
        raise UsageError("--resume: nothing to go on with without --out")
    if out is not None:
        _page(out)
    world = cast("World", backend)
    claims = read_claims(seed)
    wanted = _wanted(claims, only or ())
    log = None if out is None else _log(out, claims, world, resume)
    work = partial(_judged, claims, world, jobs or (1 if world == "emu" else os.cpu_count() or 1))
    found: list[Judgement] = []
    with working(lambda: f"{len(found)} of {len(wanted)} claims were judged"):
        for judgement in work(wanted) if log is None else log.through(wanted, work):
            found.append(judgement)
    if out is not None and log is not None:
        log.finish(with_section(_page(out), section_name(claims, world), claims_section(claims, found, world)))
    _print(view, found, as_json)
    return 1 if any(each.verdict == "fails" for each in found) else 0


def _wanted(claims: "ClaimFile", only: Sequence[str]) -> list[str]:
    for name in only:
        if name not in claims.claims:
            raise UsageError(f"--only: value {name!r} is not allowed; one of {', '.join(claims.claims)}")
    return [name for name in claims.claims if not only or name in only]


def _page(path: Path) -> str:
    """Return the text of the page as it is now, "" without one. UsageError if it can't be read."""
    try:
        return path.read_text(encoding="utf-8") if path.exists() else ""
    except OSError as error:
        raise UsageError(f"--out: value {str(path)!r} is not allowed; it can't be read ({error.strerror})") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"--out: value {str(path)!r} is not allowed; it is not UTF-8 text (byte {error.start})") from error


def _judged(claims: "ClaimFile", world: "World", jobs: int, wanted: Sequence[str]) -> "Iterator[Judgement]":
    from experiments.claims.judge import judge

    return judge(claims, wanted, world, jobs)


def _log(out: Path, claims: "ClaimFile", world: str, resume: bool) -> "ResultLog[Judgement]":
    """Return the log of the verdicts on the claims of a file."""
    from experiments.claims.judge import Finding, Judgement
    from experiments.output.result_log import ResultLog
    from experiments.sweep.spec.code_version import code_version

    head = {"claims": claims.seed, "on": world, "code": code_version("experiments.claims.judge")}

    def read(row: dict[str, Any]) -> tuple[str, Judgement]:
        judgement = Judgement(**{**row, "findings": tuple(Finding(**each) for each in row["findings"])})
        return judgement.id, judgement

    return ResultLog(out, head, asdict, read, resume=resume)


def _print(view: View, found: "Sequence[Judgement]", as_json: bool) -> None:
    printer, holds = Printer(view), sum(each.verdict == "holds" for each in found)
    if as_json:
        typer.echo(json.dumps({"claims": [_plain(each) for each in found], "holds": holds, "of": len(found)}))
        return
    if not view.brief:
        rows = [
            [
                *(each.id, each.verdict if each.verdict != "fails" else "FAILS", each.claim, each.criterion, each.wanted),
                *(each.measured, each.error, each.scenario, each.command),
            ]
            for each in found
        ]
        printer.table(Table(_COLUMNS, rows))
        printer.line()
        for each in found:
            _tell(printer, each)
    printer.verbatim(f"{holds} of {len(found)} claims hold")


def _tell(printer: Printer, each: "Judgement") -> None:
    """Print the criterion of a claim, everything that was measured, and how to measure it again."""
    printer.line(f"{each.id} {each.verdict}: {each.criterion}", indent=4)
    for found in each.findings:
        mark = "" if found.good else ", NOT as wanted"
        printer.line(
            f"  {found.what}: {found.measured:.5g}, standard error {found.error:.2g} (wanted: {found.wanted}){mark}", indent=2
        )
    if each.reason:
        printer.line(f"  {each.reason}", indent=2)
    printer.verbatim(f"  {each.scenario}; again: {each.command}")


def _plain(each: "Judgement") -> dict[str, object]:
    names = ("id", "verdict", "wanted", "measured", "error", "backend", "scenario", "claim", "criterion", "command", "reason")
    return {name: getattr(each, name) for name in names} | {"checks": [asdict(finding) for finding in each.findings]}
