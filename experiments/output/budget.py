"""Tables within a width: which columns are shown, and how wide each of them is.

A column has a rank. The columns of rank 0 are always shown; the others follow in the order of their ranks, as far as they fit.
Columns of one rank, such as the two ends of an interval, are shown together or not at all. Numbers are never broken: only text
wraps, between words where it can.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import inf, isfinite
from typing import Any

from rich.cells import cell_len

from experiments.output.safe_text import printable

__all__ = ["GAP", "Column", "Extent", "Table", "extent_of", "fit", "key_of_name", "number", "says_nothing", "text_of"]

GAP = 2
"""Blanks between two columns."""
_NUMBER = re.compile(r"[-+]?(\d[\d.]*(e[-+]?\d+)?|inf|nan)( of \d+)?")
"""Text that is a number, or a share like 5 of 8."""
_SHORT = 24
"""Characters of text that does not wrap to make room for further columns."""
_EXACT = 1e15
"""Below this, whole floating-point numbers are printed with all their digits."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its name and unit make the head, and `rank` says how early it is left out (0: never), with all of that rank.

    `digits` are the significant digits of its floating-point numbers, `form` is a format for them instead, as in ".3f".
    `right` aligns the cells; None: to the right unless a cell is text.
    """

    name: str
    unit: str = ""
    rank: int = 1
    digits: int = 5
    form: str = ""
    right: bool | None = None

    @property
    def head(self) -> str:
        """The name with the unit in brackets."""
        return f"{self.name} [{self.unit}]" if self.unit else self.name


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of plain values (numbers, text, bool, None) below columns, with a line of title above and of notes below."""

    columns: Sequence[Column]
    rows: Sequence[Sequence[Any]]
    title: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class Extent:
    """The narrowest width of a column at which nothing is broken, the width at which nothing wraps, and its rank."""

    narrow: int
    full: int
    rank: int
    is_text: bool


def key_of_name(name: str) -> str:
    """Return the form in which names of columns are compared: lower case, with - for blanks and brackets."""
    return re.sub(r"[^\w.]+", "-", name).strip("-.").casefold()


def number(value: float, digits: int = 5) -> str:
    """Format a number with so many significant digits, but never fewer than it has before the point, and no exponent for it."""
    if not isfinite(value):
        return str(value)
    if value == int(value) and abs(value) < _EXACT:
        return str(int(value))
    return f"{value:.0f}" if 10 ** (digits - 1) <= abs(value) < _EXACT else f"{value:.{digits}g}"


def text_of(value: Any, column: Column) -> str:
    """Return the text of a cell: `-` for None, yes or no for a truth value, and control characters as escapes."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:{column.form}}" if column.form and isfinite(value) else number(value, column.digits)
    return "\n".join(printable(line) for line in str(value).split("\n"))


def says_nothing(cells: Iterable[Any]) -> bool:
    """Return whether no cell of a row or column holds a value."""
    return all(cell is None or cell in ("", "-") for cell in cells)


def extent_of(column: Column, cells: Sequence[Any], texts: Sequence[str], width: float) -> Extent:
    """Measure a column from its cells and their texts. Text that takes more than half of `width` may be folded."""
    is_text = any(isinstance(cell, str) and cell and not _NUMBER.fullmatch(cell) for cell in cells)
    lines = [line for text in texts for line in text.split("\n")]
    full = max([cell_len(column.head), *map(cell_len, lines)])
    heads = [cell_len(word) for word in column.head.split()] or [0]
    if not is_text:
        return Extent(max([*heads, *map(cell_len, lines)]), full, column.rank, is_text)
    words = [cell_len(word) for line in lines for word in line.split()] or [0]
    longest = max(*words, min(max(map(cell_len, lines)), _SHORT))
    # Two columns of words have room side by side; a single word may take a whole half.
    most = max((width - GAP) // 2, min(max(words), width // 2), 8)
    return Extent(max([*heads, int(min(longest, most))]), full, column.rank, is_text)


def fit(extents: Sequence[Extent], width: float = inf) -> dict[int, int]:
    """Choose the columns that fit into `width` characters, and return the width of each by its index.

    What is left of the width goes to columns of text first, then to heads that would wrap.
    """
    room, chosen = width + GAP, dict[int, int]()
    for rank in sorted({extent.rank for extent in extents}):
        group = {index: extent.narrow for index, extent in enumerate(extents) if extent.rank == rank}
        need = sum(group.values()) + GAP * len(group)
        if rank == 0 or need <= room:
            chosen |= group
            room -= need
    for index in sorted(chosen, key=lambda index: (not extents[index].is_text, index)):
        more = int(min(max(room, 0), extents[index].full - extents[index].narrow))
        chosen[index] += more
        room -= more
    return dict(sorted(chosen.items()))
