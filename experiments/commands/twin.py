"""`mcastlab twin`: test whether the simulator and Mininet are equivalent on a scenario."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from experiments.commands.options import Brief, Columns, FirstSeed, Json, Wide, scenarios_beginning
from experiments.commands.text_file import write_text
from experiments.output import tables
from experiments.output.budget import Column, Table, number
from experiments.output.counted import counted
from experiments.output.printer import Printer, View
from experiments.scenario.ready import FOLDER
from experiments.scenario.scenario import Scenario, load
from experiments.statistics.verdicts import MOST_RUNS, Verdict
from protocols.errors import UsageError

if TYPE_CHECKING:
    from experiments.compare.twin.verdict import TwinVerdict

__all__ = ["READY", "exit_code", "twin_command"]

READY = FOLDER / "twin"
"""Folder of the scenarios of --table."""
_EXIT_CODES = {Verdict.DIFFERENT: 1, Verdict.NOT_SHOWN: 4, Verdict.EQUIVALENT: 0}
"""Exit codes by verdict; of several scenarios the first of these decides."""


def twin_command(
    *,
    scenario: Annotated[
        Path | None,
        typer.Argument(
            metavar="SCENARIO",
            help="Scenario file, or name of a ready scenario; none with --table.",
            show_default=False,
            autocompletion=scenarios_beginning,
        ),
    ] = None,
    table: Annotated[bool, typer.Option("--table", help="Run all ready scenarios of the folder twin.")] = False,
    out: Annotated[Path | None, typer.Option(help="Write a Markdown page.", metavar="FILE", show_default=False)] = None,
    runs: Annotated[
        int | None,
        typer.Option(help="Paired runs.  (default: the scenario's)", metavar="N", min=2, max=MOST_RUNS, show_default=False),
    ] = None,
    worlds: Annotated[
        str, typer.Option(help="The two worlds to compare, each sim or emu; emu,emu checks the test itself.", metavar="A,B")
    ] = "sim,emu",
    seed: FirstSeed = None,
    sets: Annotated[
        list[str] | None,
        typer.Option(
            "--set", help="Replace one value in both worlds; may be repeated.", metavar="key.path=value", show_default=False
        ),
    ] = None,
    second: Annotated[
        list[str] | None,
        typer.Option(
            help="Replace one value in the second world only; may be repeated.", metavar="key.path=value", show_default=False
        ),
    ] = None,
    wide: Wide = False,
    columns: Columns = "",
    brief: Brief = False,
    as_json: Json = False,
) -> int:
    """Run a scenario in two worlds with the same seeds and losses, and test whether they are equivalent.

    Exit code 0: equivalent within the scenario's margins; 1: different; 4: neither is shown, with what would show it; 2:
    bad input; 3: this machine can't run it. Of several scenarios, one that is different decides before one that is not shown.
    """
    # Imported here, since simulator and emulation would slow down the start of other commands.
    from experiments.compare.twin.fidelity_page import fidelity_page

    view = View.of(wide=wide, columns=columns, brief=brief, as_json=as_json)
    pair = _two(worlds)
    view.check(column.name for column in _columns(pair))
    verdicts = []
    for wanted in _wanted(scenario, table, sets or [], second or [], seed):
        if not as_json and not brief:
            _announce(Printer(view), wanted[0], runs)
        verdicts.append(_judged(wanted, pair, runs))
        if not as_json:
            _show(Printer(view), verdicts[-1])
    if out is not None:
        write_text("--out", out, fidelity_page(verdicts))
    if as_json:
        plain = [verdict.plain() for verdict in verdicts]
        typer.echo(json.dumps({"scenarios": plain} if table else plain[0]))
    return exit_code(verdicts)


def exit_code(verdicts: Sequence["TwinVerdict"]) -> int:
    """Return 0 if all worlds are equivalent, 1 if any two are different, else 4: neither is shown."""
    found = {verdict.verdict for verdict in verdicts}
    return next(code for verdict, code in _EXIT_CODES.items() if verdict in found)


def _two(worlds: str) -> tuple[str, str]:
    from experiments.compare.twin.worlds import WORLDS

    names = tuple(worlds.split(","))
    if len(names) != 2 or any(name not in WORLDS for name in names):
        raise UsageError(f"--worlds: value {worlds!r} is not allowed; two of {', '.join(WORLDS)}, with a comma between")
    return names[0], names[1]


def _wanted(
    scenario: Path | None, table: bool, sets: list[str], second: list[str], seed: int | None
) -> Iterator[tuple[Scenario, Scenario]]:
    if table == (scenario is not None):
        raise UsageError("twin: give a scenario file, or --table for all ready ones")
    paths = sorted(READY.glob("*.yaml")) if scenario is None else [scenario]
    for path in paths:
        yield load(path, sets, seed), load(path, [*sets, *second], seed)


def _announce(printer: Printer, scenario: Scenario, runs: int | None) -> None:
    """Print what the runs can show, before they begin."""
    from experiments.compare.twin.paired_runs import pairs_of
    from experiments.compare.twin.power import power_of

    words = power_of(*pairs_of(scenario, runs)).words
    printer.line(f"{scenario.name}: {words}", indent=2)


def _judged(wanted: tuple[Scenario, Scenario], worlds: tuple[str, str], runs: int | None) -> "TwinVerdict":
    from experiments.compare.twin.paired_runs import twin

    console = Console(stderr=True)
    if not console.is_terminal:
        return twin(wanted, worlds, runs)
    with console.status(wanted[0].name) as status:
        return twin(wanted, worlds, runs, lambda world, at: status.update(f"{wanted[0].name}: seed {at} on {world}"))


def _columns(worlds: tuple[str, str]) -> list[Column]:
    """Return the columns of the table; two equal worlds are told apart by a number."""
    names = [tables.WORLDS[world] for world in worlds]
    if names[0] == names[1]:
        names[1] += " 2"
    gap = [Column("difference", rank=2), Column("from", rank=5), Column("to", rank=5), Column("margin", rank=3)]
    return [Column("", rank=0), *(Column(name, rank=4) for name in names), *gap, Column("verdict", rank=1)]


def _show(printer: Printer, verdict: "TwinVerdict") -> None:
    from experiments.compare.twin.fidelity_page import VERDICT_WORDS
    from experiments.compare.twin.twin_metrics import TWIN_METRICS

    if printer.view.brief:
        printer.verbatim(f"{verdict.scenario}: {verdict.outcome} ({counted(len(verdict.seeds), 'pair')})")
        return
    rows: list[list[str | None]] = []
    for key, found in verdict.metrics.items():
        if found is None:
            rows.append([f"{TWIN_METRICS[key].label}: a value in one only", *([None] * 6), VERDICT_WORDS[Verdict.DIFFERENT]])
            continue
        gap = [f"{found.gap.mean:+.4g}", f"{found.gap.low:+.3g}", f"{found.gap.high:+.3g}", f"{found.margin:.3g}"]
        worlds = (number(found.first), number(found.second))
        rows.append([TWIN_METRICS[key].label, *worlds, *gap, VERDICT_WORDS[found.verdict]])
    if verdict.dropped is not None:
        dropped, mark = verdict.dropped, "agrees" if not verdict.dropped.differ else "DIFFERS" if verdict.must_equal else "told"
        label = f"lost first transmissions; in one only: {dropped.differ}"
        rows.append([label, str(dropped.first), str(dropped.second), None, None, None, None, mark])
    pairs = counted(len(verdict.seeds), "pair")
    note = f"difference: mean of {pairs}, from and to: 90 % interval (Student t); margins of the scenario"
    printer.table(Table(_columns(verdict.worlds), rows, f"{verdict.scenario}: {verdict.outcome}", note))
    for warning in verdict.warnings:
        printer.line(f"warning: {warning}", indent=2)
