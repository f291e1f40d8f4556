"""`mcastlab doctor`: what this machine can emulate."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from emu.capabilities import Capability, list_capabilities

__all__ = ["doctor"]


def doctor(*, as_json: Annotated[bool, typer.Option("--json", help="Print JSON, and nothing else, on stdout.")] = False) -> int:
    """List what this machine can emulate, and for each thing missing the command that brings it.

    Exit code 0: emulation works; 3: something it can't do without is missing.
    """
    found = list_capabilities()
    if as_json:
        typer.echo(json.dumps({"emulation": _works(found), "findings": [asdict(item) for item in found]}))
    else:
        _show(found)
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
