"""Results as HTML, for notebooks."""

from html import escape

from experiments.output.tables import summary
from experiments.running.result import Result, Row

__all__ = ["html_of"]

MOST_ROWS = 20


def html_of(result: Result) -> str:
    """A table of the metrics, and a second one, folded, of the first receivers."""
    title = f"{escape(result.scenario)} (seed {result.seed}, {escape(result.backend)})"
    metrics = "".join(
        f"<tr><th>{escape(name)}</th><td>{escape(text)}</td></tr>" for name, text in summary(result).items() if text
    )
    rows = result.receivers[:MOST_ROWS]
    listed = "".join("<tr>" + "".join(f"<td>{escape(text)}</td>" for text in _cells(row)) + "</tr>" for row in rows)
    head = "".join(f"<th>{name}</th>" for name in ("receiver", "objects", "equal", "completed", "loss"))
    shown = f"{len(rows)} of {len(result.receivers)} receivers"
    return (
        f"<table><caption>{title}</caption>{metrics}</table>"
        f"<details><summary>{shown}</summary><table><tr>{head}</tr>{listed}</table></details>"
    )


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
