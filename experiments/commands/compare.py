"""`mcastlab compare`: run one scenario under several protocols, or its cases, with equal seeds."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from experiments.commands.large_runs import admit_simulations
from experiments.commands.options import Backend, Brief, Columns, FirstSeed, Json, ScenarioFile, Sets, Wide, Yes
from experiments.output.budget import Column, Table
from experiments.output.printer import Printer, View
from experiments.output.working import working
from experiments.scenario.cases import cases_of
from experiments.scenario.files import override, put
from experiments.scenario.scenario import Scenario, load, read
from experiments.scenario.suggestion import one_of
from protocols.errors import UsageError

if TYPE_CHECKING:
    from experiments.compare.comparison import Comparison
    from experiments.running.run_progress import RunProgress

__all__ = ["compare_command"]

LIKE = "PROTOCOL.key=value, like n2.window=100ms"


def compare_command(
    *,
    scenario: ScenarioFile,
    protocols: Annotated[
        str | None,
        typer.Option(
            help="Protocols to compare; differences are to the first.  (default: the scenario's cases; without any, its own "
            "protocol, if it is another one, norm,a,n1,n2,srm)",
            metavar="NAME,...",
            show_default=False,
        ),
    ] = None,
    runs: Annotated[
        int, typer.Option(help="Runs of each protocol, with consecutive seeds.", metavar="N", min=1, max=10_000)
    ] = 5,
    special: Annotated[
        list[str] | None,
        typer.Option("--with", help="Set a parameter of one protocol or case; may be repeated.", metavar="PROTOCOL.key=value"),
    ] = None,
    backend: Backend = None,
    seed: FirstSeed = None,
    sets: Sets = None,
    yes: Yes = False,
    wide: Wide = False,
    columns: Columns = "",
    brief: Brief = False,
    as_json: Json = False,
) -> int:
    """Run a scenario under several protocols on identical losses, and show paired differences.

    All protocols have the rate and segment of the scenario. Its other parameters apply to its own protocol only. Of a scenario
    that lists cases under `compare`, these are compared, with equal seeds, unless protocols are named.

    Exit code 0: every receiver received everything in every run; 1: not; 2: bad input; 3: this machine can't run it.
    """
    # Imported here, since simulator and emulation would slow down the start of other commands.
    from experiments.compare.comparison import collate, compare, usual_protocols, variants
    from experiments.compare.waiting import notes_on_waits
    from experiments.running.run import BACKENDS, default_backend

    view = View.of(wide=wide, columns=columns, brief=brief, as_json=as_json)
    if backend not in (None, *BACKENDS):
        raise UsageError(f"--on: value {backend!r} is not allowed; one of {', '.join(BACKENDS)}")
    wanted = load(scenario, sets or (), seed)
    settings = _special(special or ())
    if protocols is None and wanted.compare:
        chosen = _cases(scenario, sets or (), seed, settings)
    else:
        names = usual_protocols(wanted) if protocols is None else [name.strip() for name in protocols.split(",")]
        chosen = variants(wanted, names, settings)
    view.check(chosen)
    place = backend or default_backend(chosen.values())
    if place == "sim" and not yes:
        admit_simulations(chosen.values())
    begun: list[RunProgress] = []
    with working(lambda: begun[-1].line() if begun else wanted.name):
        found = collate(wanted.name, compare(chosen, runs, place, begun.append))
    notes = notes_on_waits(chosen)
    if as_json:
        typer.echo(json.dumps(found.plain() | {"notes": notes}))
    else:
        printer = Printer(view)
        _show(printer, found, "identical losses" if protocols or not wanted.compare else "equal seeds")
        for note in [] if brief else notes:
            printer.line(note, indent=2)
    return 0 if all(count == runs for count in found.completed.values()) else 1


def _cases(
    path: Path, sets: Iterable[str], seed: int | None, settings: Mapping[str, Mapping[str, object]]
) -> dict[str, Scenario]:
    """Return the cases of a scenario file, with `settings` of their protocols."""
    data = read(path, sets, seed)
    for name, values in settings.items():
        if name not in data["compare"]:
            raise UsageError(f"--with: value {name!r} is not allowed; {one_of(name, data['compare'])}")
        for key, value in values.items():
            put(data, ["compare", name, "protocol", key], value, f"{name}.{key}={value}")
    cases = cases_of(data, path)
    if len(cases) < 2:
        raise UsageError(f"{path}: compare: one case is not allowed here; at least two, or name protocols with --protocols")
    return cases


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


def _show(printer: Printer, found: "Comparison", equal: str) -> None:
    if printer.view.brief:
        printer.verbatim(found.brief)
        return
    heads = [Column("", rank=0), *(Column(name, rank=rank, right=True) for rank, name in enumerate(found.protocols, 1))]
    printer.table(Table(heads, found.rows(), f"{found.title}, {equal}", found.note))
