"""Show many similar rows as few: the spread of each quantity, and the ten worst rows with the number of those alike."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from statistics import median
from typing import Any

from experiments.output.budget import Column, Table, text_of

__all__ = ["ALIKE", "MOST_ROWS", "condensed"]

MOST_ROWS, WORST = 20, 10
"""Rows that are all shown, and rows shown of more."""
ALIKE = Column("alike", rank=1)


def condensed(table: Table, badness: Callable[[Sequence[Any]], Any], of: str) -> Iterator[Table]:
    """Yield the table itself; or, of more than MOST_ROWS rows, the spread of its numbers and the worst rows.

    The first column names the rows. Rows that differ in nothing else, as printed, are one row with their number as "alike".
    `badness` orders the rows; `of` is what a row is about, in the plural.
    """
    if len(table.rows) <= MOST_ROWS:
        yield table
        return
    alike: dict[tuple[str, ...], list[Sequence[Any]]] = {}
    for row in sorted(table.rows, key=badness, reverse=True):
        texts = tuple(text_of(cell, column) for cell, column in zip(row[1:], table.columns[1:], strict=True))
        alike.setdefault(texts, []).append(row)
    groups = list(alike.values())
    yield _spread(table, of)
    shown, rest = groups[:WORST], sum(map(len, groups[WORST:]))
    title = f"the {WORST} worst" if rest else f"all, by what they have in common: {len(groups)}"
    if len(groups) < len(table.rows):
        title += f"; alike: number of {of} with these values"
    yield Table(
        columns=[table.columns[0], ALIKE, *table.columns[1:]],
        rows=[[group[0][0], len(group), *group[0][1:]] for group in shown],
        title=title,
        note=f"and {rest} {of} that are no worse" if rest else "",
    )


def _spread(table: Table, of: str) -> Table:
    """Return a table of the range of each number; its title counts the rows, and those that say yes to each question."""
    rows: list[list[Any]] = []
    counted = [f"{len(table.rows)} {of}"]
    form = Column("")
    for index, column in enumerate(table.columns[1:], 1):
        cells = [row[index] for row in table.rows if row[index] is not None]
        if cells and all(isinstance(cell, bool) for cell in cells):
            counted.append(f"{column.name} {sum(cells)}")
        elif cells and all(isinstance(cell, (int, float)) for cell in cells):
            ends = (min(cells), median(cells), max(cells))
            rows.append([column.head, *(text_of(end, replace(form, form=column.form)) for end in ends)])
    heads = [Column("", rank=0), *(Column(name, right=True) for name in ("lowest", "median", "highest"))]
    return Table(heads, rows, ", ".join(counted))
