"""`mcastlab topo`: draw the network of a scenario, or export it to another emulator."""

from pathlib import Path
from typing import Annotated

import typer

from experiments.commands.ladder import write_drawing
from experiments.commands.options import ScenarioFile
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
    sets: Annotated[
        list[str] | None,
        typer.Option(
            "--set", help="Replace one value of the scenario; may be repeated.", metavar="key.path=value", show_default=False
        ),
    ] = None,
) -> int:
    """Draw hosts, switches and links as SVG (with a run, its losses and loads), or export them to another emulator.

    Properties that the other emulator does not support are listed on stderr and in the file.
    """
    if not (svg or mininet or core or kathara):
        raise UsageError("topo: nothing to write; name --svg FILE, --mininet FILE.py, --core FILE.xml or --kathara DIR")
    wanted = load(scenario, sets or ())
    topology = wanted.build_topology()
    if svg is not None:
        traffic = None if run is None else read_measured_traffic(run, topology)
        title = wanted.name if run is None else f"{wanted.name}: loss and load of a run"
        write_drawing(svg, draw_topology(topology, title, traffic).svg())
    if mininet is not None:
        text, missing = mininet_script(topology, wanted.name, str(mininet))
        _export("--mininet", {mininet: text}, missing)
    if core is not None:
        text, missing = core_xml(topology, wanted.name)
        _export("--core", {core: text}, missing)
    if kathara is not None:
        files, missing = kathara_lab(topology, wanted.name)
        _export("--kathara", {kathara / name: text for name, text in files.items()}, missing)
    return 0


def _export(option: str, files: dict[Path, str], missing: list[str]) -> None:
    """Write the files, print the path of the first, and list on stderr what the export lacks."""
    for path, text in files.items():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        except OSError as error:
            raise UsageError(f"{option}: {path} can't be written ({error.strerror})") from error
    typer.echo(next(iter(files)))
    for line in missing:
        typer.echo(f"mcastlab: not in the export: {line}", err=True)
