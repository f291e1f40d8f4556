"""`mcastlab doctor`: list what this machine can emulate, and which extras are installed."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import typer

from emu.capabilities import Capability, list_capabilities
from experiments.commands.options import Brief, Columns, Json, Wide
from experiments.output.budget import Column, Table
from experiments.output.extras import EXTRAS, Extra
from experiments.output.printer import Printer, View

__all__ = ["doctor"]


def doctor(*, wide: Wide = False, columns: Columns = "", brief: Brief = False, as_json: Json = False) -> int:
    """List what this machine can emulate and which extras are installed, with the commands that install what is missing.

    Exit code 0: emulation works; 3: something that it requires is missing. Extras have no influence.
    """
    view = View.of(wide=wide, columns=columns, brief=brief, as_json=as_json)
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
            reason = f" ({item.reason})" if item.reason else ""
            printer.verbatim(f"{item.name}{reason}: {item.remedy}")
    printer.line(_verdict(found))


def _plain(extra: Extra) -> dict[str, Any]:
    return {"name": extra.name, "purpose": extra.purpose, "missing": extra.missing, "command": extra.command}


def _show_extras(printer: Printer) -> None:
    printer.line()
    rows = [["no" if extra.missing else "yes", extra.name, extra.purpose] for extra in EXTRAS]
    printer.table(Table(_columns("extra"), rows))
    for extra in EXTRAS:
        if extra.missing:
            printer.verbatim(f"{extra.name} (without {', '.join(extra.missing)}): {extra.command}")
