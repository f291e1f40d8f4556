"""`mcastlab doctor`: list what this machine can emulate, and which extras are installed."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from emu.capabilities import Capability, list_capabilities
from experiments.output.extras import EXTRAS, Extra

__all__ = ["doctor"]


def doctor(*, as_json: Annotated[bool, typer.Option("--json", help="Print JSON, and nothing else, on stdout.")] = False) -> int:
    """List what this machine can emulate and which extras are installed, with the commands that install what is missing.

    Exit code 0: emulation works; 3: something that it requires is missing. Extras have no influence.
    """
    found = list_capabilities()
    if as_json:
        findings, extras = [asdict(item) for item in found], [_plain(extra) for extra in EXTRAS]
        typer.echo(json.dumps({"emulation": _works(found), "findings": findings, "extras": extras}))
    else:
        _show(found)
        _show_extras()
    return 0 if _works(found) else 3


def _works(found: Sequence[Capability]) -> bool:
    return all(item.present for item in found if item.needed)


def _show(found: Sequence[Capability]) -> None:
    console = Console(highlight=False)
    table = Table(box=None, pad_edge=False, header_style="bold")
    for head in ("", "what", "for"):
        table.add_column(head)
    for item in found:
        mark = "[green]yes[/]" if item.present else "[red]NO[/]" if item.needed else "[yellow]no[/]"
        table.add_row(mark, item.name, escape(item.purpose))
    console.print(table)
    for item in found:
        if not item.present:
            reason = f" ({item.reason})" if item.reason else ""
            console.print(escape(f"{item.name}{reason}: {item.remedy}"), soft_wrap=True)
    console.print("Emulation works here." if _works(found) else "Emulation does not work here yet.")


def _plain(extra: Extra) -> dict[str, Any]:
    return {"name": extra.name, "purpose": extra.purpose, "missing": extra.missing, "command": extra.command}


def _show_extras() -> None:
    console = Console(highlight=False)
    table = Table(box=None, pad_edge=False, header_style="bold")
    for head in ("", "extra", "for"):
        table.add_column(head)
    for extra in EXTRAS:
        table.add_row("[yellow]no[/]" if extra.missing else "[green]yes[/]", extra.name, escape(extra.purpose))
    console.print(table)
    for extra in EXTRAS:
        if extra.missing:
            console.print(escape(f"{extra.name} (without {', '.join(extra.missing)}): {extra.command}"), soft_wrap=True)
