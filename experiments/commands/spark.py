"""`mcastlab spark`: the warm Spark server that sweep, results, analyse, report and notebooks share."""

import json
from typing import Any

import typer

from experiments.commands.help import Command, Group
from experiments.commands.options import Json
from experiments.output.counted import counted
from topologies.units import format_duration

__all__ = ["spark_command", "start", "status", "stop"]

spark_command = typer.Typer(
    cls=Group,
    add_completion=False,
    no_args_is_help=True,
    help="Start, show or stop the Spark server that sweep, results, analyse and report share.",
)


@spark_command.command(cls=Command)
def start(as_json: Json = False) -> int:
    """Start the server ahead of its first use, and return when Spark is ready.

    Exit code 0: it runs; 2: bad input; 3: this machine can't run Spark.
    """
    from experiments.sweep.run.spark_session import check_java, check_pyspark

    check_pyspark()
    check_java()
    from experiments.output.working import working
    from experiments.sweep.run.spark_servers import address, gateway, status_of

    with working("starting Spark"):
        line, _, _ = gateway()
        line.close()
    found = status_of(address())
    _print([] if found is None else [found], as_json)
    return 0


@spark_command.command(cls=Command)
def status(as_json: Json = False) -> int:
    """Show the servers of this user.

    Exit code 0: there is one; 1: there is none.
    """
    found = _all()
    _print(found, as_json)
    return 0 if found else 1


@spark_command.command(cls=Command)
def stop(as_json: Json = False) -> int:
    """Stop the servers of this user with all their processes; sweeps that use them end, and can be resumed.

    Exit code 0: none runs any more.
    """
    from experiments.sweep.run.spark_servers import servers, stop_server

    stopped = [server for path in list(servers()) if (server := stop_server(path)) is not None]
    if as_json:
        typer.echo(json.dumps({"stopped": stopped}))
    else:
        typer.echo("\n".join(f"stopped process {server}" for server in stopped) or "no Spark server runs")
    return 0


def _all() -> list[dict[str, Any]]:
    from experiments.sweep.run.spark_servers import servers, status_of

    return [found for path in servers() if (found := status_of(path)) is not None]


def _print(found: list[dict[str, Any]], as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps({"servers": found}))
    else:
        typer.echo("\n".join(map(_line, found)) or "no Spark server runs; the first command that needs Spark starts one")


def _line(found: dict[str, Any]) -> str:
    up, left = (format_duration(round(found[key] or 0)) for key in ("up_s", "ends_in_s"))
    use = f"{found['clients']} in use" if found["clients"] else f"unused, ends in {left}"
    cores = "starting" if found["cores"] is None else counted(found["cores"], "core")
    return f"process {found['pid']}: PySpark {found['pyspark']}, {cores}, up {up}, {use}\n  log {found['log']}"
