"""The tables of a sweep's report as plain data: points, theory, differences of two sweeps, failed runs."""

from collections.abc import Iterator
from typing import Any

from experiments.report.comparison_page import differences_table
from experiments.report.labels import UNITS, rounded
from experiments.report.report_data import ReportData

__all__ = ["tables_of"]


def tables_of(contents: ReportData, small: bool) -> Iterator[dict[str, Any]]:
    """Yield name, columns and rows of each table; that of all points only in a `small` report."""
    if contents.pair:
        yield differences_table(contents.pair, contents.axes)
    if small:
        yield _points(contents)
    if contents.theory:
        yield _theory(contents)
    if contents.failures:
        columns = ["status", "reason", "point", "seed", "command"]
        rows = [[row.status, row.reason, row.point, row.seed, row.command] for row in contents.failures]
        yield {"name": "failed", "columns": columns, "rows": rows, "long": ["reason", "command"]}


def _points(contents: ReportData) -> dict[str, Any]:
    columns = ["metric", "unit", "runs", "mean", "sd", "low", "high", "p5", "p50", "p95"]
    # Only where Mininet was too much for the machine at some point.
    columns += ["core-limited"] if contents.bound else []
    rows = [
        [
            *_keys(contents, group),
            *(group.metric, UNITS.get(group.metric, ""), group.count),
            *map(rounded, (group.mean, group.sd, group.low, group.high)),
            *(rounded(group.percentiles[rank]) for rank in (5, 50, 95)),
            *(["yes" if tuple(group.keys.values()) in contents.bound else "no"] if contents.bound else []),
        ]
        for group in contents.groups
    ]
    return {"name": "points", "columns": _heads(contents) + columns, "rows": rows}


def _theory(contents: ReportData) -> dict[str, Any]:
    columns = ["formula", "metric", "unit", "theory", "measured", "low", "high", "runs", "holds"]
    rows = [
        [
            *_keys(contents, row),
            *(row.formula, row.metric, UNITS.get(row.metric, "")),
            *map(rounded, (row.expected, row.mean, row.low, row.high)),
            *(row.count, row.holds),
        ]
        for row in contents.theory
    ]
    return {"name": "theory", "columns": _heads(contents) + columns, "rows": rows}


def _heads(contents: ReportData) -> list[str]:
    return [axis.label for axis in contents.axes.values()]


def _keys(contents: ReportData, row: Any) -> list[Any]:
    """Return the values of a row's point on the shown axes, in their units."""
    return [axis.value(row.keys[name]) for name, axis in contents.axes.items()]
