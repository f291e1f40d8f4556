"""`mcastlab run`: run a scenario in the simulator or in Mininet."""

import json
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from emu.hold import Hold, NotStartedError
from experiments.commands.large_runs import admit_simulations
from experiments.commands.options import Backend, Brief, Columns, Json, ScenarioFile, Sets, Wide, Yes, time_limit
from experiments.output import tables
from experiments.output.counted import counted
from experiments.output.printer import Printer, View
from experiments.output.run_folder import check_trace, claim_run
from experiments.output.working import working
from experiments.running.live_view import LiveView
from experiments.scenario.cases import load_cases
from experiments.scenario.scenario import Scenario
from protocols.errors import UsageError

if TYPE_CHECKING:
    from experiments.running.recording import Recording
    from experiments.running.result import Result

__all__ = ["run_command"]


def run_command(
    *,
    scenario: ScenarioFile,
    backend: Backend = None,
    seed: Annotated[int | None, typer.Option(help="Seed.  (default: the scenario's)", metavar="N", show_default=False)] = None,
    sets: Sets = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for result.json and receivers.csv.", metavar="DIR", show_default=False)
    ] = None,
    capture: Annotated[
        list[str] | None,
        typer.Option(
            help="Write a pcapng of a node or link into DIR/captures, or of all hosts; may be repeated.",
            metavar="s1-r1|hosts",
            show_default=False,
        ),
    ] = None,
    trace: Annotated[
        Path | None, typer.Option(help="Write a trace of packets, decisions and events.", metavar="FILE", show_default=False)
    ] = None,
    series: Annotated[
        str | None,
        typer.Option(help="Write time series of this interval into DIR/series.parquet.", metavar="100ms", show_default=False),
    ] = None,
    stats: Annotated[
        str | None,
        typer.Option(
            help="Keep the statistics of all hosts at this interval in the result; with --out or --json.",
            metavar="TIME",
            show_default=False,
        ),
    ] = None,
    live: Annotated[
        bool, typer.Option("--live", help="Show the rates, loss and NACKs of hosts in Mininet, here and to mcastlab monitor.")
    ] = False,
    shell: Annotated[
        bool,
        typer.Option("--shell", help="Open a prompt to the hosts in Mininet, before the session starts and up to exit."),
    ] = False,
    keep: Annotated[
        bool, typer.Option("--keep", help="Keep the network in Mininet after the session, until Ctrl-C or Ctrl-D.")
    ] = False,
    longest: Annotated[
        str | None,
        typer.Option(
            "--time-limit",
            help="Refuse a simulation estimated to take more CPU time.  (default: no limit)",
            metavar="TIME",
            show_default=False,
        ),
    ] = None,
    dry: Annotated[
        bool, typer.Option("--dry-run", help="Print the estimated CPU time and memory of a simulation, and run nothing.")
    ] = False,
    yes: Yes = False,
    wide: Wide = False,
    columns: Columns = "",
    brief: Brief = False,
    as_json: Json = False,
) -> int:
    """Run a scenario, or all its cases, and show the results.

    A large simulation is first estimated from short runs, and refused if it needs more memory than is available.

    Exit code 0: every receiver received every file, no promised message is missing and no invariant was violated; 1: not;
    2: bad input; 3: can't run here.
    """
    # Imported here, since simulator and emulation would slow down the start of other commands.
    from experiments.running.run import BACKENDS, default_backend

    view = View.of(wide=wide, columns=columns, brief=brief, as_json=as_json)
    if backend is not None and backend not in BACKENDS:
        raise UsageError(f"--on: value {backend!r} is not allowed; one of {', '.join(BACKENDS)}")
    if stats and not (out or as_json):
        raise UsageError("--stats: needs a result to be kept in; give --out DIR or --json")
    cases = load_cases(scenario, [*(sets or ()), *_recorded(capture, series, stats)], seed)
    if trace is not None and len(cases) > 1:
        raise UsageError("--trace: names one file, and the scenario has several cases; use --set trace=true and --out DIR")
    check_trace(trace, out)
    place = backend or default_backend(cases.values())
    view.check((*tables.RUN_COLUMNS, *(cases if len(cases) > 1 else [tables.WORLDS[place]])))
    hold = _hold(shell, keep, place, live, as_json)
    if dry:
        return _estimate(cases, place, as_json)
    files = _files(cases, place, out, trace)
    if place == "sim" and not yes:
        admit_simulations(cases.values(), time_limit("--time-limit", longest))
    unwritten: list[OSError] = []
    try:
        results = {name: _run(wanted, place, *files[name], live, hold, unwritten) for name, wanted in cases.items()}
    except NotStartedError as error:
        typer.echo(str(error), err=True)
        return 0
    if as_json:
        _print_json(results)
    else:
        _show(Printer(view), results, cases, None if unwritten else out)
    if unwritten:
        raise unwritten[0]
    return 0 if all(result.ok for result in results.values()) else 1


def _recorded(capture: list[str] | None, series: str | None, stats: str | None) -> list[str]:
    """Return what the options for recordings replace in the scenario."""
    wanted = {"capture": json.dumps(capture) if capture else None, "series": series, "statistics": stats}
    return [f"{key}={value}" for key, value in wanted.items() if value]


