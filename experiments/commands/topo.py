"""`mcastlab topo`: the network of a scenario as a drawing."""

from pathlib import Path
from typing import Annotated

import typer

from experiments.commands.ladder import write_drawing
from experiments.scenario import load
from experiments.topology_drawing import draw_topology, read_traffic

__all__ = ["topo"]


def topo(
    *,
    scenario: Annotated[Path, typer.Argument(metavar="SCENARIO.yaml", help="Scenario file.", show_default=False)],
    svg: Annotated[Path, typer.Option(help="File to write.", metavar="FILE", show_default=False)],
    run: Annotated[
        Path | None, typer.Option(help="Folder of a run, for its losses and loads.", metavar="RUN", show_default=False)
    ] = None,
    sets: Annotated[
        list[str] | None,
        typer.Option("--set", help="Replace one value; may be repeated.", metavar="key.path=value", show_default=False),
    ] = None,
) -> int:
    """Draw hosts, switches and links as SVG; with a run, what its links lost and carried."""
    wanted = load(scenario, sets or ())
    topology = wanted.build_topology()
    traffic = None if run is None else read_traffic(run, topology)
    title = wanted.name if run is None else f"{wanted.name}: loss and load of a run"
    write_drawing(svg, draw_topology(topology, title, traffic).svg())
    return 0
