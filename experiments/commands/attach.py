"""`mcastlab attach`: a shell, or a command, on a host of an emulation that runs."""

import json
import shlex
from typing import Annotated

import typer

from emu.attachment import RunningEmulation, running_emulations
from emu.entering import run_in_namespaces, shell_command, shell_environment
from experiments.commands.options import Json
from protocols.errors import UsageError

__all__ = ["attach"]


def attach(
    *,
    host: Annotated[
        str, typer.Argument(metavar="HOST", help="Host, router or switch.  (default: list what runs)", show_default=False)
    ] = "",
    command: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="COMMAND", help="Command to run there; write -- before it.  (default: a shell)", show_default=False
        ),
    ] = None,
    process: Annotated[
        int | None, typer.Option("--run", help="Process id of the run, if several run.", metavar="PID", show_default=False)
    ] = None,
    as_json: Json = False,
) -> int:
    """Open a shell on a host of an emulation that runs, or run one command there; without HOST list your emulations.

    An emulation runs while mcastlab run --on emu does; --keep and --shell keep it up longer. The shell ends with it.

    Exit code: that of the shell or command; of the list 0, or 1 if nothing runs; 2: bad input.
    """
    found = [emulation for emulation in running_emulations() if process in (None, emulation.pid)]
    if not host:
        return _list(found, as_json)
    emulation = _choose(found, process)
    try:
        namespaces = emulation.namespaces(host)
    except OSError as error:
        raise UsageError(f"--run: value {emulation.pid} is not allowed; this run has ended") from error
    return run_in_namespaces(namespaces, shell_command(shlex.join(command or [])), shell_environment(host))


def _choose(found: list[RunningEmulation], process: int | None) -> RunningEmulation:
    if len(found) == 1:
        return found[0]
    if found:
        runs = ", ".join(f"{emulation.pid} ({emulation.title})" for emulation in found)
        raise UsageError(f"--run: is missing; several emulations run, one of {runs}")
    if process is not None:
        raise UsageError(f"--run: value {process} is not allowed; mcastlab attach lists your emulations")
    raise UsageError("no emulation of yours runs; start one: mcastlab run SCENARIO --on emu --keep")


def _list(found: list[RunningEmulation], as_json: bool) -> int:
    if as_json:
        typer.echo(json.dumps([{"run": item.pid, "scenario": item.title, "hosts": item.nodes} for item in found]))
    elif not found:
        typer.echo("no emulation of yours runs")
    else:
        for item in found:
            typer.echo(f"{item.pid}  {item.title}: {', '.join(item.nodes)}")
    return 0 if found else 1
