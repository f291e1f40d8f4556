"""`mcastlab doctor`: list what this machine can emulate, and which extras are installed; or judge a scenario before it runs."""

import json
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from emu.capabilities import Capability, list_capabilities
from experiments.commands.options import Brief, Columns, Json, Sets, Wide, scenarios_beginning, size_in_bytes
from experiments.output.budget import Column, Table
from experiments.output.extras import EXTRAS, Extra
from experiments.output.printer import Printer, View
from protocols.errors import UsageError

if TYPE_CHECKING:
    from experiments.doctor.examination import Examination
    from experiments.doctor.finding import Finding

__all__ = ["doctor"]

_IMPLIED = (
    Column("sender", rank=0),
    Column("receivers", rank=0),
    Column("bytes", rank=1),
    Column("round trip", "ms", rank=1, digits=3),
    Column("loss", "%", rank=1, digits=3),
    Column("sending", "s", rank=0, digits=3),
    Column("repair", "s", rank=0, digits=3),
    Column("kept", "s", rank=2, digits=3),
)


def doctor(
    *,
    scenario: Annotated[
        Path | None,
        typer.Argument(
            metavar="SCENARIO",
            help="Scenario to judge, a file or the name of a ready one.",
            show_default=False,
            autocompletion=scenarios_beginning,
        ),
    ] = None,
    sets: Sets = None,
    stream_buffer: Annotated[
        str | None,
        typer.Option(help="Judge a stream with a buffer of this size, too.", metavar="SIZE", show_default=False),
    ] = None,
    wide: Wide = False,
    columns: Columns = "",
    brief: Brief = False,
    as_json: Json = False,
) -> int:
    """List what this machine can emulate and which extras are installed, with the commands that install what is missing.

    With a scenario: say what its parameters imply, without running it, and what to set in their place.

    Exit code 0: emulation works; 3: something that it requires is missing. Extras have no influence. Of a scenario 0: nothing
    to object; 1: content will be late or lost; 2: bad input.
    """
    view = View.of(wide=wide, columns=columns, brief=brief, as_json=as_json)
    if scenario is not None:
        view.check(column.name for column in _IMPLIED)
        return _examine(view, scenario, sets or [], stream_buffer, as_json)
    for name, value in (("--set", sets), ("--stream-buffer", stream_buffer)):
        if value:
            raise UsageError(f"{name}: is not allowed without a scenario")
    view.check(("here", "what", "extra", "for"))
    found = list_capabilities()
    if as_json:
        findings, extras = [asdict(item) for item in found], [_plain(extra) for extra in EXTRAS]
        typer.echo(json.dumps({"emulation": _works(found), "findings": findings, "extras": extras}))
    elif brief:
        missing = [item.name for item in found if not item.present] + [extra.name for extra in EXTRAS if extra.missing]
        Printer(view).verbatim(f"{_verdict(found)} Missing: {', '.join(missing) or 'nothing'}.")
    else:
        _show(Printer(view), found)
        _show_extras(Printer(view))
    return 0 if _works(found) else 3


def _examine(view: View, path: Path, sets: list[str], stream: str | None, as_json: bool) -> int:
    """Judge a scenario, or each of its cases."""
    from experiments.doctor.examination import examine
    from experiments.scenario.cases import load_cases

    octets = None if stream is None else size_in_bytes("--stream-buffer", stream)
    found = {name: examine(case, octets) for name, case in load_cases(path, sets).items()}
    if as_json:
        plain = {name: examination.plain() for name, examination in found.items()}
        typer.echo(json.dumps(plain.get("", {"cases": plain})))
        return _code(found.values())
    printer = Printer(view)
    for place, examination in enumerate(found.values()):
        if place and not view.brief:
            printer.line()
        _show_examination(printer, examination, str(path), sets)
    return _code(found.values())


def _code(found: Iterable["Examination"]) -> int:
    return 0 if all(examination.is_sound for examination in found) else 1


def _show_examination(printer: Printer, examination: "Examination", path: str, sets: list[str]) -> None:
    findings, title = examination.findings, examination.scenario
    if printer.view.brief:
        printer.verbatim(f"{title}: {', '.join(finding.rule for finding in findings) or 'nothing to object'}")
        return
    rows = [
        [row.sender, row.receivers, row.bytes, row.round_trip * 1000, row.loss * 100, row.sending, row.repair, row.kept]
        for row in examination.implied
    ]
    if rows:
        printer.table(Table(_IMPLIED, rows, title))
    elif findings:
        printer.line(title)
    for finding in findings:
        printer.line()
        _show_finding(printer, finding, path, sets)
    if not findings:
        printer.line("nothing to object" if rows else f"{title}: nothing to object")


def _show_finding(printer: Printer, finding: "Finding", path: str, sets: list[str]) -> None:
    printer.line(f"{finding.severity.upper()} {finding.rule}: {finding.key} is {finding.value}; {finding.implies}", indent=2)
    printer.line(f"  advice: {finding.advice}", indent=2)
    told = [f"{key}={value}" for key, value in finding.changes.items() if not key.startswith("--")]
    if told:
        kept = [each for each in sets if each.partition("=")[0] not in finding.changes]
        words = [word for each in (*kept, *told) for word in ("--set", each)]
        printer.command(f"  {shlex.join(['mcastlab', 'run', path, *words])}")


def _works(found: Sequence[Capability]) -> bool:
    return all(item.present for item in found if item.needed)


def _verdict(found: Sequence[Capability]) -> str:
    return "Emulation works here." if _works(found) else "Emulation does not work here yet."


def _columns(what: str) -> list[Column]:
    return [Column("here", rank=0), Column(what, rank=0), Column("for", rank=1)]


def _show(printer: Printer, found: Sequence[Capability]) -> None:
    # In capitals what emulation does not work without.
    marks = ["yes" if item.present else "NO" if item.needed else "no" for item in found]
    rows = [[mark, item.name, item.purpose] for mark, item in zip(marks, found, strict=True)]
    printer.table(Table(_columns("what"), rows))
    for item in found:
        if not item.present:
            _show_remedy(printer, f"{item.name} ({item.reason})" if item.reason else item.name, item.remedy)
    printer.line(_verdict(found))


def _show_remedy(printer: Printer, missing: str, remedy: str) -> None:
    """Print what is missing and what brings it, in one line if it fits."""
    text = f"{missing}: {remedy}"
    if len(text) <= printer.width:
        printer.verbatim(text)
    else:
        printer.line(f"{missing}:", indent=2)
        printer.command(f"  {remedy}")


def _plain(extra: Extra) -> dict[str, Any]:
    return {"name": extra.name, "purpose": extra.purpose, "missing": extra.missing, "command": extra.command}


def _show_extras(printer: Printer) -> None:
    printer.line()
    rows = [["no" if extra.missing else "yes", extra.name, extra.purpose] for extra in EXTRAS]
    printer.table(Table(_columns("extra"), rows))
    for extra in EXTRAS:
        if extra.missing:
            _show_remedy(printer, f"{extra.name} (without {', '.join(extra.missing)})", extra.command)
