"""`mcastlab console`: sessions, emulations and whole domains as tables in a terminal."""

import asyncio
import json
import sys
from contextlib import suppress

import typer

from experiments.commands.options import Json
from experiments.commands.watching import Ifaces, ManagementGroup, watcher_of
from experiments.monitor.watcher import Watcher
from experiments.output.extras import need
from protocols.distributor.management import GROUP as MANAGEMENT
from protocols.errors import UnsupportedError

__all__ = ["console"]

SECONDS = 3.0
"""Seconds for which `--json` looks: rates are known from the second look on."""


def console(*, management: ManagementGroup = MANAGEMENT, iface: Ifaces = None, as_json: Json = False) -> int:
    """Show domains, processes, connections, publishers and subscribers as tables in the terminal, live, until q.

    Keys: 1 to 4 choose a table, s and S the column to sort by, r reverses, / filters, escape shows all rows, p pauses, q ends.
    With --json it looks for 3 s, prints what it has found, and ends. Exit code 2: bad input; 3: a library is missing, or there
    is no terminal.
    """
    watching = watcher_of(management, iface)
    if as_json:
        asyncio.run(_print_found(watching))
        return 0
    need("console", "textual")
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UnsupportedError("console needs a terminal; mcastlab monitor serves the same as a page and as JSON")
    from experiments.monitor.console import ConsoleApp

    ConsoleApp(watching).run()
    return 0


async def _print_found(watching: Watcher) -> None:
    """Look for a while, and print all rows and events."""
    with suppress(TimeoutError):
        await asyncio.wait_for(watching.run(), SECONDS)
    typer.echo(json.dumps(watching.whole()))
