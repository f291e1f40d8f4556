"""`mcastlab scenarios`: list the ready scenarios."""

import json
from typing import Annotated

import typer

from experiments.commands.options import Brief, Columns, Json, Wide
from experiments.output.budget import Column, Table
from experiments.output.printer import Printer, View
from experiments.scenario.ready import ready_scenarios
from protocols.errors import UsageError

__all__ = ["scenarios"]

_COLUMNS = (Column("name", rank=0), Column("about", rank=0))


def scenarios(
    *,
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="WORD", help="List those that have these words in name or description.", show_default=False),
    ] = None,
    wide: Wide = False,
    columns: Columns = "",
    brief: Brief = False,
    as_json: Json = False,
) -> None:
    """List the ready scenarios. Commands accept their names in place of files, as in: mcastlab run lan-file."""
    view = View.of(wide=wide, columns=columns, brief=brief, as_json=as_json)
    view.check(column.name for column in _COLUMNS)
    wanted = [word.casefold() for word in words or ()]
    found = [
        item for item in ready_scenarios().values() if all(word in f"{item.name} {item.about}".casefold() for word in wanted)
    ]
    if not found:
        raise UsageError(
            f"WORD: value {' '.join(words or ())!r} is not allowed; no ready scenario has it in name or description"
        )
    if as_json:
        typer.echo(json.dumps([{"name": item.name, "about": item.about, "file": str(item.path)} for item in found]))
    elif brief:
        Printer(view).verbatim(" ".join(item.name for item in found))
    else:
        Printer(view).table(Table(_COLUMNS, [[item.name, item.about] for item in found]))
