"""`mcastlab report`: write the results of a sweep as an HTML page, and its figures as files."""

import json
import shlex
import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from experiments.commands.options import Brief, Json, Master, Remote
from experiments.commands.text_file import write_text
from experiments.output import tables
from experiments.output.extras import need
from experiments.output.printer import View
from experiments.scenario.suggestion import one_of
from protocols.errors import UsageError

__all__ = ["report_command"]


def report_command(
    *,
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of a sweep.", show_default=False)],
    out: Annotated[
        Path | None, typer.Option(help="Page to write.  (default: DIR/report.html)", metavar="FILE", show_default=False)
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
        bool, typer.Option("--figures/--no-figures", help="Write every figure as PNG and SVG into DIR/figures.")
    ] = True,
    version: Annotated[
        str | None,
        typer.Option(
            help="Version of the code that made the runs.  (default: the last)", metavar="VERSION", show_default=False
        ),
    ] = None,
    master: Master = "local[*]",
    remote: Remote = None,
    brief: Brief = False,
    as_json: Json = False,
) -> int:
    """Write one self-contained HTML file with tables, interactive figures, theory and failed runs.

    Exit code 0: written; 2: bad input; 3: this machine can't run Spark or lacks plotly or matplotlib.
    """
    # Modules that need Spark's packages are imported after the check for them.
    from experiments.sweep.run.spark_session import check_pyspark, session

    View.of(brief=brief, as_json=as_json)
    check_pyspark()
    need("a report", *(["plotly"] if only is None else []), *(["matplotlib"] if figures or only else []))
    from experiments.report.matplotlib_figures import save
    from experiments.report.report_data import collect
    from experiments.report.report_page import report_page
    from experiments.sweep.store.invocations import latest_version

    # A wrong folder is reported before Spark starts.
    latest_version(folder)
    with tables.working(f"reading {folder}"):
        spark = session(master, folder / "spark.log", remote)
        try:
            contents = collect(spark, folder, [name for name in metric.split(",") if name.strip()], theory or (), version)
        finally:
            spark.stop()
    written: list[Path] = []
    if only is None:
        options = "".join(f" --theory {shlex.quote(text)}" for text in theory or ())
        target = out or folder / "report.html"
        page = report_page(contents, contents.layout, f"mcastlab report {shlex.quote(str(folder))}{options}")
        write_text("--out", target, page)
        written.append(target)
    known = {figure.name: figure for figure in contents.figures}
    if only is not None and only not in known:
        raise UsageError(f"--only: value {only!r} is not allowed; {one_of(only, known)}")
    if figures or only:
        with tables.working("drawing figures"):
            written += save([known[only]] if only else contents.figures, folder / "figures")
    typer.echo(json.dumps({"written": list(map(str, written))}) if as_json else _summary(written, brief))
    if browse and only is None:
        webbrowser.open(written[0].resolve().as_uri())
    return 0


def _summary(written: list[Path], brief: bool) -> str:
    """Return lines that name the page with its size, and the number of figure files."""
    lines = [f"{path} ({path.stat().st_size / 1e6:.1f} MB)" for path in written if path.suffix == ".html"]
    drawn = [path for path in written if path.suffix != ".html"]
    if drawn:
        lines.append(f"{drawn[0].parent}: {len(drawn)} files, PNG and SVG")
    return (", " if brief else "\n").join(lines)
