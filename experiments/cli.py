"""The `mcastlab` command: the list of commands, and the exit codes of errors."""

import errno
import gc
import os
import re
import sys
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from importlib import import_module
from importlib.metadata import version
from io import TextIOWrapper
from typing import TYPE_CHECKING, Annotated, Any

import typer

from experiments.commands.help import Command, Group
from experiments.output.build import build_in_use, outdated_modules
from experiments.output.safe_text import printable
from protocols.errors import ContractError, McastlabError, UnsupportedError, UsageError

if TYPE_CHECKING:
    from experiments.scenario.protocol_faults import ProtocolFault

__all__ = ["COMMANDS", "EXIT_CODES", "app", "command", "invoke", "main"]

COMMANDS = {
    "run": ("run:run_command", "Run a scenario, or all its cases, and show the results."),
    "attach": ("attach:attach", "Open a shell on a host of an emulation that runs."),
    "demo": ("demo:demo", "Run one lossy file transfer in the simulator and in Mininet, and compare."),
    "scenarios": ("scenarios:scenarios", "List the ready scenarios."),
    "doctor": ("doctor:doctor", "List what this machine can run; or judge a scenario before it runs."),
    "compare": ("compare:compare_command", "Run a scenario under several protocols on identical losses."),
    "twin": ("twin:twin_command", "Test whether simulator and Mininet agree on a scenario."),
    "search": ("search:search_command", "Search for random faults that violate an invariant."),
    "zoo": ("zoo:zoo", "Run protocols with deliberate defects, to test the rules that runs are checked by."),
    "claims": ("claims:claims_command", "Judge the claims of a seed document by runs."),
    "topo": ("topo:topo", "Draw a network, or export it to another emulator."),
    "ladder": ("ladder:ladder", "Draw a part of a run as a sequence diagram."),
    "explain": ("explain:explain", "Tell why an object came late to a receiver, or not at all."),
    "inspect": ("inspection:inspect_command", "Analyse a capture of NORM traffic."),
    "channel": ("channel:channel", "Estimate loss models from real links, and write them for the kernel."),
    "sweep": ("sweep:sweep_command", "Run a scenario with varied parameters, on Spark."),
    "results": ("results:results_command", "Show the rows of a sweep, or write them to a file."),
    "analyse": ("analyse:analyse_command", "Summarise a sweep: intervals, differences, effects, theory, time series."),
    "report": ("report:report_command", "Write a report of a run or a sweep, as one HTML page with figures."),
    "spark": ("spark:spark_command", "Start, show or stop the Spark server that sweep, results, analyse and report share."),
    "send": ("send:send", "Send files to a multicast group by NORM."),
    "recv": ("recv:recv", "Receive files from a multicast group by NORM."),
    "stream": ("stream:stream_command", "Send standard input to the standard output of all receivers, by NORM."),
    "pub": ("pub:pub", "Publish messages: files, lines of standard input, or generated ones."),
    "sub": ("sub:sub", "Print the messages of topics as they come."),
    "broker": ("broker:broker", "Run a broker of topics that speaks STOMP."),
    "admin": ("admin:admin", "Run the registry by which tunnels find each other, with a web page."),
    "tunnel": ("tunnel:tunnel", "Carry a multicast group between sites by unicast."),
    "console": ("console:console", "Show sessions and whole domains as tables in the terminal, live."),
    "monitor": ("monitor:monitor", "Show sessions and whole domains as a page, live."),
    "new": ("new:new", "Write template files."),
    "contract": ("contract:contract", "Check a protocol against the rules of the contract."),
    "schema": ("schema:schema", "Print the JSON Schema of scenario, sweep or node files, by which editors check them."),
    "man": ("man:man", "Write the man pages of all commands."),
    "validate": ("validate:validate_command", "Measure the reference values of theory, and compare."),
}
"""Commands by name: module and function (or group of commands) in `experiments.commands`, and a line of help."""
ABOUT = "A laboratory for reliable multicast: the same protocol objects in a simulator, in Mininet and on a real network."
EXIT_CODES = {
    0: "yes, or done",
    1: "it ran, and the answer is no: something was not received, or a verdict is negative",
    2: "bad input; one line names the file, the key, the value and what is allowed",
    3: "this machine can't do it; the line says what is missing and how to get it",
    4: "the runs showed neither yes nor no; the answer says what would (twin)",
    130: "interrupted",
    141: "the program that read the output has closed it, as `head` does",
}


