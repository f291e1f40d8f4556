"""`mcastlab console`: sessions, emulations and whole domains as tables in a terminal."""

import sys

from experiments.commands.watching import Ifaces, ManagementGroup, watcher_of
from experiments.output.extras import need
from protocols.distributor.management import GROUP as MANAGEMENT
from protocols.errors import UnsupportedError

__all__ = ["console"]


def console(*, management: ManagementGroup = MANAGEMENT, iface: Ifaces = None) -> int:
    """Show domains, processes, connections, publishers and subscribers as tables in the terminal, live, until q.

    Keys: 1 to 4 choose a table, s and S the column to sort by, r reverses, / filters, escape shows all rows, p pauses, q ends.
    Exit code 2: bad input; 3: a library is missing, or there is no terminal.
    """
    need("console", "textual")
    watching = watcher_of(management, iface)
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UnsupportedError("console needs a terminal; mcastlab monitor serves the same as a page and as JSON")
    from experiments.monitor.console import ConsoleApp

    ConsoleApp(watching).run()
    return 0
