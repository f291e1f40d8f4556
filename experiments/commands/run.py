"""`mcastlab run`: run a scenario in the simulator or in Mininet."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from experiments.commands.options import Json, ScenarioFile
from experiments.output import tables
from experiments.running.live_view import LiveView
from experiments.scenario.cases import load_cases
from experiments.scenario.scenario import Scenario
from protocols.errors import UsageError

if TYPE_CHECKING:
    from experiments.running.result import Result

__all__ = ["run_command"]


def run_command(
    *,
    scenario: ScenarioFile,
    backend: Annotated[
        str | None,
        typer.Option(
            "--on",
            help="Backend: sim (the simulator) or emu (Mininet).  (default: emu if `nodes` names foreign programs)",
            metavar="sim|emu",
        ),
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Seed.  (default: the scenario's)", metavar="N", show_default=False)] = None,
    sets: Annotated[
        list[str] | None,
        typer.Option(
            "--set", help="Replace one value of the scenario; may be repeated.", metavar="key.path=value", show_default=False
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for result.json and receivers.csv.", metavar="DIR", show_default=False)
    ] = None,
    capture: Annotated[
        list[str] | None,
        typer.Option(
            help="Write a pcapng of a node or link into DIR/captures; may be repeated.", metavar="s1-r1", show_default=False
        ),
    ] = None,
    trace: Annotated[
        Path | None, typer.Option(help="Write a trace of packets, decisions and events.", metavar="FILE", show_default=False)
    ] = None,
    series: Annotated[
        str | None,
        typer.Option(help="Write time series of this interval into DIR/series.parquet.", metavar="100ms", show_default=False),
    ] = None,
    live: Annotated[
        bool, typer.Option("--live", help="Show the rates, loss and NACKs of hosts during a run in Mininet.")
    ] = False,
    as_json: Json = False,
) -> int:
    """Run a scenario, or all its cases, and show the results.

    Exit code 0: every receiver received everything, no invariant was violated; 1: not; 2: bad input; 3: can't run here.
    """
    # Imported here, since simulator and emulation would slow down the start of other commands.
    from experiments.running.run import BACKENDS, home_of

    if backend is not None and backend not in BACKENDS:
        raise UsageError(f"--on: value {backend!r} is not allowed; one of {', '.join(BACKENDS)}")
    looks = [f"capture={json.dumps(capture)}"] if capture else []
    looks += [f"series={series}"] if series else []
    cases = load_cases(scenario, [*(sets or ()), *looks], seed)
    if trace is not None and len(cases) > 1:
        raise UsageError("--trace: names one file, and the scenario has several cases; use --set trace=true and --out DIR")
    place = backend or home_of(cases.values())
    if live and place != "emu":
        raise UsageError("--live: only Mininet runs in real time; use it with --on emu")
    results = {name: _run(wanted, name, place, out, trace, live) for name, wanted in cases.items()}
    _show(results, cases, out, as_json)
    return 0 if all(result.ok for result in results.values()) else 1


def _run(wanted: Scenario, case: str, place: str, out: Path | None, trace: Path | None, live: bool) -> "Result":
    """Run one case, with its files in a subfolder of `out`."""
    from experiments.running.recording import Recording
    from experiments.running.run import run

    folder = out / case if out is not None else None
    recording = Recording.of(wanted, folder, trace)
    if folder is not None:
        tables.prepare(folder)
    if live:
        result = run(wanted, place, recording, LiveView(wanted.name, [*wanted.senders, *wanted.build_topology().hosts]))
    else:
        with tables.working(f"{wanted.name} on {place}"):
            result = run(wanted, place, recording)
    if folder is not None:
        tables.write(result, wanted, folder)
    for reason in result.metrics.get("health", {}).get("reasons", ()):
        typer.echo(f"warning: the emulation could not keep up, so its results are not reliable: {reason}", err=True)
    return result


def _show(results: "dict[str, Result]", cases: dict[str, Scenario], out: Path | None, as_json: bool) -> None:
    single = results.get("")
    if as_json:
        plain = {"cases": {name: result.plain() for name, result in results.items()}} if single is None else single.plain()
        typer.echo(json.dumps(plain))
    elif single is not None:
        tables.show(single, cases[""], out)
    else:
        tables.compare(list(results.values()), next(iter(cases.values())), list(results))
