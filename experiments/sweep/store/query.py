"""SQL queries over the results of a sweep."""

from pathlib import Path
from typing import TYPE_CHECKING

from experiments.sweep.store.datasets import receivers, runs, series
from protocols.errors import UsageError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["DATASETS", "rows"]

DATASETS = {"runs": runs, "receivers": receivers, "series": series}
ORDER = {"runs": ("point", "seed"), "receivers": ("point", "seed", "receiver"), "series": ("point", "seed", "name", "t")}


def rows(
    spark: "SparkSession", folder: Path, dataset: str, version: str, where: str | None = None, select: str | None = None
) -> "DataFrame":
    """Return the rows of a dataset where `where` holds, with the columns of `select`, ordered by point and seed.

    Rows of receivers and series are joined with the parameters of their run. Raises UsageError for invalid SQL.
    """
    from pyspark.errors import AnalysisException, ParseException

    frame = runs(spark, folder, version)
    if dataset != "runs":
        about = [name for name in frame.columns if not name.startswith("m_")]
        frame = frame.select(*about).join(DATASETS[dataset](spark, folder), "run_id")
    try:
        chosen = frame.where(where) if where is not None else frame
        ordered = chosen.orderBy(*ORDER[dataset])
        return ordered.selectExpr(*_split(select)) if select is not None else ordered
    except (AnalysisException, ParseException) as error:
        wrong = next(line for line in str(error).splitlines() if line.strip()).rstrip("; ")
        raise UsageError(f"--where, --select: {wrong}; columns: {', '.join(frame.columns)}") from error


def _split(text: str) -> list[str]:
    """Split at commas outside parentheses."""
    found, depth = [""], 0
    for letter in text:
        depth += (letter == "(") - (letter == ")")
        if letter == "," and depth == 0:
            found.append("")
        else:
            found[-1] += letter
    return [part.strip() for part in found]
