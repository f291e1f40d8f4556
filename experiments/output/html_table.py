"""Tables as HTML, for notebooks."""

from collections.abc import Iterable, Sequence
from html import escape

__all__ = ["html_table"]


def html_table(rows: Iterable[Sequence[str | None]], *, caption: str = "", head: Sequence[str] = (), note: str = "") -> str:
    """Return a table of texts (None: an empty cell); the first cell of each row is its head, the note goes below the table."""
    top = f"<caption>{escape(caption)}</caption>" if caption else ""
    heads = "<tr>" + "".join(f"<th>{escape(name)}</th>" for name in head) + "</tr>" if head else ""
    body = "".join(_row(first or "", rest) for first, *rest in rows)
    return f"<table>{top}{heads}{body}</table>" + (f"<p>{escape(note)}</p>" if note else "")


def _row(first: str, rest: Iterable[str | None]) -> str:
    return f"<tr><th>{escape(first)}</th>" + "".join(f"<td>{escape(text or '')}</td>" for text in rest) + "</tr>"
