"""Show that a command reads the results of a sweep by Spark, and whether it waits for the runs of another command."""

from contextlib import AbstractContextManager
from pathlib import Path

from experiments.output.working import working
from protocols.errors import UnsupportedError

__all__ = ["reading"]


def reading(*folders: Path, master: str, remote: str | None = None) -> AbstractContextManager[None]:
    """Show on a terminal that the folders are read, and, on the shared Spark server, when other commands hold all cores."""
    text = f"reading {' and '.join(map(str, folders))}"
    return working(lambda: text + _wait(master, remote))


def _wait(master: str, remote: str | None) -> str:
    from experiments.sweep.run.spark_servers import MASTER, address, status_of

    if master != MASTER or remote is not None:
        return ""
    try:
        found = status_of(address())
    except UnsupportedError as error:
        return f"; {error}"
    return "; other commands hold all cores of the Spark server, this one waits" if found and found["waiting"] else ""
