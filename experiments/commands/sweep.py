"""`mcastlab sweep`: run a scenario with varied parameters, on Spark."""

import json
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shlex import quote
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from experiments.commands.options import Brief, Json, Master, Remote
from experiments.output.counted import counted
from experiments.output.printer import Printer, View
from protocols.errors import UsageError

if TYPE_CHECKING:
    from experiments.sweep.run.driver import SweepSummary

__all__ = ["summary_text", "sweep_command"]

MANY = 1_000_000
INTERRUPTED = 130


def sweep_command(
    *,
    file: Annotated[Path, typer.Argument(metavar="SWEEP.yaml", help="Sweep file.", show_default=False)],
    out: Annotated[
        Path | None, typer.Option(help="Folder for the results.  (default: out/NAME)", metavar="DIR", show_default=False)
    ] = None,
    master: Master = "local[*]",
    remote: Remote = None,
    resume: Annotated[bool, typer.Option("--resume", help="Make the runs that are missing in the folder.")] = False,
    retry: Annotated[bool, typer.Option("--retry", help="Like --resume, and make failed runs again.")] = False,
    limit: Annotated[int | None, typer.Option(help="Make at most N runs.", metavar="N", min=0, show_default=False)] = None,
    dry: Annotated[
        bool, typer.Option("--dry-run", help="Print the number of runs and their estimated cost, and run nothing.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help=f"Allow more than {MANY:,} runs.")] = False,
    brief: Brief = False,
    as_json: Json = False,
) -> int:
    """Run a scenario with varied parameters, and store the metrics of every run as Parquet.

    Exit code 0: all runs succeeded; 1: some failed or are left; 2: bad input; 3: this machine can't run it; 130: interrupted.
    """
    from experiments.sweep.run.spark_session import check_java, check_pyspark

    printer = Printer(View.of(brief=brief, as_json=as_json))
    check_pyspark()
    from experiments.sweep.run.driver import SweepOptions, run_sweep
    from experiments.sweep.spec.grid import SweepPlan
    from experiments.sweep.spec.sweep_file import load_sweep

    plan = SweepPlan(load_sweep(file), file)
    folder = out or Path("out", plan.sweep.name)
    if plan.most_runs > MANY and not yes:
        raise UsageError(f"{file}: up to {plan.most_runs:,} runs; --yes if that is meant, --limit N for the first ones")
    if dry:
        from experiments.sweep.run.estimate import estimate_cost, show

        estimate = estimate_cost(plan, folder)
        _print(printer, estimate.plain() if as_json else show(estimate))
        return 0
    if remote is None:
        check_java()
    with _ends_as_sigint():
        summary = run_sweep(plan, folder, SweepOptions(master, remote, resume, retry, limit, as_json))
    _print(printer, summary.plain() if as_json else summary_text(summary, file))
    return INTERRUPTED if summary.interrupted else 0 if not summary.failed and not summary.left else 1


@contextmanager
def _ends_as_sigint() -> Iterator[None]:
    """Take SIGTERM, as of batch systems before they kill, and SIGHUP, as of a terminal that is closed, for Ctrl-C.

    So the rows of finished runs are stored. SIGHUP stays ignored where it is, as below nohup.
    """

    def handle(number: int, frame: FrameType | None) -> None:
        signal.raise_signal(signal.SIGINT)

    numbers = [number for number in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(number) != signal.SIG_IGN]
    before = {number: signal.signal(number, handle) for number in numbers}
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)


def _print(printer: Printer, found: dict[str, Any] | str) -> None:
    """Print values as JSON, or lines of text; the first of them only with `--brief`."""
    if not isinstance(found, str):
        typer.echo(json.dumps(found))
    elif printer.view.brief:
        printer.verbatim(found.partition("\n")[0])
    else:
        for line in found.splitlines():
            # A line with a command is meant to be copied.
            printer.verbatim(line) if "mcastlab " in line else printer.line(line, indent=2)


def summary_text(summary: "SweepSummary", file: Path) -> str:
    """Return the lines about the runs that an invocation has made, those left, and how to go on."""
    ok, folder = summary.status["ok"], quote(str(summary.folder))
    lines = [f"{summary.folder}: {counted(summary.total, 'run')}, {ok} ok, {summary.failed} failed, {summary.left} left"]
    if summary.known:
        lines[0] += f"; {summary.known} made before"
    if summary.failed:
        kinds = ", ".join(f"{count} {status}" for status, count in sorted(summary.status.items()) if status != "ok")
        lines.append(f"failed: {kinds}; mcastlab results {folder} --where \"status != 'ok'\" says why")
    if summary.incomplete:
        where = f'mcastlab results {folder} --where "completed = 0"'
        lines.append(
            f"incomplete: {summary.incomplete} of those that are ok, at whose end a receiver lacked something; {where}"
        )
    if summary.other_versions:
        lines.append(f"kept apart: {counted(summary.other_versions, 'row')} of another version of the code")
    if summary.unreadable:
        lines.append(f"broken off: {counted(summary.unreadable, 'file')}, whose runs were made again")
    if summary.left:
        stopped = "interrupted" if summary.interrupted else "not all made"
        lines.append(f"{stopped}; go on with: mcastlab sweep {quote(str(file))} --out {folder} --resume")
    return "\n".join(lines)
