"""`mcastlab scenarios`: list the ready scenarios."""

import json

import typer

from experiments.commands.options import Brief, Columns, Json, Wide
from experiments.output.budget import Column, Table
from experiments.output.printer import Printer, View
from experiments.scenario.ready import ready_scenarios

__all__ = ["scenarios"]

_COLUMNS = (Column("name", rank=0), Column("about", rank=0))


def scenarios(*, wide: Wide = False, columns: Columns = "", brief: Brief = False, as_json: Json = False) -> None:
    """List the ready scenarios. Commands accept their names in place of files, as in: mcastlab run lan-file."""
    view = View.of(wide=wide, columns=columns, brief=brief, as_json=as_json)
    view.check(column.name for column in _COLUMNS)
    found = ready_scenarios()
    if as_json:
        typer.echo(json.dumps([{"name": item.name, "about": item.about, "file": str(item.path)} for item in found.values()]))
    elif brief:
        Printer(view).verbatim(" ".join(found))
    else:
        Printer(view).table(Table(_COLUMNS, [[item.name, item.about] for item in found.values()]))
