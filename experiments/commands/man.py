"""`mcastlab man`: write the man pages of all commands."""

import json
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import typer

from experiments import cli
from experiments.commands.options import Json
from experiments.output.man_pages import man_pages
from protocols.errors import UsageError

__all__ = ["man"]


def man(
    *,
    folder: Annotated[
        Path | None,
        typer.Argument(
            metavar="DIR", help="Folder for the pages.  (default: where man looks for this command)", show_default=False
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Write the man pages of all commands, from the same definitions as --help.

    Without DIR they go into share/man/man1 beside the bin folder of this Python; man finds them there when that bin is in PATH.
    """
    folder = folder if folder is not None else Path(sys.prefix) / "share" / "man" / "man1"
    commands = {name: cli.command(name) for name in cli.COMMANDS}
    pages = man_pages(commands, cli.ABOUT, cli.EXIT_CODES, version("mcastlab"))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in pages.items():
            (folder / name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"DIR: value {str(folder)!r} is not allowed; it can't be written ({error.strerror})") from error
    written = [str(folder / name) for name in pages]
    typer.echo(json.dumps({"written": written}) if as_json else f"{len(written)} pages in {folder}; read them: man mcastlab")
