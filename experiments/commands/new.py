"""`mcastlab new`: write template files."""

import json
import sys
from importlib.machinery import PathFinder
from keyword import iskeyword
from pathlib import Path
from typing import Annotated

import typer

from experiments.commands.help import Command, Group
from experiments.commands.new_wireshark import new_wireshark
from experiments.commands.options import Json
from experiments.scenario.protocol_modules import protocol_names
from protocols.errors import UsageError

__all__ = ["new", "new_protocol"]

PROJECT = ("emu", "experiments", "mcastlab", "protocols", "sim", "topologies")
TEMPLATE = Path(__file__).parents[1] / "contract" / "new_protocol.txt"

new = typer.Typer(cls=Group, add_completion=False, no_args_is_help=True, help="Write template files.")


@new.callback()
def _new() -> None:
    """Write template files."""


@new.command("protocol", cls=Command)
def new_protocol(
    *,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the protocol, in lower case.", show_default=False)],
    as_json: Json = False,
) -> None:
    """Write NAME.py, a minimal protocol to start from: it repeats every packet and needs no feedback."""
    if iskeyword(name):
        raise UsageError(f"NAME: value {name!r} is not allowed; it is a word of Python")
    if not name.isidentifier() or not name.islower():
        raise UsageError(f"NAME: value {name!r} is not allowed; lower-case letters, digits and _, like gossip")
    if name in protocol_names():
        raise UsageError(f"NAME: value {name!r} is not allowed; a protocol of this name is there already")
    path = Path(f"{name}.py")
    if not path.exists() and (owner := _owner_of(name)):
        raise UsageError(f"NAME: value {name!r} is not allowed; {path} would hide {owner} from programs of this folder")
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(TEMPLATE.read_text(encoding="utf-8").replace("@name@", name))
    except FileExistsError as error:
        raise UsageError(f"NAME: value {name!r} is not allowed; {path} is there already") from error
    except OSError as error:
        raise UsageError(f"{path}: can't be written ({error.strerror})") from error
    chosen = f"--set 'protocol={{module: {path}}}'"
    commands = [f"contract {path}", f"run lan-file {chosen}", f"run lan-file {chosen} --on emu"]
    following = [f"mcastlab {command}" for command in commands]
    if as_json:
        typer.echo(json.dumps({"written": [str(path)], "next": following}))
    else:
        typer.echo("\n  ".join([f"{path}\n\nNext:", *following]))


def _owner_of(name: str) -> str:
    """Return what has a module of this name that a file of the working directory would hide; empty for nothing."""
    if name in sys.stdlib_module_names:
        return f"Python's module {name}"
    if name in PROJECT:
        return f"mcastlab's package {name}"
    # Without the working directory, in which another folder of this name is the user's own.
    folders = [folder for folder in sys.path if Path(folder).resolve() != Path.cwd()]
    return f"the installed module {name}" if PathFinder.find_spec(name, folders) is not None else ""


new.command("wireshark", cls=Command)(new_wireshark)
