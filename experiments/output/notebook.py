"""Results as HTML, for notebooks."""

from experiments.output.html_table import html_table
from experiments.output.tables import summary
from experiments.running.result import Result, Row

__all__ = ["html_of"]

MOST_ROWS = 20


def html_of(result: Result) -> str:
    """A table of the metrics, and a second one, folded, of the first receivers."""
    title = f"{result.scenario} (seed {result.seed}, {result.backend})"
    metrics = html_table(((name, text) for name, text in summary(result).items() if text), caption=title)
    rows = result.receivers[:MOST_ROWS]
    listed = html_table(map(_cells, rows), head=("receiver", "objects", "equal", "completed", "loss"))
    return f"{metrics}<details><summary>{len(rows)} of {len(result.receivers)} receivers</summary>{listed}</details>"


def _cells(row: Row) -> tuple[str, ...]:
    return (
        row.name,
        str(row.objects),
        "yes" if row.equal else "NO",
        _seconds(row.completed_at),
        "-" if row.loss is None else f"{row.loss:.2%}",
    )


def _seconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f} s"
