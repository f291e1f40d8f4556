"""`mcastlab topo`: draw the network of a scenario, or export it to another emulator."""

import json
from pathlib import Path
from typing import Annotated

import typer

from experiments.commands.options import Json, ScenarioFile, Sets
from experiments.commands.text_file import write_text
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
    wanted = load(scenario, sets or ())
    topology = wanted.build_topology()
    drawing, exports = None, list[tuple[str, dict[Path, str], list[str]]]()
    if svg is not None:
        traffic = None if run is None else read_measured_traffic(run, topology, wanted.plain()["topology"])
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
        write_text("--svg", svg, drawing)
    for option, contents, _ in exports:
        for path, text in contents.items():
            write_text(option, path, text)
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