class _Commands(Group):
    """A group that imports only the command that is called, since most are slow to import."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, found, rest = super().resolve_command(ctx, args)
        return name, found if name is None else command(name), rest


@cache
def command(name: str) -> Any:
    """Import a command of `COMMANDS`, and return it as an object of click."""
    module, _, attribute = COMMANDS[name][0].partition(":")
    found = getattr(import_module(f"experiments.commands.{module}"), attribute)
    if isinstance(found, typer.Typer):
        return typer.main.get_command(found)
    alone = typer.Typer(add_completion=False)
    alone.command(name, cls=Command)(found)
    return typer.main.get_command(alone)


def _listed() -> None:
    """Do nothing: a placeholder for a command in the list, which is imported when it is called."""


app = typer.Typer(name="mcastlab", cls=_Commands, no_args_is_help=True, pretty_exceptions_enable=False)
for _name, (_, _line) in COMMANDS.items():
    app.command(_name, help=_line)(_listed)

LONGEST_WORD = 300
"""Characters of an error message without a space, as of a path or a value."""
_STDOUT, _STDERR = 1, 2
"""Descriptors of standard output and standard error."""
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
"""Errors of a standard output that can't take more."""
REFUSED: type[Exception] = typer.BadParameter.mro()[2]
"""ClickException of the click that typer uses, which some versions of typer include."""


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"{version('mcastlab')} ({build_in_use()})")
        raise typer.Exit


@app.callback(help=ABOUT)
def _mcastlab(
    wanted: Annotated[bool, typer.Option("--version", help="Print the version.", callback=_version, is_eager=True)] = False,
) -> None:
    """See `ABOUT`."""


def invoke(arguments: Sequence[str]) -> int:
    """Run a command line, given without the program's name, and return its exit code. Errors are one line on stderr."""
    try:
        code = app(list(arguments), prog_name="mcastlab", standalone_mode=False)
    except UnsupportedError as error:
        return _fail(str(error), 3)
    except (UsageError, ContractError) as error:
        return _fail(str(error), 2, _place_in(error) or _place_in_protocol(error))
    except McastlabError as error:
        return 141 if _is_closed_pipe(error) else _fail(str(error), 1)
    except (KeyboardInterrupt, typer.Abort):
        return 130
    except (Exception, SystemExit) as error:
        if _is_closed_pipe(error):
            return 141
        if _ends_an_interrupt(error):
            return 130
        code = _fail_in_protocol(error) or _fail_otherwise(error)
        if code is None:
            _advise(error)
            raise
    return code if isinstance(code, int) else 0


def _is_closed_pipe(error: BaseException) -> bool:
    """Return whether an output was closed by its reader.

    Click turns such an error into SystemExit, a task group into a group, a session into an error with this cause.
    """
    if isinstance(error, BaseExceptionGroup):
        return any(map(_is_closed_pipe, error.exceptions))
    cause = error.__context__ if isinstance(error, SystemExit) else error.__cause__
    return isinstance(error, BrokenPipeError) or isinstance(cause, BrokenPipeError)


def _ends_an_interrupt(error: BaseException | None) -> bool:
    """Return whether Ctrl-C came before an error, as where Spark reports that the jobs of an interrupted call are cancelled."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None


def _fail_in_protocol(error: BaseException) -> int | None:
    """Print where an external protocol raised an exception, with its last calls; None if none did."""
    fault = _protocol_fault(error)
    return None if fault is None else _fail(fault.summary, 2, fault.frames)


def _place_in_protocol(error: BaseException) -> str:
    """Return the last calls of an external protocol that led to an error; empty for none."""
    fault = _protocol_fault(error)
    return "" if fault is None else f"{fault.file}:\n{fault.frames}"


def _protocol_fault(error: BaseException) -> "ProtocolFault | None":
    if "experiments.scenario.protocol_modules" not in sys.modules:
        return None
    from experiments.scenario.protocol_faults import fault_in

    return fault_in(error)


def _advise(error: BaseException) -> None:
    """Note, below the traceback of an error in mcastlab, the external protocols that may have caused it, and their check."""
    if "experiments.scenario.protocol_modules" in sys.modules:
        from experiments.scenario.protocol_modules import external_sources

        for path in sorted(external_sources()):
            error.add_note(
                f"{path} may have returned a value that is not allowed; mcastlab contract shows which rule it breaks"
            )


def _fail_otherwise(error: BaseException) -> int | None:
    """Print what is missing, what can't be read or written, or what is wrong with a command line; None for other errors."""
    if isinstance(error, ModuleNotFoundError):
        return _fail(_lacking(error), 3)
    if isinstance(error, OSError) and error.filename is not None:
        return _fail(f"{error.filename}: {error.strerror}", 2)
    if isinstance(error, OSError) and error.errno in FULL:
        return _fail(f"the output can't be written ({error.strerror})", 2)
    return _fail(_refusal(error), 2) if isinstance(error, REFUSED) else None