def _estimate(cases: dict[str, Scenario], place: str, as_json: bool) -> int:
    """Print the estimated cost of each case."""
    from experiments.running.run_cost import NO_ESTIMATE, estimate_cost

    if place != "sim":
        raise UsageError("--dry-run: estimates simulations only; Mininet runs in real time (duration is its limit)")
    costs = {name: estimate_cost(wanted) for name, wanted in cases.items()}
    if as_json:
        plain = {name: None if cost is None else asdict(cost) for name, cost in costs.items()}
        typer.echo(json.dumps(plain.get("", {"cases": plain})))
        return 0
    for name, cost in costs.items():
        typer.echo(f"{cases[name].name}: {NO_ESTIMATE if cost is None else cost}")
    return 0


def _hold(shell: bool, keep: bool, place: str, live: bool, as_json: bool) -> Hold | None:
    """Return how the network is held. UsageError for options that need Mininet, and for those that print beside a prompt."""
    if live and place != "emu":
        raise UsageError("--live: only Mininet runs in real time; use it with --on emu")
    if not shell and not keep:
        return None
    name = "--shell" if shell else "--keep"
    if place != "emu":
        raise UsageError(f"{name}: only Mininet has hosts to enter; use it with --on emu")
    if shell and (live or as_json):
        raise UsageError("--shell: is a conversation; leave out --live and --json")
    from experiments.running.emulated_shell import KEEP, SHELL

    return SHELL if shell else KEEP


def _files(
    cases: dict[str, Scenario], place: str, out: Path | None, trace: Path | None
) -> "dict[str, tuple[Path | None, Recording | None]]":
    """Return the folder of each case, in `out`, and what it records.

    UsageError and UnsupportedError for any of the cases, before the first replaces the files of an earlier run.
    """
    from experiments.running.recording import Recording
    from experiments.running.run import check_runnable

    for wanted in cases.values():
        check_runnable(wanted, place)
    folders = {name: out and out / name for name in cases}
    return {name: (folders[name], Recording.of(wanted, folders[name], trace)) for name, wanted in cases.items()}


def _run(
    wanted: Scenario,
    place: str,
    folder: Path | None,
    recording: "Recording | None",
    live: bool,
    hold: Hold | None,
    unwritten: list[OSError],
) -> "Result":
    """Run one case, with its files in `folder`; errors of writing its result are added to `unwritten`."""
    result: Result | None = None
    try:
        with nullcontext() if folder is None else claim_run(folder):
            result = _result(wanted, place, recording, live, hold)
            if folder is not None:
                tables.write(result, wanted, folder)
    except OSError as error:
        if result is None:
            raise
        # The result is printed nevertheless.
        unwritten.append(OSError(error.errno, error.strerror, error.filename or str(folder)))
    _warn(result.metrics)
    return result


def _result(wanted: Scenario, place: str, recording: "Recording | None", live: bool, hold: Hold | None) -> "Result":
    """Run one case, and show its progress meanwhile."""
    from experiments.running.run import run
    from experiments.running.run_progress import RunProgress

    if live:
        return _run_live(wanted, place, recording, hold)
    if hold is not None:
        return run(wanted, place, recording, None, hold)
    if place != "sim":
        with working(f"{wanted.name} on {place}"):
            return run(wanted, place, recording)
    progress = RunProgress(wanted)
    with working(progress.line):
        return run(wanted, place, recording, progress=progress)


def _warn(metrics: Mapping[str, Any]) -> None:
    """Warn of what makes the results of an emulation unreliable, or its captures incomplete."""
    for reason in metrics.get("health", {}).get("reasons", ()):
        typer.echo(f"warning: the emulation could not keep up, so its results are not reliable: {reason}", err=True)
    for point, counts in metrics.get("captures", {}).items():
        if counts["unwritten"]:
            missing = counted(counts["unwritten"], "missing packet", spec=",")
            typer.echo(f"warning: capture {point}: the disk is full: {missing}", err=True)
    for name, count in metrics.get("unwritten", {}).items():
        missing = counted(count, "missing line" if name == "trace" else "missing row", spec=",")
        typer.echo(f"warning: {name}: the disk is full: {missing}", err=True)


def _run_live(wanted: Scenario, place: str, recording: "Recording | None", hold: Hold | None) -> "Result":
    """Run one case, and show its hosts here and to monitors meanwhile."""
    from experiments.monitor.feed import EmulationFeed
    from experiments.running.run import run

    names = [*wanted.senders, *wanted.build_topology().hosts]
    with LiveView(wanted.name, names) as view, EmulationFeed(wanted.name, wanted.protocol.spec.measures) as feed:

        def watch(now: float, census: Mapping[str, Mapping[str, float]]) -> None:
            feed.take(now, census)
            view(now, census)

        return run(wanted, place, recording, watch, hold, attendants=(feed,))


def _print_json(results: "dict[str, Result]") -> None:
    single = results.get("")
    plain = {"cases": {name: result.plain() for name, result in results.items()}} if single is None else single.plain()
    typer.echo(json.dumps(plain))


def _show(printer: Printer, results: "dict[str, Result]", cases: dict[str, Scenario], out: Path | None) -> None:
    if printer.view.brief:
        printer.verbatim(tables.brief(results))
    elif "" in results:
        tables.show(printer, results[""], cases[""], out)
    else:
        tables.compare(printer, list(results.values()), next(iter(cases.values())), list(results))
