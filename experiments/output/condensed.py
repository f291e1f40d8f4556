"""Show many similar rows as few: the spread of each quantity, and the ten worst rows with the number of those alike."""

from collections.abc import Callable, Iterator, Sequence
from statistics import median
from typing import Any

from experiments.output.budget import Column, Table, text_of

__all__ = ["ALIKE", "MOST_ROWS", "condensed"]

MOST_ROWS, WORST = 20, 10
"""Rows that are all shown, and rows shown of more."""
ALIKE = Column("alike", rank=0)


def condensed(table: Table, badness: Callable[[Sequence[Any]], Any], of: str) -> Iterator[Table]:
    """Yield the table itself; or, of more than MOST_ROWS rows, the range of its numbers and the worst rows.

    The first column names the rows. Rows that differ in nothing else, as printed, are one row with their number as "alike".
    `badness` orders the rows; `of` is what a row is about, in the plural.
    """
    if len(table.rows) <= MOST_ROWS:
        yield table
        return
    alike: dict[tuple[str, ...], list[Sequence[Any]]] = {}
    known: dict[tuple[Any, ...], tuple[str, ...]] = {}
    for row in sorted(table.rows, key=badness, reverse=True):
        cells = tuple(row[1:])
        texts = known.get(cells)
        if texts is None:
            texts = known[cells] = tuple(map(text_of, cells, table.columns[1:]))
        alike.setdefault(texts, []).append(row)
    groups = list(alike.values())
    rest = sum(map(len, groups[WORST:]))
    title = _counts(table, of)
    if rest:
        yield _spread(table, title)
        title = f"the {WORST} worst"
    yield Table(
        columns=[table.columns[0], ALIKE, *table.columns[1:]],
        rows=[[group[0][0], len(group), *group[0][1:]] for group in groups[:WORST]],
        title=f"{title}; alike: number of {of} with these values" if len(groups) < len(table.rows) else title,
        note=f"and {rest} {of} that are no worse" if rest else "",
    )


def _counts(table: Table, of: str) -> str:
    """Return the number of rows, and of those that say yes to each question."""
    told = [f"{len(table.rows)} {of}"]
    for index, column in enumerate(table.columns):
        cells = [row[index] for row in table.rows if row[index] is not None]
        if cells and all(isinstance(cell, bool) for cell in cells):
            told.append(f"{column.name} {sum(cells)}")
    return ", ".join(told)


def _spread(table: Table, title: str) -> Table:
    """Return a table of the range of each column of numbers."""
    rows: list[list[str]] = []
    for index, column in enumerate(table.columns[1:], 1):
        cells = [row[index] for row in table.rows if row[index] is not None]
        if cells and all(isinstance(cell, (int, float)) and not isinstance(cell, bool) for cell in cells):
            rows.append([column.head, *(text_of(end, column) for end in (min(cells), median(cells), max(cells)))])
    return Table([Column("", rank=0), *(Column(name, right=True) for name in ("lowest", "median", "highest"))], rows, title)
