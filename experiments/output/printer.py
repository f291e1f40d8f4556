"""Print the tables and lines of a command within the width of its output, by one rule for all commands."""

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import inf
from textwrap import wrap

from rich.box import SIMPLE_HEAD, Box
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from experiments.output.budget import GAP, Column, Table, extent_of, fit, key_of_name, says_nothing, text_of
from experiments.output.safe_text import printable
from experiments.scenario.suggestion import one_of
from protocols.errors import UsageError

__all__ = ["PIPED_WIDTH", "Printer", "View"]

PIPED_WIDTH = 120
"""Characters of a line if the output is not a terminal and COLUMNS is not set."""
_UNLIMITED = 1_000_000
_ALARM = "bold red"
"""Style of a NO, which is the answer that a user has to see."""
_ASCII_HEAD = Box("    \n    \n -- \n    \n    \n    \n    \n    \n", ascii=True)


@dataclass(frozen=True, slots=True)
class View:
    """What a user wants to see: every column (`wide`), the named `columns` in their order, or one line only (`brief`)."""

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
        return self._console.encoding.lower().startswith("utf")

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
        """Print a line that is meant to be copied, as a command is, without wrapping it."""
        self._console.print(Text(self._encodable(printable(text))), soft_wrap=True)

    def table(self, table: Table) -> None:
        """Print a table, and a line that names the columns left out."""
        order, is_chosen = self._order(table)
        columns = [table.columns[index] for index in order]
        cells = [[row[index] for row in table.rows] for index in order]
        texts = [[self._encodable(text_of(cell, column)) for cell in each] for column, each in zip(columns, cells, strict=True)]
        width = inf if self.view.wide else self.width
        extents = list(map(extent_of, columns, cells, texts, [width] * len(columns)))
        widths = fit([replace(extent, rank=0) for extent in extents] if is_chosen else extents, width)
        if table.title:
            self.line(table.title, style="bold")
        self._draw([(columns[n], texts[n], size, extents[n].is_text) for n, size in widths.items()])
        if table.note:
            self.line(table.note, style="dim")
        left_out = [column.name for n, column in enumerate(columns) if n not in widths]
        if left_out:
            shows = "--wide shows all, --columns A,B,... some"
            self.line(f"left out at {self.width} characters: {', '.join(left_out)}; {shows}", style="dim")

    def _order(self, table: Table) -> tuple[list[int], bool]:
        """Return the indices of the columns to show, and whether the view names them."""
        found = {key_of_name(column.name): index for index, column in enumerate(table.columns)}
        named = [found[key] for key in map(key_of_name, self.view.columns) if key in found]
        if named:
            return list(dict.fromkeys(named)), True
        filled = [
            index
            for index, column in enumerate(table.columns)
            if self.view.wide or not says_nothing(row[index] for row in table.rows) or (column.rank == 0 and not table.rows)
        ]
        return filled, False

    def _draw(self, columns: Sequence[tuple[Column, list[str], int, bool]]) -> None:
        """Print columns, each with the texts of its cells, its width, and whether it is text."""
        drawn = RichTable(
            box=SIMPLE_HEAD if self.is_unicode else _ASCII_HEAD,
            show_edge=False,
            pad_edge=False,
            padding=(0, GAP - 1, 0, 0),
            header_style="bold",
        )
        for column, _, size, is_text in columns:
            is_right = not is_text if column.right is None else column.right
            head = Text(self._encodable(column.head))
            drawn.add_column(head, justify="right" if is_right else "left", width=size, overflow="fold")
        for row in zip(*(texts for _, texts, _, _ in columns), strict=True):
            drawn.add_row(*(Text(text, _ALARM if text == "NO" else "") for text in row))
        with self._console.capture() as captured:
            self._console.print(drawn)
        for line in captured.get().splitlines():
            self._console.file.write(line.rstrip() + "\n")

    def _encodable(self, text: str) -> str:
        """Return the text as the output writes it: characters that its encoding lacks as escapes, which take more room."""
        encoding = self._console.encoding
        return text.encode(encoding, "backslashreplace").decode(encoding)


def _width(console: Console) -> int:
    """Return the characters of a line: COLUMNS if it is set, else those of the terminal, else PIPED_WIDTH."""
    asked = os.environ.get("COLUMNS", "")
    if asked.isdecimal() and int(asked):
        return int(asked)
    return console.width if console.is_terminal else PIPED_WIDTH
