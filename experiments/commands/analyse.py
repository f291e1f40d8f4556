"""`mcastlab analyse`: statistics of the results of a sweep."""

import json
from collections.abc import Mapping, Sequence
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from experiments.commands.options import Brief, Columns, Json, Master, Remote, Wide
from experiments.commands.reading import reading
from experiments.output.budget import Table
from experiments.output.counted import counted
from experiments.output.printer import Printer, View
from experiments.output.records import columns_of
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
    wide: Wide = False,
    columns: Columns = "",
    brief: Brief = False,
    as_json: Json = False,
) -> int:
    """Show means of runs with intervals and percentiles; or paired differences, effects, theory or time series.

    Exit code 0: success; 2: bad input; 3: this machine can't run Spark.
    """
    # Modules that need Spark's packages are imported after the check for them.
    from experiments.sweep.run.spark_session import check_pyspark, opened

    view = View.of(wide=wide, columns=columns, brief=brief, as_json=as_json)
    check_pyspark()
    from experiments.analysis.analysis_request import AnalysisRequest, analyse, write_csv
    from experiments.sweep.store.invocations import chosen_version

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
    chosen_version(folder)
    with reading(folder, master=master, remote=remote), opened(master, folder / "spark.log", remote) as spark:
        answer = analyse(spark, folder, question)
    if csv is not None:
        write_csv(answer.rows, csv)
    if as_json:
        typer.echo(json.dumps(answer.plain()))
    else:
        _show(view, answer, csv, folder / "sweep.yaml")
    return 0


def _fraction(text: str) -> float:
    try:
        return parse_fraction(text)
    except ConfigError as error:
        raise UsageError(f"--margin: {error}") from error


def _listed(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


_RANKS = {
    "metric": 0,
    "axis": 0,
    "formula": 0,
    "name": 0,
    "t": 0,
    "holds": 0,
    "mean": 1,
    "share": 1,
    "expected": 1,
    "left_out": 1,
    "low": 2,
    "high": 2,
}
"""Ranks of columns; the rest follows in its order."""
_OF_PAIRS = {"variant": 0, "clear": 3, "pairs": 4, "base": 5, "lower": 6, "higher": 6, "axis": 7}
"""Ranks of the columns of a comparison: axis and base are the same in all rows."""
_NAMES = ("metric", "axis")
"""Columns whose cells are names."""


def _ranks(names: Sequence[str]) -> dict[str, int]:
    """Return the ranks of these columns; the axes, which come first, are always shown."""
    axes = takewhile(lambda name: name not in _RANKS, names)
    return dict.fromkeys(axes, 0) | _RANKS | (_OF_PAIRS if "variant" in names else {})


def _cell(name: str, value: Any, units: Mapping[str, str]) -> Any:
    """Return what a table shows; the column of what is left out is not there where nothing is."""
    if name in _NAMES and value in units:
        return f"{value} [{units[value]}]"
    return None if name == "left_out" and not value else value


def _show(view: View, answer: "AnalysisResult", csv: Path | None, sweep: Path) -> None:
    from experiments.report.labels import head_units
    from experiments.sweep.spec.sweep_file import load_sweep

    units = head_units(load_sweep(sweep) if sweep.exists() else None)
    failed = f", {answer.failed} failed" if answer.failed else ""
    failed += f", {answer.incomplete} incomplete" if answer.incomplete else ""
    title = f"{answer.runs} run{'s' * (answer.runs != 1)}{failed}, code {answer.version}"
    names = list(answer.rows[0]) if answer.rows else []
    columns = columns_of(names, _ranks(names), units)
    view.check(column.name for column in columns)
    printer = Printer(view)
    if view.brief:
        printer.verbatim(f"{title}: {counted(len(answer.rows), 'row')}")
        return
    # The unit of a metric or an axis that is a cell stands there, since each row may have another.
    rows = [[_cell(name, row[name], units) for name in names] for row in answer.rows[:MOST_ROWS]]
    printer.table(Table(columns, rows, title, answer.about))
    if len(answer.rows) > MOST_ROWS and csv is None:
        printer.line(f"{counted(len(answer.rows) - MOST_ROWS, 'row', more='more')}; --csv FILE or --json has them all")
