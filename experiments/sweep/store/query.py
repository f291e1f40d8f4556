"""SQL queries over the results of a sweep."""

import re
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from experiments.output.records import columns_of
from experiments.scenario.suggestion import one_of
from experiments.sweep.store.datasets import receivers, runs, series
from protocols.errors import UsageError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["DATASETS", "rows"]

DATASETS = {"runs": runs, "receivers": receivers, "series": series}
_NAMES = re.compile(r"`([^`]+)`|(\w+)")
"""Names in SQL, those with spaces and the like in backquotes."""
_PARTS = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`[^`]*`|.""", re.DOTALL)
"""Texts and names in quotes, and single characters outside of them."""
ORDER = {"runs": ("point", "seed"), "receivers": ("point", "seed", "receiver"), "series": ("point", "seed", "name", "t")}


def rows(
    spark: "SparkSession", folder: Path, dataset: str, version: str, where: str | None = None, select: str | None = None
) -> "DataFrame":
    """Return the rows of a dataset where `where` holds, with the columns of `select`, ordered by point and seed.

    Rows of receivers and series are joined with the parameters of their run. Columns may be named as they are stored or as
    tables show them (`p_loss` or `loss`). Raises UsageError for invalid SQL.
    """
    frame = runs(spark, folder, version)
    if dataset != "runs":
        about = [name for name in frame.columns if not name.startswith("m_")]
        frame = frame.select(*about).join(DATASETS[dataset](spark, folder), "run_id")
    stored, shown = frame.columns, [column.name for column in columns_of(frame.columns, {})]
    frame = _with_shown_names(frame, shown, f"{where or ''} {select or ''}")
    if where is not None:
        frame = _valid("--where", shown, partial(frame.where, where))
    ordered = frame.orderBy(*ORDER[dataset])
    if select is None:
        return ordered.select(*(f"`{name}`" for name in stored))
    return _valid("--select", shown, partial(ordered.selectExpr, *_split(select)))


def _with_shown_names(frame: "DataFrame", shown: Sequence[str], sql: str) -> "DataFrame":
    """Add the columns that `sql` names as tables show them, by the names in `shown`; capital letters make no difference."""
    from pyspark.sql import functions as f

    named = {(quoted or plain).lower() for quoted, plain in _NAMES.findall(sql)} - {name.lower() for name in frame.columns}
    columns = {name: f.col(f"`{stored}`") for name, stored in zip(shown, frame.columns, strict=True) if name.lower() in named}
    return frame.withColumns(columns)


def _valid(option: str, known: Sequence[str], query: Callable[[], "DataFrame"]) -> "DataFrame":
    """Return the result of a query; UsageError that names the option and the `known` columns if its SQL is invalid."""
    from pyspark.errors import AnalysisException, ParseException

    try:
        return query()
    except (AnalysisException, ParseException) as error:
        if str(error.getCondition()).startswith("UNRESOLVED_COLUMN"):
            name = str((error.getMessageParameters() or {}).get("objectName", "")).replace("`", "")
            raise UsageError(f"{option}: value {name!r} is not allowed; {one_of(name, known)}") from error
        text = next(line for line in str(error).splitlines() if line.strip())
        wrong = re.sub(r"^\[[A-Z_.]+\] | SQLSTATE: \w+", "", text).rstrip("; ")
        raise UsageError(f"{option}: {wrong}; columns: {', '.join(known)}") from error


def _split(text: str) -> list[str]:
    """Split at commas outside parentheses and quotes."""
    found, depth = [""], 0
    for part in _PARTS.findall(text):
        depth += (part == "(") - (part == ")")
        if part == "," and depth == 0:
            found.append("")
        else:
            found[-1] += part
    return [part.strip() for part in found]
