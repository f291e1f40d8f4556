"""`mcastlab topo`: draw the network of a scenario, or export it to another emulator."""

import json
import os
from pathlib import Path
from tempfile import TemporaryFile
from typing import Annotated

import typer

from experiments.commands.ladder import write_drawing
from experiments.commands.options import Json, ScenarioFile, Sets
from experiments.drawing.topology_drawing import draw_topology, read_measured_traffic
from experiments.scenario.scenario import load
from protocols.errors import UsageError
from topologies.exports import core_xml, kathara_lab, mininet_script

__all__ = ["topo"]


def topo(
    *,
    scenario: ScenarioFile,
    svg: Annotated[Path | None, typer.Option(help="Write a drawing.", metavar="FILE", show_default=False)] = None,
    mininet: Annotated[Path | None, typer.Option(help="Write a Mininet script.", metavar="FILE.py", show_default=False)] = None,
    core: Annotated[Path | None, typer.Option(help="Write a CORE scenario.", metavar="FILE.xml", show_default=False)] = None,
    kathara: Annotated[
        Path | None, typer.Option(help="Write a Kathará lab into this folder.", metavar="DIR", show_default=False)
    ] = None,
    run: Annotated[
        Path | None, typer.Option(help="Folder of a run whose losses and loads are drawn.", metavar="RUN", show_default=False)
    ] = None,
    sets: Sets = None,
    as_json: Json = False,
) -> int:
    """Draw hosts, switches and links as SVG (with a run, its losses and loads), or export them to another emulator.

    Properties that the other emulator does not support are listed on stderr and in the file.
    """
    if not (svg or mininet or core or kathara):
        raise UsageError("topo: nothing to write; name --svg FILE, --mininet FILE.py, --core FILE.xml or --kathara DIR")
    _check_outputs({"--svg": svg, "--mininet": mininet, "--core": core, "--kathara": kathara})
    wanted = load(scenario, sets or ())
    topology = wanted.build_topology()
    drawing, exports = None, list[tuple[str, dict[Path, str], list[str]]]()
    if svg is not None:
        traffic = None if run is None else read_measured_traffic(run, topology)
        title = wanted.name if run is None else f"{wanted.name}: loss and load of a run"
        drawing = draw_topology(topology, title, traffic).svg()
    if mininet is not None:
        text, missing = mininet_script(topology, wanted.name, str(mininet))
        exports.append(("--mininet", {mininet: text}, missing))
    if core is not None:
        text, missing = core_xml(topology, wanted.name)
        exports.append(("--core", {core: text}, missing))
    if kathara is not None:
        files, missing = kathara_lab(topology, wanted.name)
        exports.append(("--kathara", {kathara / name: text for name, text in files.items()}, missing))
    if svg is not None and drawing is not None:
        write_drawing(svg, drawing)
    for option, contents, _ in exports:
        _write(option, contents)
    written = [path for path in (svg, *(next(iter(contents)) for _, contents, _ in exports)) if path is not None]
    lacking = {option.removeprefix("--"): missing for option, _, missing in exports}
    if as_json:
        typer.echo(json.dumps({"written": [str(path) for path in written], "missing": lacking}))
    else:
        _tell(written, lacking)
    return 0


def _tell(written: list[Path], lacking: dict[str, list[str]]) -> None:
    for path in written:
        typer.echo(path)
    for missing in lacking.values():
        for line in missing:
            typer.echo(f"mcastlab: not in the export: {line}", err=True)


def _check_outputs(outputs: dict[str, Path | None]) -> None:
    """Raise UsageError if two outputs are the same, or one could not be written; nothing is written yet."""
    named: dict[Path, str] = {}
    for option, path in outputs.items():
        if path is None:
            continue
        refused = f"{option}: value {str(path)!r} is not allowed; "
        other = named.setdefault(path.absolute(), option)
        if other != option:
            raise UsageError(f"{refused}{other} writes there")
        try:
            problem = _problem(path, option)
        except OSError as error:
            problem = str(error.strerror)
        if problem:
            raise UsageError(f"{refused}it can't be written ({problem})")


def _problem(path: Path, option: str) -> str:
    """Return why an output can't be written at `path`; "" if it can, as far as is known before."""
    if option == "--svg" and not path.parent.is_dir():
        return f"there is no folder {path.parent}"
    if path.exists():
        if path.is_dir() != (option == "--kathara"):
            return "is a folder" if path.is_dir() else "not a folder"
        return "" if os.access(path, os.W_OK) else "no permission"
    parent = next(parent for parent in path.absolute().parents if parent.exists())
    if not parent.is_dir():
        return f"{parent} is not a folder"
    if not os.access(parent, os.W_OK | os.X_OK):
        return f"no permission in {parent}"
    # Root may do everything, and still some file systems take no files.
    with TemporaryFile(dir=parent):
        return ""


def _write(option: str, files: dict[Path, str]) -> None:
    for path, text in files.items():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        except OSError as error:
            raise UsageError(f"{option}: {path} can't be written ({error.strerror})") from error
