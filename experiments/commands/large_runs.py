"""Estimate large simulations before they begin, for all commands that simulate."""

import sys
from collections.abc import Iterable
from math import inf

import typer

from experiments.output.working import working
from experiments.scenario.scenario import Scenario

__all__ = ["admit_simulations"]


def admit_simulations(scenarios: Iterable[Scenario], time_limit: float = inf) -> None:
    """Print the estimated cost of each large simulation; UsageError for one that needs too much memory or time (seconds)."""
    from experiments.running.run_cost import NO_ESTIMATE, admit, begins_at_once

    for wanted in scenarios:
        if not begins_at_once(wanted, time_limit):
            with working(f"estimating {wanted.name}"):
                cost = admit(wanted, time_limit)
            if cost is None:
                typer.echo(f"warning: {wanted.name}: {NO_ESTIMATE}", err=True)
            elif sys.stderr.isatty():
                typer.echo(f"{wanted.name}: {cost}", err=True)
