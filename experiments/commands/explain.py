"""`mcastlab explain`: tell why an object came late, or not at all, to one receiver."""

import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from experiments.commands.options import Brief, Columns, Json, Wide
from experiments.commands.text_file import write_text
from experiments.output.budget import Column, Table
from experiments.output.printer import Printer, View
from experiments.output.working import working
from protocols.errors import UsageError

if TYPE_CHECKING:
    from experiments.explain.explanation import Explanation, Step

__all__ = ["explain"]

_CHAIN = (
    Column("time", "s", rank=0, form=".6f"),
    Column("where", rank=0),
    Column("what", rank=0),
    Column("packet", rank=1),
    Column("frame", rank=2),
    Column("line", rank=2),
)


def explain(
    *,
    run: Annotated[
        Path,
        typer.Argument(metavar="RUN", help="Folder of a run with a trace or captures, or a capture file.", show_default=False),
    ],
    object_id: Annotated[
        int | None, typer.Option("--object", help="Object id.  (default: the only one)", metavar="N", show_default=False)
    ] = None,
    receiver: Annotated[
        str | None,
        typer.Option(
            help="Name of the receiver; in a capture file its address or node id.  "
            "(default: the one that was complete last, or is not; in a capture file the only one)",
            metavar="NAME",
            show_default=False,
        ),
    ] = None,
    sender: Annotated[
        str | None, typer.Option(help="Name of the sender.  (default: the only one)", metavar="NAME", show_default=False)
    ] = None,
    svg: Annotated[
        Path | None, typer.Option(help="Draw the ladder of the chain, with numbered lines.", metavar="FILE", show_default=False)
    ] = None,
    wide: Wide = False,
    columns: Columns = "",
    brief: Brief = False,
    as_json: Json = False,
) -> int:
    """Tell why an object came late to a receiver, or not at all: the chain of causes, with packets, captures and ladder.

    It reads the trace of a run, else its captures, or one capture file of NORM from anywhere; what these can't tell is said.

    Exit code 0: explained; 2: bad input.
    """
    view = View.of(wide=wide, columns=columns, brief=brief, as_json=as_json)
    view.check(column.name for column in _CHAIN)
    if object_id is not None and not 0 <= object_id <= 0xFFFF:
        raise UsageError(f"--object: value {object_id} is not allowed; a whole number from 0 to 65535")
    with working(f"reading {run}"):
        found, drawing = _explained(run, object_id, receiver, sender)
    if svg is not None:
        _draw(svg, drawing)
    if as_json:
        typer.echo(json.dumps(found.plain()))
    else:
        _show(Printer(view), found, svg)
    return 0


def _explained(run: Path, object_id: int | None, receiver: str | None, sender: str | None) -> "tuple[Explanation, Any]":
    """Explain a run, or a capture file; and return the excerpt of its ladder."""
    from experiments.explain.analysis import explain as explain_history
    from experiments.explain.capture_analysis import explain_capture
    from experiments.explain.capture_history import read_capture_history
    from experiments.explain.chain_ladder import chain_ladder
    from experiments.explain.history import read_history
    from experiments.report.run_report_folder import is_run, open_run

    if not run.is_dir():
        captured = read_capture_history(run, object_id, receiver, sender)
        found = explain_capture(captured)
        return found, chain_ladder(captured, found)
    if not is_run(run):
        raise UsageError(
            f"{run}: holds no run; what makes one: mcastlab run SCENARIO.yaml --out {shlex.quote(str(run))} --set trace=true"
        )
    history = read_history(open_run(run), object_id, receiver, sender)
    found = explain_history(history)
    return found, chain_ladder(history, found)


def _draw(path: Path, excerpt: Any) -> None:
    from experiments.drawing.ladder import draw_ladder

    if excerpt is None:
        raise UsageError("--svg: nothing was lost, so there is no chain to draw")
    write_text("--svg", path, draw_ladder(excerpt, f"the chain from {excerpt.begin:.3f} s to {excerpt.end:.3f} s").svg())


def _show(printer: Printer, found: "Explanation", svg: Path | None) -> None:
    from experiments.doctor.network_rules import quoted

    head = f"object {found.object_id} of {found.sender} at {found.receiver}: {found.outcome.text}"
    cause = f"cause: {found.cause.name}: {found.cause.text}"
    if printer.view.brief:
        printer.verbatim(f"{head}; {cause}")
        return
    printer.line(head, style="bold")
    printer.line(cause, indent=2, style="bold")
    spent = [f"{name} {quoted(seconds)}" for name, seconds in found.spent.items() if seconds > 0]
    if spent:
        printer.line(f"time: {', '.join(spent)}", indent=2)
    if found.chain:
        printer.line()
        rows = [
            [
                step.time,
                step.node,
                step.text,
                step.packet or None,
                ", ".join(f"{name} {number}" for name, number in _some(step)) or None,
                step.line or None,
            ]
            for step in found.chain
        ]
        printer.table(Table(_CHAIN, rows))
    for text in found.unknown:
        printer.line(f"not known: {text}", indent=2)
    if svg is not None:
        printer.verbatim(shlex.quote(str(svg)))


def _some(step: "Step") -> list[tuple[str, int]]:
    """Return the capture of the node where a step was, or else the first that holds its packet; the JSON output has all."""
    files = [name for name in (step.node, *step.frames) if name in step.frames]
    return [(name, step.frames[name]) for name in files[:1]]
