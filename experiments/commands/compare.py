"""`mcastlab compare`: run one scenario under several protocols on identical losses."""

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from experiments.commands.options import Json, ScenarioFile
from experiments.output import tables
from experiments.scenario.files import override
from experiments.scenario.scenario import load
from protocols.errors import UsageError

if TYPE_CHECKING:
    from experiments.compare.comparison import Comparison
    from experiments.compare.paired import Difference

__all__ = ["compare_command"]

LIKE = "PROTOCOL.key=value, like n2.window=100ms"


def compare_command(
    *,
    scenario: ScenarioFile,
    protocols: Annotated[
        str, typer.Option(help="Protocols to compare; differences are to the first.", metavar="LIST")
    ] = "norm,a,n1,n2,srm",
    runs: Annotated[int, typer.Option(help="Runs of each protocol, with consecutive seeds.", metavar="N", min=1)] = 5,
    special: Annotated[
        list[str] | None,
        typer.Option("--with", help="Set a parameter of one protocol; may be repeated.", metavar="PROTOCOL.key=value"),
    ] = None,
    backend: Annotated[
        str, typer.Option("--on", help="Backend: sim (the simulator) or emu (Mininet).", metavar="sim|emu")
    ] = "sim",
    seed: Annotated[
        int | None, typer.Option(help="First seed.  (default: the scenario's)", metavar="N", show_default=False)
    ] = None,
    sets: Annotated[
        list[str] | None,
        typer.Option(
            "--set", help="Replace one value of the scenario; may be repeated.", metavar="key.path=value", show_default=False
        ),
    ] = None,
    as_json: Json = False,
) -> int:
    """Run a scenario under several protocols on identical losses, and show paired differences.

    All protocols have the rate and segment of the scenario. Its other parameters apply to its own protocol only.

    Exit code 0: every receiver received everything in every run; 1: not; 2: bad input; 3: this machine can't run it.
    """
    # Imported here, since simulator and emulation would slow down the start of other commands.
    from experiments.compare.comparison import collate, compare, variants
    from experiments.compare.waiting import notes_on_waits
    from experiments.running.run import BACKENDS

    if backend not in BACKENDS:
        raise UsageError(f"--on: value {backend!r} is not allowed; one of {', '.join(BACKENDS)}")
    wanted = load(scenario, sets or (), seed)
    chosen = variants(wanted, [name.strip() for name in protocols.split(",")], _special(special or ()))
    with tables.working(f"{wanted.name} under {', '.join(chosen)}"):
        found = collate(wanted, compare(wanted, chosen, runs, backend))
    notes = notes_on_waits(wanted, chosen)
    if as_json:
        typer.echo(json.dumps(found.plain() | {"notes": notes}))
    else:
        _show(found)
        for note in notes:
            Console().print(note, markup=False, highlight=False)
    return 0 if all(count == runs for count in found.completed.values()) else 1


def _special(written: Iterable[str]) -> dict[str, dict[str, object]]:
    found: dict[str, dict[str, object]] = {}
    try:
        override(found, written)
    except UsageError as error:
        raise UsageError(
            str(error).replace("--set", "--with").replace("key.path=value, like topology.link.loss=5%", LIKE)
        ) from error
    for name, values in found.items():
        if not isinstance(values, dict):
            raise UsageError(f"--with: value '{name}={values}' is not allowed; it reads {LIKE}")
    return found


def _show(found: "Comparison") -> None:
    from experiments.compare.comparison import METRICS

    first, runs = found.protocols[0], len(found.seeds)
    title = f"{found.scenario}: {runs} runs each, seeds {found.seeds[0]} to {found.seeds[-1]}, identical losses"
    table = Table(
        title=title, title_justify="left", caption=f"differences to {first}: mean of pairs and 95 % interval (Student t)"
    )
    table.add_column("")
    for name in found.protocols:
        table.add_column(name, justify="right")
    table.add_row("runs completed", *(f"{found.completed[name]} of {runs}" for name in found.protocols))
    for metric, label in METRICS.items():
        table.add_row(label, *(_mean(found.values[name][metric]) for name in found.protocols))
        gaps = (found.differences[name].get(metric) for name in found.protocols[1:])
        shown = ("-" if gap is None else _difference(gap) for gap in gaps)
        table.add_row("", "", *shown, style="dim")
    console = Console()
    (console if console.is_terminal else Console(width=140)).print(table)


def _difference(gap: "Difference") -> str:
    mean = f"{gap.mean:+.5g}"
    return mean if gap.pairs < 2 else f"{mean}\n[{gap.low:+.4g}, {gap.high:+.4g}]"


def _mean(values: list[float | None]) -> str:
    known = [value for value in values if value is not None]
    return f"{sum(known) / len(known):.5g}" if known else "-"
