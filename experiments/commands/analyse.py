"""`mcastlab analyse`: statistics of the results of a sweep."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from experiments.commands.options import Json, Master, Remote
from experiments.output import tables
from protocols.errors import ConfigError, UsageError
from topologies.units import parse_fraction

if TYPE_CHECKING:
    from experiments.analysis.analysis_request import AnalysisResult

__all__ = ["analyse_command"]

MOST_ROWS = 200


def analyse_command(
    *,
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of a sweep.", show_default=False)],
    by: Annotated[str, typer.Option(help="Group by these axes; the last part of a name suffices.", metavar="AXIS,...")] = "",
    metric: Annotated[
        str, typer.Option(help="Metrics to analyse.  (default: the main ones)", metavar="NAME,...", show_default=False)
    ] = "",
    compare: Annotated[
        str | None,
        typer.Option(help="Show paired differences between values of an axis.", metavar="AXIS[=BASE]", show_default=False),
    ] = None,
    effects: Annotated[
        bool, typer.Option("--effects", help="Show the effect of each axis: share of variance, rank correlation.")
    ] = False,
    theory: Annotated[
        list[str] | None,
        typer.Option(
            help="Show a formula beside the means; may be repeated.", metavar="NAME[:arg=value,...]", show_default=False
        ),
    ] = None,
    series: Annotated[
        str, typer.Option(help="Show time series, or all, as bands of quantiles.", metavar="NAME,...", show_default=False)
    ] = "",
    margin: Annotated[str, typer.Option(help="Fraction of the formula within which theory holds.", metavar="2%")] = "2%",
    exact: Annotated[
        bool | None,
        typer.Option(
            "--exact/--approximate", help="Method for percentiles.  (default: exact up to 2 million runs)", show_default=False
        ),
    ] = None,
    version: Annotated[
        str | None,
        typer.Option(
            help="Version of the code that made the runs.  (default: the last)", metavar="VERSION", show_default=False
        ),
    ] = None,
    csv: Annotated[
        Path | None, typer.Option(help="Write the rows to this file, too.", metavar="FILE", show_default=False)
    ] = None,
    master: Master = "local[*]",
    remote: Remote = None,
    as_json: Json = False,
) -> int:
    """Show means of runs with intervals and percentiles; or paired differences, effects, theory or time series.

    Exit code 0: success; 2: bad input; 3: this machine can't run Spark.
    """
    # Modules that need Spark's packages are imported after the check for them.
    from experiments.sweep.run.spark_session import check_pyspark, session

    check_pyspark()
    from experiments.analysis.analysis_request import AnalysisRequest, analyse, write_csv
    from experiments.sweep.store.invocations import latest_version

    question = AnalysisRequest(
        by=_listed(by),
        metrics=_listed(metric),
        compare=compare,
        effects=effects,
        theory=theory or (),
        series=_listed(series),
        exact=exact,
        version=version,
        margin=_fraction(margin),
    )
    # A wrong folder is reported before Spark starts.
    latest_version(folder)
    with tables.working(f"reading {folder}"):
        spark = session(master, folder / "spark.log", remote)
        try:
            answer = analyse(spark, folder, question)
        finally:
            spark.stop()
    if csv is not None:
        write_csv(answer.rows, csv)
    if as_json:
        typer.echo(json.dumps(answer.plain()))
    else:
        _show(answer, csv)
    return 0


def _fraction(text: str) -> float:
    try:
        return parse_fraction(text)
    except ConfigError as error:
        raise UsageError(f"--margin: {error}") from error


def _listed(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _show(answer: "AnalysisResult", csv: Path | None) -> None:
    failed = f", {answer.failed} failed" if answer.failed else ""
    table = Table(title=f"{answer.runs} runs{failed}, code {answer.version}", title_justify="left", caption=answer.about)
    columns = list(answer.rows[0]) if answer.rows else []
    for name in columns:
        table.add_column(name, justify="left" if isinstance(answer.rows[0][name], str) else "right", overflow="fold")
    for row in answer.rows[:MOST_ROWS]:
        table.add_row(*(_shown(row[name]) for name in columns))
    console = Console()
    (console if console.is_terminal else Console(width=200)).print(table)
    if len(answer.rows) > MOST_ROWS and csv is None:
        typer.echo(f"{len(answer.rows) - MOST_ROWS} more rows; --csv FILE or --json has them all")


def _shown(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.5g}" if isinstance(value, float) else str(value)
