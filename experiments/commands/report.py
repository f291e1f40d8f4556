"""`mcastlab report`: write the results of a sweep, or of two compared, as an HTML page, and the figures as files."""

import json
import shlex
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from experiments.commands.options import Brief, Json, Master, Remote
from experiments.commands.reading import reading
from experiments.commands.text_file import write_text
from experiments.output.extras import need
from experiments.output.printer import View
from experiments.output.working import working
from experiments.scenario.suggestion import one_of
from protocols.errors import UsageError

if TYPE_CHECKING:
    from experiments.report.report_data import ReportData

__all__ = ["report_command"]


def report_command(
    *,
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of a sweep, or of one run.", show_default=False)],
    other: Annotated[
        Path | None,
        typer.Argument(metavar="OTHER", help="Folder of a second sweep, to be compared with the first.", show_default=False),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Page to write.  (default: DIR/report.html; of two sweeps, OTHER/comparison.html)",
            metavar="FILE",
            show_default=False,
        ),
    ] = None,
    browse: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
    metric: Annotated[
        str, typer.Option(help="Metrics to show.  (default: the main ones)", metavar="NAME,...", show_default=False)
    ] = "",
    theory: Annotated[
        list[str] | None,
        typer.Option(
            help="Formula to draw over the results; may be repeated.  (default: the sweep file's)",
            metavar="NAME[:arg=value,...]",
            show_default=False,
        ),
    ] = None,
    only: Annotated[
        str | None, typer.Option(help="Write only this figure, as PNG and SVG.", metavar="FIGURE", show_default=False)
    ] = None,
    figures: Annotated[
        bool,
        typer.Option(
            "--figures/--no-figures", help="Write every figure as PNG and SVG into DIR/figures (two sweeps: OTHER/comparison)."
        ),
    ] = True,
    version: Annotated[
        str | None,
        typer.Option(
            help="Version of the code that made the runs; of two sweeps, both.  (default: the last)",
            metavar="VERSION[,VERSION]",
            show_default=False,
        ),
    ] = None,
    begin: Annotated[
        str | None, typer.Option("--from", help="Of a run: begin the replay at this time.", metavar="TIME", show_default=False)
    ] = None,
    end: Annotated[
        str | None, typer.Option("--to", help="Of a run: end the replay at this time.", metavar="TIME", show_default=False)
    ] = None,
    hosts: Annotated[
        str | None,
        typer.Option(
            help="Of a run: hosts to show.  (default: all up to 24, else senders and the ten worst receivers)",
            metavar="A,B,...",
            show_default=False,
        ),
    ] = None,
    master: Master = "local[*]",
    remote: Remote = None,
    brief: Brief = False,
    as_json: Json = False,
) -> int:
    """Write a report of a run or a sweep as one HTML page, which needs no network.

    Of a sweep it has tables, interactive figures, theory and failed runs; of a run with a trace or captures a replay, who
    lost which packets, rates, and a sequence diagram. Two sweeps are compared at the points they share.

    Exit code 0: written; 2: bad input; 3: this machine can't run Spark or lacks plotly or matplotlib.
    """
    from experiments.commands.run_report import write_run_report

    View.of(brief=brief, as_json=as_json)
    of_sweeps = {"OTHER": other, "--metric": metric, "--theory": theory, "--only": only, "--version": version}
    if (done := write_run_report(folder, out, (begin, end, hosts), of_sweeps, browse=browse, as_json=as_json)) is not None:
        return done
    # Modules that need Spark's packages are imported after the check for them.
    from experiments.sweep.run.spark_session import check_pyspark

    check_pyspark()
    need("a report", *(["plotly"] if only is None else []), *(["matplotlib"] if figures or only else []))
    from experiments.report.matplotlib_figures import save
    from experiments.report.report_page import report_page

    contents = _read(folder, other, metric, theory or [], version, master, remote, drawing=figures and only is None)
    written: list[Path] = []
    if only is None:
        target = out or (folder / "report.html" if other is None else other / "comparison.html")
        page = report_page(contents, contents.layout, f"mcastlab report {contents.written_folders}{_written(theory, version)}")
        write_text("--out", target, page)
        written.append(target)
    known = {figure.name: figure for figure in contents.figures}
    if only is not None and only not in known:
        raise UsageError(f"--only: value {only!r} is not allowed; {one_of(only, known)}")
    if figures or only:
        with working("drawing figures"):
            place = folder / "figures" if other is None else other / "comparison"
            written += save([known[only]] if only else contents.figures, place)
    summary = _summary(written[: only is None], written[only is None :], brief)
    typer.echo(json.dumps({"written": [str(path) for path in written]}) if as_json else summary)
    if browse and only is None:
        webbrowser.open(written[0].resolve().as_uri())
    return 0


def _read(
    folder: Path,
    other: Path | None,
    metric: str,
    theory: list[str],
    version: str | None,
    master: str,
    remote: str | None,
    *,
    drawing: bool,
) -> "ReportData":
    """Collect the contents of the report of one sweep, or of two; a wrong folder is reported before Spark starts.

    `drawing` says whether figures will be drawn as files.
    """
    from experiments.report.matplotlib_figures import prepare
    from experiments.report.report_data import collect, collect_pair
    from experiments.sweep.run.spark_session import opened
    from experiments.sweep.store.damage import naming_damage
    from experiments.sweep.store.invocations import chosen_version

    versions = _versions(version, theory, other)
    folders = [folder] if other is None else [folder, other]
    for each in folders:
        chosen_version(each)
    names = [name for name in metric.split(",") if name.strip()]
    if drawing:
        prepare()
    with (
        reading(*folders, master=master, remote=remote),
        naming_damage(*folders),
        opened(master, folder / "spark.log", remote) as spark,
    ):
        if other is not None:
            return collect_pair(spark, (folder, other), names, versions)
        return collect(spark, folder, names, theory, versions[0])


def _versions(written: str | None, theory: list[str], other: Path | None) -> tuple[str | None, str | None]:
    """Return the versions of the code of both sweeps, as far as they are given. UsageError for what does not fit."""
    if other is None:
        return written, None
    if theory:
        raise UsageError("--theory: is not allowed with two sweeps; their reports of their own have theory")
    if written is None:
        return None, None
    first, comma, second = (part.strip() for part in written.partition(","))
    if not (first and comma and second):
        raise UsageError(f"--version: value {written!r} is not allowed; with two sweeps both versions: OLD,NEW")
    return first, second


def _written(theory: list[str] | None, version: str | None) -> str:
    """Return the options of the command that change the page, as written in a shell."""
    options = "".join(f" --theory {shlex.quote(text)}" for text in theory or ())
    return options + (f" --version {shlex.quote(version)}" if version else "")


def _summary(pages: list[Path], drawn: list[Path], brief: bool) -> str:
    """Return lines that name the page with its size, and the number of figure files."""
    lines = [f"{path} ({path.stat().st_size / 1e6:.1f} MB)" for path in pages]
    if drawn:
        lines.append(f"{drawn[0].parent}: {len(drawn)} files, PNG and SVG")
    return (", " if brief else "\n").join(lines)
