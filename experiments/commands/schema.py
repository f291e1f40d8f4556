"""`mcastlab schema`: print the JSON Schema of scenario files."""

import json

import typer

from experiments.scenario import scenario

__all__ = ["schema"]


def schema() -> None:
    """Print the JSON Schema of scenario files."""
    typer.echo(json.dumps(scenario.file_schema(), indent=2))
