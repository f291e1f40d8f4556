"""Print the tables and lines of a command within the width of its output, by one rule for all commands."""

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import inf
from textwrap import wrap

from rich.box import SIMPLE_HEAD, Box
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from experiments.output.budget import GAP, Table, extent_of, fit, key_of_name, says_nothing, text_of
from experiments.output.safe_text import printable
from experiments.scenario.suggestion import one_of
from protocols.errors import UsageError

__all__ = ["PIPED_WIDTH", "Printer", "View", "draw"]

PIPED_WIDTH = 120
"""Characters of a line if the output is not a terminal and COLUMNS is not set."""
_UNLIMITED = 1_000_000
_ALARMS = ("NO", "DIFFERS")
"""Cells in red: the answers that a user has to see."""
_WORD = re.compile(r"""(?:--\S+\s+)?(?:[^\s'"]|'[^']*'|"[^"]*"|['"])+""")
"""A word of a command line, quoted parts in one piece; an option with the word behind it."""
_ASCII_HEAD = Box("    \n    \n -- \n    \n    \n    \n    \n    \n", ascii=True)


@dataclass(frozen=True, slots=True)
class View:
    """Requested form of a table: every column (`wide`), the named `columns` in their order, or one line only (`brief`)."""

    wide: bool = False
    columns: tuple[str, ...] = ()
    brief: bool = False

    @classmethod
    def of(cls, *, wide: bool = False, columns: str = "", brief: bool = False, as_json: bool = False) -> "View":
        """Make a view of the options of a command. UsageError for options that exclude each other."""
        given = {"--wide": wide, "--columns": bool(columns), "--brief": brief, "--json": as_json}
        names = [name for name, is_given in given.items() if is_given]
        if len(names) > 1:
            raise UsageError(f"{names[0]}: is not allowed beside {names[1]}")
        chosen = tuple(part.strip() for part in columns.split(",") if part.strip())
        if columns and not chosen:
            raise UsageError(f"--columns: value {columns!r} is not allowed; names with commas between")
        return cls(wide, chosen, brief)

    def check(self, known: Iterable[str]) -> None:
        """Raise UsageError for a name of `columns` that is not known, before anything is run or printed."""
        names = list(dict.fromkeys(filter(None, known)))
        keys = {key_of_name(name) for name in names}
        for name in self.columns:
            if key_of_name(name) not in keys:
                raise UsageError(f"--columns: value {name!r} is not allowed; {one_of(name, names)}")


class Printer:
    """Prints on stdout. Tables get the columns of the view that fit; lines wrap between words."""

    def __init__(self, view: View | None = None, console: Console | None = None) -> None:
        self.view = view or View()
        self._console = console or Console(highlight=False)
        self.width = _width(self._console)
        # All widths are computed here; rich must not cut or wrap anything on its own.
        self._console.width = _UNLIMITED

    @property
    def is_unicode(self) -> bool:
        """Whether the output shows more than ASCII."""
        return _is_unicode(self._console.encoding)

    def line(self, text: str = "", indent: int = 0, style: str = "") -> None:
        """Print text within the width, wrapped between words; later lines are indented by `indent` more than the first."""
        text = self._encodable(printable(text))
        begin = " " * (len(text) - len(text.lstrip()))
        parts = wrap(
            text.lstrip(),
            max(self.width, len(begin) + indent + 1),
            initial_indent=begin,
            subsequent_indent=begin + " " * indent,
            break_long_words=False,
            break_on_hyphens=False,
        )
        for part in parts or [""]:
            self._console.print(Text(part, style), soft_wrap=True)

    def verbatim(self, text: str) -> None:
        """Print a line that is meant to be copied, as a command is, without wrapping it (see `command`)."""
        self._console.print(Text(self._encodable(printable(text))), soft_wrap=True)

    def command(self, text: str) -> None:
        """Print a command line that is meant to be copied; where it takes several lines, a backslash joins them."""
        text = self._encodable(printable(text))
        if len(text) <= self.width:
            self.verbatim(text)
            return
        begin = " " * (len(text) - len(text.lstrip()))
        line, *words = _WORD.findall(text)
        line = begin + line
        for word in words:
            if len(f"{line} {word} \\") > self.width:
                self.verbatim(f"{line} \\")
                line = f"{begin}    {word}"
            else:
                line = f"{line} {word}"
        self.verbatim(line)

    def table(self, table: Table) -> None:
        """Print a table, and a line that names the columns left out."""
        drawn, left_out = draw(table, self.view, self.width, self._console.encoding)
        if table.title:
            self.line(table.title, style="bold")
        with self._console.capture() as captured:
            self._console.print(drawn)
        for line in captured.get().splitlines():
            self._console.file.write(line.rstrip() + "\n")
        if table.note:
            self.line(table.note, style="dim")
        if left_out:
            shows = "--wide shows all, --columns A,B,... some"
            self.line(f"left out at {self.width} characters: {', '.join(left_out)}; {shows}", style="dim")

    def _encodable(self, text: str) -> str:
        return _encodable(text, self._console.encoding)


