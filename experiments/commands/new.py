"""`mcastlab new`: write template files."""

import json
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
    if not name.isidentifier() or not name.islower() or iskeyword(name):
        raise UsageError(f"NAME: value {name!r} is not allowed; lower-case letters, digits and _, like gossip")
    if name in protocol_names():
        raise UsageError(f"NAME: value {name!r} is not allowed; a protocol of this name is there already")
    path = Path(f"{name}.py")
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


new.command("wireshark", cls=Command)(new_wireshark)
