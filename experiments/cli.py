"""The `mcastlab` command: which commands there are, and how errors become exit codes.

0 yes; 1 it ran and the answer is no; 2 bad input; 3 this machine can't; 130 interrupted.
"""

import sys
from collections.abc import Sequence
from importlib.metadata import version
from typing import Annotated

import typer

from experiments.commands.analyse import analyse_command
from experiments.commands.channel import channel
from experiments.commands.compare import compare_command
from experiments.commands.demo import demo
from experiments.commands.doctor import doctor
from experiments.commands.inspection import inspect_command
from experiments.commands.ladder import ladder
from experiments.commands.recv import recv
from experiments.commands.report import report_command
from experiments.commands.results import results_command
from experiments.commands.run import run_command
from experiments.commands.schema import schema
from experiments.commands.search import search_command
from experiments.commands.send import send
from experiments.commands.sweep import sweep_command
from experiments.commands.topo import topo
from experiments.commands.twin import twin_command
from experiments.commands.validate import validate_command
from protocols.errors import McastlabError, UnsupportedError, UsageError

__all__ = ["app", "invoke", "main"]

app = typer.Typer(name="mcastlab", add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False)
app.command("run")(run_command)
app.command("demo")(demo)
app.command("doctor")(doctor)
app.command("search")(search_command)
app.command("send")(send)
app.command("recv")(recv)
app.command("schema")(schema)
app.command("ladder")(ladder)
app.command("inspect")(inspect_command)
app.command("topo")(topo)
app.command("compare")(compare_command)
app.command("twin")(twin_command)
app.add_typer(channel, name="channel")
app.command("sweep")(sweep_command)
app.command("results")(results_command)
app.command("report")(report_command)
app.command("analyse")(analyse_command)
app.command("validate")(validate_command)

REFUSED: type[Exception] = typer.BadParameter.mro()[2]
"""ClickException: typer brings its own click in some versions, so there is no one place to import it from."""


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(version("mcastlab"))
        raise typer.Exit


@app.callback()
def _mcastlab(
    wanted: Annotated[bool, typer.Option("--version", help="Print the version.", callback=_version, is_eager=True)] = False,
) -> None:
    """A laboratory for reliable multicast: the same protocol objects in a simulator, in Mininet and on a real network."""


def invoke(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code; a user's mistake is one line on stderr."""
    try:
        code = app(list(arguments), prog_name="mcastlab", standalone_mode=False)
    except UnsupportedError as error:
        return _fail(str(error), 3)
    except UsageError as error:
        return _fail(str(error), 2)
    except McastlabError as error:
        return _fail(str(error), 1)
    except (KeyboardInterrupt, typer.Abort):
        return 130
    except REFUSED as error:
        return _fail(error.format_message(), 2)  # type: ignore[attr-defined]
    return code if isinstance(code, int) else 0


def _fail(text: str, code: int) -> int:
    if text:
        # Without any arguments the help was shown, and there is nothing to add.
        typer.echo(f"mcastlab: {' '.join(text.split())}", err=True)
    return code


def main() -> None:
    """The console script."""
    sys.exit(invoke(sys.argv[1:]))
