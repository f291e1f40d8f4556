"""`mcastlab results`: show the rows of a sweep, selected by SQL."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from experiments.commands.options import Brief, Columns, Json, Master, Wide
from experiments.commands.reading import reading
from experiments.output.budget import Table
from experiments.output.counted import counted
from experiments.output.printer import Printer, View
from experiments.output.records import columns_of
from experiments.output.safe_text import csv_cell
from experiments.scenario.suggestion import one_of
from protocols.errors import UsageError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from experiments.sweep.spec.sweep_file import Sweep

__all__ = ["results_command"]

SHOWN = 30
MAIN_METRICS = ("completion_time", "overhead", "nacks_sent")
"""Metrics that are shown of a sweep that names none."""
RECEIVER_METRICS = ("equal", "completed_at", "loss", "nacks_sent")
"""Metrics that are shown of receivers."""
OTHER_COLUMNS = ("receiver", "name", "t", "value")


def results_command(
    *,
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of a sweep.", show_default=False)],
    where: Annotated[str | None, typer.Option(help="Condition for rows, as in SQL.", metavar="SQL", show_default=False)] = None,
    select: Annotated[str | None, typer.Option(help="Columns to show, as in SQL.", metavar="SQL", show_default=False)] = None,
    dataset: Annotated[str, typer.Option(help="Data set to show.", metavar="runs|receivers|series")] = "runs",
    version: Annotated[
        str | None,
        typer.Option(help="Version of the code that made the runs.  (default: the last)", metavar="V", show_default=False),
    ] = None,
    csv: Annotated[
        Path | None,
        typer.Option(help="Into a CSV file; text like a formula gets an apostrophe.", metavar="FILE", show_default=False),
    ] = None,
    compact: Annotated[bool, typer.Option("--compact", help="First merge the many files of the sweep into few.")] = False,
    master: Master = "local[*]",
    wide: Wide = False,
    columns: Columns = "",
    brief: Brief = False,
    as_json: Json = False,
) -> int:
    """Show the rows of a sweep, or write them to a file.

    Exit code 0: rows were found; 1: none; 2: bad input; 3: this machine can't run Spark.
    """
    # Modules that need Spark's packages are imported after the check for them.
    from experiments.sweep.run.spark_session import check_pyspark, opened

    view = View.of(wide=wide, columns=columns, brief=brief, as_json=as_json)
    check_pyspark()
    from experiments.sweep.store.compaction import compact as merge_files
    from experiments.sweep.store.damage import naming_damage
    from experiments.sweep.store.invocations import chosen_version
    from experiments.sweep.store.query import DATASETS, rows

    if dataset not in DATASETS:
        raise UsageError(f"--dataset: value {dataset!r} is not allowed; {one_of(dataset, DATASETS)}")
    wanted = chosen_version(folder, version)
    with reading(folder, master=master), naming_damage(folder), opened(master, folder / "spark.log") as spark:
        if compact:
            merge_files(spark, folder)
        found = rows(spark, folder, dataset, wanted, where, select)
        total = _give(found, csv, view, as_json, dataset, _sweep_of(folder))
    return 0 if total else 1


def _sweep_of(folder: Path) -> "Sweep | None":
    """Return the sweep file that the results were made from, if it is there."""
    from experiments.sweep.spec.sweep_file import load_sweep

    path = folder / "sweep.yaml"
    return load_sweep(path) if path.exists() else None


def _give(found: "DataFrame", csv: Path | None, view: View, as_json: bool, dataset: str, sweep: "Sweep | None") -> int:
    """Write or show the rows; return their number."""
    if csv is None and not as_json:
        from experiments.report.labels import head_units

        total = found.count()
        metrics = RECEIVER_METRICS if dataset == "receivers" else (sweep and sweep.metrics) or MAIN_METRICS
        _show(view, found, total, metrics, head_units(sweep))
        return total
    frame: Any = found.toPandas()
    if csv is not None:
        try:
            frame.map(csv_cell).rename(columns=csv_cell).to_csv(csv, index=False)
        except OSError as error:
            raise UsageError(f"--csv: value {str(csv)!r} is not allowed; it can't be written ({error.strerror})") from error
        typer.echo(f"{csv}: {counted(len(frame), 'row')}", err=True)
    if as_json:
        typer.echo(frame.to_json(orient="records", date_format="iso"))
    return len(frame)


_RANKS = {"case": 0, "seed": 0, "receiver": 0, "name": 0, "t": 0, "error": 1, "value": 2}
"""Ranks of columns; the parameters of the sweep have 0. The metrics follow one by one, then the rest in its order."""


def _show(view: View, found: "DataFrame", total: int, metrics: Sequence[str], units: Mapping[str, str]) -> None:
    """Show the first rows; of runs, the parameters, the error and these metrics, unless other columns are named."""
    if view.brief:
        Printer(view).verbatim(counted(total, "row"))
        return
    names = found.columns
    ranks = _RANKS | {name: 2 + place for place, name in enumerate(metrics)}
    every = dict(zip(names, columns_of(names, ranks, units), strict=True))
    view.check(column.name for column in every.values())
    if "run_id" in names and "params" in names and not view.columns and not view.wide:
        main = [name for name in names if name in ("point", "case", "seed", "status", "error") or name.startswith("p_")]
        known = (*OTHER_COLUMNS, "m_completed", *(f"m_{name}" for name in metrics))
        names = [*main, *(name for name in known if name in names)]
    rows = [row.asDict() for row in found.select(*(f"`{name}`" for name in names)).limit(SHOWN).collect()]
    note = f"{min(SHOWN, total)} of {counted(total, 'row')}; --select for other columns, --csv FILE for all"
    Printer(view).table(
        Table([every[name] for name in names], [[_plain(row[name]) for name in names] for row in rows], note=note)
    )


def _plain(value: object) -> object:
    """Return a value as a cell: what is neither a number nor text (a time, a list) as its text."""
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)
