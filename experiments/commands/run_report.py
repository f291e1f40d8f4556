"""`mcastlab report RUN`: write one run as an HTML page with a replay."""

import json
import shlex
import webbrowser
from collections.abc import Mapping
from math import inf
from pathlib import Path

import typer

from experiments.commands.options import duration
from experiments.commands.text_file import write_text
from experiments.output.working import working
from experiments.report.run_report import gather, run_page
from experiments.report.run_report_folder import is_run, open_run
from experiments.report.run_report_recording import Window
from protocols.errors import UsageError

__all__ = ["write_run_report"]

_OF_RUNS = ("--from", "--to", "--hosts")


def write_run_report(
    folder: Path,
    out: Path | None,
    given: tuple[str | None, str | None, str | None],
    of_sweeps: Mapping[str, object],
    *,
    browse: bool,
    as_json: bool,
) -> int | None:
    """Write the page of the run in a folder and return the exit code; None for the folder of a sweep.

    `given` are the values of --from, --to and --hosts, `of_sweeps` the arguments that only a sweep has. UsageError if one of
    them is given for the other kind of folder.
    """
    options = {name: text for name, text in zip(_OF_RUNS, given, strict=True) if text is not None}
    if not is_run(folder):
        if not (folder / "jobs").is_dir():
            place = shlex.quote(str(folder))
            makes = f"mcastlab run SCENARIO.yaml --out {place} --set trace=true, or mcastlab sweep SWEEP.yaml --out {place}"
            raise UsageError(f"{folder}: holds no results of a sweep and no run; what makes them: {makes}")
        _refuse("of one run, and this folder holds none", options)
        return None
    _refuse("of a sweep, and this is the folder of a run", of_sweeps)
    window = Window(_time("--from", options, 0.0), _time("--to", options, inf))
    names = [name.strip() for name in options.get("--hosts", "").split(",") if name.strip()]
    command = shlex.join(["mcastlab", "report", str(folder), *(word for option in options.items() for word in option)])
    target = out or folder / "report.html"
    with working(f"reading {folder}"):
        page = run_page(gather(open_run(folder), window, names), command)
    write_text("--out", target, page)
    typer.echo(json.dumps({"written": [str(target)]}) if as_json else f"{target} ({target.stat().st_size / 1e6:.1f} MB)")
    if browse:
        webbrowser.open(target.resolve().as_uri())
    return 0


def _refuse(why: str, options: Mapping[str, object]) -> None:
    """Raise UsageError if one of the options is given."""
    for name, value in options.items():
        if value:
            raise UsageError(f"{name}: is not allowed; it is for a report {why}")


def _time(option: str, options: Mapping[str, str], otherwise: float) -> float:
    return duration(option, options[option]) if option in options else otherwise
