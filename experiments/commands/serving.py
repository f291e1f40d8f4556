"""The last line of a command that serves others until it is ended."""

import json
from collections.abc import Sequence

import typer

from protocols.machine import Machine
from topologies.units import format_duration

__all__ = ["print_summary"]


def print_summary(machine: Machine, counters: Sequence[str], elapsed: float, as_json: bool) -> None:
    """Print the counters of the machine after `elapsed` seconds: as JSON on stdout, or as text on stderr."""
    counts = machine.counts()
    found = {name: counts[name] for name in counters}
    if as_json:
        typer.echo(json.dumps({"event": "summary", "ok": True, "seconds": elapsed, **found}))
    else:
        text = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in found.items())
        typer.echo(f"served for {format_duration(round(elapsed, 3))}: {text}", err=True)
