"""`mcastlab results`: show the rows of a sweep, selected by SQL."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from experiments.commands.options import Json
from experiments.output import tables
from protocols.errors import UsageError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["results_command"]

SHOWN = 30
MAIN_COLUMNS = ("m_completed", "m_completion_time", "m_overhead", "m_nacks_sent", "receiver", "name", "t", "value")


def results_command(
    *,
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of a sweep.", show_default=False)],
    where: Annotated[str | None, typer.Option(help="Condition for rows, as in SQL.", metavar="SQL", show_default=False)] = None,
    select: Annotated[str | None, typer.Option(help="Columns to show, as in SQL.", metavar="SQL", show_default=False)] = None,
    dataset: Annotated[str, typer.Option(help="Data set: runs, receivers or series.", metavar="NAME")] = "runs",
    version: Annotated[
        str | None,
        typer.Option(help="Version of the code that made the runs.  (default: the last)", metavar="V", show_default=False),
    ] = None,
    csv: Annotated[Path | None, typer.Option(help="Into a CSV file.", metavar="FILE", show_default=False)] = None,
    compact: Annotated[bool, typer.Option("--compact", help="First merge the many files of the sweep into few.")] = False,
    master: Annotated[str, typer.Option(help="Where Spark runs.", metavar="MASTER")] = "local[*]",
    as_json: Json = False,
) -> int:
    """Show the rows of a sweep, or write them to a file.

    Exit code 0: rows were found; 1: none; 2: bad input; 3: this machine can't run Spark.
    """
    # Modules that need Spark's packages are imported after the check for them.
    from experiments.sweep.run.spark_session import check_pyspark, session, stop

    check_pyspark()
    from experiments.sweep.store.compaction import compact as merge_files
    from experiments.sweep.store.invocations import latest_version
    from experiments.sweep.store.query import DATASETS, rows

    if dataset not in DATASETS:
        raise UsageError(f"--dataset: value {dataset!r} is not allowed; one of {', '.join(DATASETS)}")
    wanted = version or latest_version(folder)
    with tables.working(f"reading {folder}"):
        spark = session(master, folder / "spark.log")
        try:
            if compact:
                merge_files(spark, folder)
            found = rows(spark, folder, dataset, wanted, where, select)
            total = _give(found, csv, as_json)
        finally:
            stop(spark)
    return 0 if total else 1


def _give(found: "DataFrame", csv: Path | None, as_json: bool) -> int:
    """Write or show the rows; return their number."""
    if csv is None and not as_json:
        total = found.count()
        _show(found, total)
        return total
    frame: Any = found.toPandas()
    if csv is not None:
        try:
            frame.to_csv(csv, index=False)
        except OSError as error:
            raise UsageError(f"--csv: value {str(csv)!r} is not allowed; it can't be written ({error.strerror})") from error
        typer.echo(f"{csv}: {len(frame)} rows", err=True)
    if as_json:
        typer.echo(frame.to_json(orient="records", date_format="iso"))
    return len(frame)


def _show(found: "DataFrame", total: int) -> None:
    """Show the first rows; of runs, the parameters, the error and the main metrics."""
    names = found.columns
    if "run_id" in names and "params" in names:
        about = [name for name in names if name in ("point", "case", "seed", "status", "error") or name.startswith("p_")]
        names = [*about, *(name for name in MAIN_COLUMNS if name in names)]
    rows: list[dict[str, Any]] = [row.asDict() for row in found.select(*names).limit(SHOWN).collect()]
    names = [name for name in names if not rows or any(row[name] is not None for row in rows)]
    table = Table(caption=f"{min(SHOWN, total)} of {total} rows; --select for other columns, --csv FILE for all")
    for name in names:
        table.add_column(name, overflow="fold")
    for row in rows:
        table.add_row(*(_shown(row[name]) for name in names))
    console = Console()
    (console if console.is_terminal else Console(width=200)).print(table)


def _shown(value: object) -> str:
    return "-" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)
