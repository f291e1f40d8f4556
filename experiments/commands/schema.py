"""`mcastlab schema`: print the JSON Schema of scenario or sweep files."""

import json
from typing import Annotated

import typer

from experiments.commands.options import Json
from experiments.scenario.scenario import file_schema
from experiments.session.node_file import node_schema
from experiments.sweep.spec.sweep_file import sweep_schema

__all__ = ["schema"]


def schema(
    *,
    sweep: Annotated[bool, typer.Option("--sweep", help="That of sweep files instead of scenario files.")] = False,
    node: Annotated[bool, typer.Option("--node", help="That of node files (pub and sub --config).")] = False,
    as_json: Json = False,
) -> None:
    """Print the JSON Schema of scenario files, for editors; it is JSON anyway, with --json on one line.

    A file that begins with # yaml-language-server: $schema=PATH is checked and completed by editors that know this line.
    """
    found = sweep_schema() if sweep else node_schema() if node else file_schema()
    typer.echo(json.dumps(found, indent=None if as_json else 2))
