"""`mcastlab new wireshark`: write the Wireshark profile and the post-dissector for NORM."""

import json
from pathlib import Path
from typing import Annotated

import typer

from experiments.commands.options import Json
from protocols.errors import UsageError

__all__ = ["SCRIPT", "new_wireshark"]

TEMPLATES = Path(__file__).parents[1] / "inspection" / "wireshark"
SCRIPT = "mcastlab_norm.lua"
PROFILE = ("colorfilters", "preferences")


def new_wireshark(
    *,
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="Folder of Wireshark's configuration.", show_default="wireshark")
    ] = Path("wireshark"),
    as_json: Json = False,
) -> None:
    """Write the Wireshark profile `mcastlab` and a post-dissector that colour repairs, requests and losses of NORM."""
    targets = {name: folder / "profiles" / "mcastlab" / name for name in PROFILE} | {SCRIPT: folder / SCRIPT}
    for name, path in targets.items():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text((TEMPLATES / name).read_text(encoding="utf-8"), encoding="utf-8")
        except OSError as error:
            raise UsageError(f"DIR: {path} can't be written ({error.strerror})") from error
    following = [f"WIRESHARK_CONFIG_DIR={folder} wireshark -C mcastlab -X lua_script:{folder / SCRIPT} CAPTURE"]
    if as_json:
        typer.echo(json.dumps({"written": [str(path) for path in targets.values()], "next": following}))
    else:
        typer.echo("\n".join([*map(str, targets.values()), "\nNext:", *(f"  {line}" for line in following)]))
