"""`mcastlab ladder`: draw a part of a run as a sequence diagram."""

import json
from pathlib import Path
from typing import Annotated

import typer

from experiments.captures.trace_file import read_trace
from experiments.commands.options import Json, duration
from experiments.commands.text_file import write_text
from experiments.drawing.ladder import draw_ladder
from experiments.drawing.ladder_excerpt import cut
from experiments.drawing.parity_requests import ParityRequest, parity_rule
from experiments.output.printer import Printer

__all__ = ["ladder"]

_MOST_EXPLAINED = 3


def ladder(
    *,
    run: Annotated[
        Path, typer.Argument(metavar="RUN", help="Folder of a run with a trace, or a trace file.", show_default=False)
    ],
    svg: Annotated[Path | None, typer.Option(help="File to write.  (default: RUN/ladder.svg)", metavar="FILE")] = None,
    hosts: Annotated[
        str | None, typer.Option(help="Hosts to show.  (default: senders and up to 8 others)", metavar="A,B,...")
    ] = None,
    begin: Annotated[
        str | None, typer.Option("--from", help="Begin at this time.  (default: just before the first loss)", metavar="TIME")
    ] = None,
    end: Annotated[
        str | None, typer.Option("--to", help="End at this time.  (default: just after its repair)", metavar="TIME")
    ] = None,
    as_json: Json = False,
) -> int:
    """Draw a sequence diagram as SVG: packets between hosts, losses, and suppressed requests.

    Long series of equal packets are folded, and NACKs for parity are explained. The run needs a trace:

    mcastlab run SCENARIO.yaml --out RUN --set trace=true
    """
    trace = read_trace(run)
    wanted = [name.strip() for name in hosts.split(",")] if hosts else []
    limits = (None if text is None else duration(option, text) for option, text in (("--from", begin), ("--to", end)))
    shown = cut(trace, wanted, *limits)
    about = trace.about
    title = f"{about.get('scenario', 'trace')} (seed {about.get('seed', '?')}): {shown.begin:.3f} s to {shown.end:.3f} s"
    place = svg or (run if run.is_dir() else run.parent) / "ladder.svg"
    write_text("--svg", place, draw_ladder(shown, title).svg())
    explained = _explanations(list(shown.parity.values()))
    if as_json:
        typer.echo(json.dumps({"written": [str(place)], "from": shown.begin, "to": shown.end, "explained": explained}))
        return 0
    typer.echo(place)
    for line in explained:
        Printer().line(line, indent=2)
    return 0


def _explanations(requests: list[ParityRequest]) -> list[str]:
    """Return lines that say why NACKs of the drawing name other symbols than those lost: the first cases, and the rule."""
    lines = [f"{request.time:.4f} s: {request.explained}" for request in requests[:_MOST_EXPLAINED]]
    return [*lines, parity_rule(requests)] if requests else []
