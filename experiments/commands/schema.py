"""`mcastlab schema`: print the JSON Schema of scenario files."""

import json

import typer

from experiments.commands.options import Json
from experiments.scenario import scenario

__all__ = ["schema"]


def schema(*, as_json: Json = False) -> None:
    """Print the JSON Schema of scenario files; it is JSON anyway, with --json on one line."""
    typer.echo(json.dumps(scenario.file_schema(), indent=None if as_json else 2))