def _refusal(error: Exception) -> str:
    """Return what is wrong with a command line; of a value of a wrong type or size in the form of all other errors."""
    from pydantic import ValidationError

    text: str = error.format_message().replace("Value error, ", "")  # type: ignore[attr-defined]
    found = re.match("Invalid value for '([^']+)'", text)
    if found is None or not isinstance(error.__cause__, ValidationError):
        return text
    from experiments.scenario.validation_errors import refused

    return f"{found[1]}: {refused(error.__cause__.errors()[0])}"


def _lacking(error: ModuleNotFoundError) -> str:
    """Return which package is missing and how to install it; raise `error` for a module that belongs to no extra."""
    from experiments.output.extras import extra_of

    module = (error.name or "").partition(".")[0]
    extra = extra_of(module)
    if extra is None:
        raise error
    return f"{module} is missing; get it: {extra.command}"


def _place_in(error: BaseException | None) -> str:
    """Return the excerpt of the user's text that an error, or one that caused it, names (`SelectorError.place`); else empty."""
    while error is not None:
        place: str = getattr(error, "place", "")
        if place:
            return place
        error = error.__cause__
    return ""


def _fail(text: str, code: int, place: str = "") -> int:
    """Print an error in one line, and below it the place in what a user wrote, if it has one."""
    # Standard error may be full, too; the exit code tells all the same.
    with suppress(OSError):
        if text:
            # The text is empty for a command line without arguments, after the help was shown.
            words = (printable(word) for word in text.split())
            line = " ".join(word if len(word) <= LONGEST_WORD else f"{word[:LONGEST_WORD]}..." for word in words)
            typer.echo(f"mcastlab: {line}", err=True)
        if place:
            typer.echo("\n".join(map(printable, place.split("\n"))), err=True)
    return code


def _flushed(code: int) -> int:
    """Flush standard output and return the exit code, which is another one if that fails.

    What can't be written is discarded, since Python would print a traceback when it flushes again at its exit.
    """
    try:
        sys.stdout.flush()
    except OSError as error:
        code = 141 if isinstance(error, BrokenPipeError) else code or 2
        os.dup2(os.open(os.devnull, os.O_WRONLY), _STDOUT)
    return code


def _open_standard_streams() -> None:
    """Open the null device where a standard stream is closed; the next file that is opened would take its place."""
    for descriptor, name, mode in ((0, "stdin", "r"), (_STDOUT, "stdout", "w"), (_STDERR, "stderr", "w")):
        if getattr(sys, name) is None:
            # It gets the lowest number that is free.
            os.open(os.devnull, os.O_RDWR)
            setattr(sys, name, os.fdopen(descriptor, mode, closefd=False))


def main() -> None:
    """Run the command line of this process and exit with its code."""
    _open_standard_streams()
    for stream in (sys.stdout, sys.stderr):
        # A name from the network may have characters that this terminal does not.
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    # No command has large matrices, and threads of numpy's BLAS take a fifteenth of the time of a short run.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    reason = outdated_modules()
    if reason is not None:
        typer.echo(f"mcastlab: running as pure Python: {reason}; build them again: make setup COMPILED=1", err=True)
    code = _flushed(invoke(sys.argv[1:]))
    # Python would search all objects of a run for cycles before it exits: seconds with a million receivers.
    gc.freeze()
    sys.exit(code)