def draw(table: Table, view: View, width: float, encoding: str) -> tuple[RichTable, list[str]]:
    """Return a table within `width` characters as rich draws it, and the names of the columns left out."""
    order, is_chosen = _order(table, view)
    columns = [table.columns[index] for index in order]
    cells = [[row[index] for row in table.rows] for index in order]
    texts = [
        [_encodable(text_of(cell, column), encoding) for cell in each] for column, each in zip(columns, cells, strict=True)
    ]
    width = inf if view.wide else width
    extents = list(map(extent_of, columns, cells, texts, [width] * len(columns)))
    widths = fit([replace(extent, rank=0) for extent in extents] if is_chosen else extents, width)
    drawn = RichTable(
        box=SIMPLE_HEAD if _is_unicode(encoding) else _ASCII_HEAD,
        show_edge=False,
        pad_edge=False,
        padding=(0, GAP - 1, 0, 0),
        header_style="bold",
    )
    for place, size in widths.items():
        is_right = not extents[place].is_text if columns[place].right is None else columns[place].right
        head = Text(_encodable(columns[place].head, encoding))
        drawn.add_column(head, justify="right" if is_right else "left", width=size, overflow="fold")
    for row in zip(*(texts[place] for place in widths), strict=True):
        drawn.add_row(*(Text(text, "bold red" if text in _ALARMS else "") for text in row))
    return drawn, [column.name for place, column in enumerate(columns) if place not in widths]


def _order(table: Table, view: View) -> tuple[list[int], bool]:
    """Return the indices of the columns to show, and whether the view names them; a column without a name labels the rows."""
    found = {key_of_name(column.name): index for index, column in enumerate(table.columns)}
    named = [found[key] for key in map(key_of_name, view.columns) if key in found]
    if named:
        labels = [index for index, column in enumerate(table.columns) if not column.name]
        return list(dict.fromkeys([*labels, *named])), True
    filled = [
        index
        for index, column in enumerate(table.columns)
        if view.wide or not says_nothing(row[index] for row in table.rows) or (column.rank == 0 and not table.rows)
    ]
    return filled, False


def _is_unicode(encoding: str) -> bool:
    return encoding.lower().startswith("utf")


def _encodable(text: str, encoding: str) -> str:
    """Return the text as the output writes it: characters that its encoding lacks as escapes, which take more room."""
    return text.encode(encoding, "backslashreplace").decode(encoding)


def _width(console: Console) -> int:
    """Return the characters of a line: COLUMNS if it is set, else those of the terminal, else PIPED_WIDTH."""
    asked = os.environ.get("COLUMNS", "")
    if asked.isdecimal() and int(asked):
        return int(asked)
    return console.width if console.is_terminal else PIPED_WIDTH
