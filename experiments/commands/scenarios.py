"""`mcastlab scenarios`: list the ready scenarios."""

import json

import typer

from experiments.commands.options import Json
from experiments.scenario.ready import ready_scenarios

__all__ = ["scenarios"]


def scenarios(*, as_json: Json = False) -> None:
    """List the ready scenarios. Commands accept their names in place of files, as in: mcastlab run lan-file."""
    found = ready_scenarios()
    if as_json:
        typer.echo(json.dumps([{"name": item.name, "about": item.about, "file": str(item.path)} for item in found.values()]))
        return
    width = max(map(len, found))
    for item in found.values():
        typer.echo(f"{item.name:{width}}  {item.about}")
