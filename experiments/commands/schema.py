"""`mcastlab schema`: print the JSON Schema of scenario, sweep or node files."""

import json
from typing import Annotated

import typer

from experiments.commands.options import Json
from experiments.scenario.scenario import file_schema
from experiments.session.node_file import node_schema
from experiments.sweep.spec.sweep_file import sweep_schema
from protocols.errors import UsageError

__all__ = ["schema"]


def schema(
    *,
    sweep: Annotated[bool, typer.Option("--sweep", help="Print the schema of sweep files.")] = False,
    node: Annotated[bool, typer.Option("--node", help="Print the schema of node files (pub and sub --config).")] = False,
    as_json: Json = False,
) -> None:
    """Print the JSON Schema of scenario files, or of sweep or node files: what may stand in them, for editors and validators.

    An editor that knows the line # yaml-language-server: $schema=PATH checks and completes a file that begins with it.
    With --json the schema is on one line.
    """
    if sweep and node:
        raise UsageError("--sweep, --node: only one of them is allowed")
    found = sweep_schema() if sweep else node_schema() if node else file_schema()
    typer.echo(json.dumps(found, indent=None if as_json else 2))
