"""`mcastlab run`: one scenario in the simulator or in Mininet."""

import json
from pathlib import Path
from typing import Annotated

import typer

from experiments import tables
from experiments.commands.options import Json
from experiments.scenario import load
from protocols.errors import UsageError

__all__ = ["run_command"]


def run_command(
    *,
    scenario: Annotated[Path, typer.Argument(metavar="SCENARIO.yaml", help="Scenario file.", show_default=False)],
    backend: Annotated[str, typer.Option("--on", help="Where it runs: sim or emu.", metavar="sim|emu")] = "sim",
    seed: Annotated[int | None, typer.Option(help="Another seed than the file's.", metavar="N", show_default=False)] = None,
    sets: Annotated[
        list[str] | None,
        typer.Option("--set", help="Replace one value; may be repeated.", metavar="key.path=value", show_default=False),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for result.json and receivers.csv.", metavar="DIR", show_default=False)
    ] = None,
    capture: Annotated[
        list[str] | None,
        typer.Option(help="pcapng of a node or link into DIR/captures; may be repeated.", metavar="s1-r1", show_default=False),
    ] = None,
    trace: Annotated[
        Path | None, typer.Option(help="Trace of packets, decisions and events.", metavar="FILE", show_default=False)
    ] = None,
    series: Annotated[
        str | None, typer.Option(help="Time series into DIR/series.parquet.", metavar="100ms", show_default=False)
    ] = None,
    as_json: Json = False,
) -> int:
    """Run a scenario and show what came out.

    Exit code 0: every receiver has everything, and nothing was violated; 1: not; 2: bad scenario; 3: this machine can't run it.
    """
    # Both worlds are loaded here alone: they take longer than `send` and `recv` should take to start.
    from experiments.run import BACKENDS, run
    from experiments.seeing import Seeing

    if backend not in BACKENDS:
        raise UsageError(f"--on: value {backend!r} is not allowed; one of {', '.join(BACKENDS)}")
    looks = [f"capture={json.dumps(capture)}"] if capture else []
    looks += [f"series={series}"] if series else []
    wanted = load(scenario, [*(sets or ()), *looks], seed)
    seeing = Seeing.of(wanted, out, trace)
    if out is not None:
        tables.prepare(out)
    with tables.working(f"{wanted.name} on {backend}"):
        result = run(wanted, backend, seeing)
    if out is not None:
        tables.write(result, wanted, out)
    for reason in result.metrics.get("health", {}).get("reasons", ()):
        typer.echo(f"warning: the emulation could not keep up, and its numbers are not to be trusted: {reason}", err=True)
    if as_json:
        typer.echo(json.dumps(result.plain()))
    else:
        tables.show(result, wanted, out)
    return 0 if result.ok else 1
