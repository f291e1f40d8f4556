"""`mcastlab report RUN`: write one run as an HTML page with a replay."""

import json
import shlex
import webbrowser
from pathlib import Path

import typer

from experiments.commands.text_file import write_text
from experiments.output import tables
from experiments.report.run_report import gather, run_page
from experiments.report.run_report_folder import open_run
from experiments.report.run_report_recording import Window
from protocols.errors import ConfigError, UsageError
from topologies.units import parse_duration

__all__ = ["write_run_report"]


def write_run_report(
    folder: Path, out: Path | None, begin: str | None, end: str | None, hosts: str | None, *, browse: bool, as_json: bool
) -> int:
    """Write the page of the run in a folder; returns the exit code."""
    window = Window(**{key: _time(*option) for key, option in _given(begin, end)})
    names = [name.strip() for name in hosts.split(",") if name.strip()] if hosts else []
    target = out or folder / "report.html"
    options = "".join(
        f" {name} {shlex.quote(text)}" for name, text in (("--from", begin), ("--to", end), ("--hosts", hosts)) if text
    )
    with tables.working(f"reading {folder}"):
        page = run_page(gather(open_run(folder), window, names), f"mcastlab report {shlex.quote(str(folder))}{options}")
    write_text("--out", target, page)
    typer.echo(json.dumps({"written": [str(target)]}) if as_json else f"{target} ({target.stat().st_size / 1e6:.1f} MB)")
    if browse:
        webbrowser.open(target.resolve().as_uri())
    return 0


def _given(begin: str | None, end: str | None) -> list[tuple[str, tuple[str, str]]]:
    found = (("begin", "--from", begin), ("end", "--to", end))
    return [(key, (option, text)) for key, option, text in found if text is not None]


def _time(option: str, text: str) -> float:
    try:
        return parse_duration(text)
    except ConfigError as error:
        raise UsageError(f"{option}: {error}") from error
