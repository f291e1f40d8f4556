"""Text from files and networks, made safe to print on a terminal and to open in a spreadsheet."""

from collections.abc import Mapping
from typing import Any

__all__ = ["csv_cell", "csv_row", "printable"]

_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "'")


def printable(text: str) -> str:
    """Return the text with every character that a terminal would obey (newline, escape, change of direction) as an escape."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def csv_cell(value: Any) -> Any:
    """Return the value of a CSV cell; text that a spreadsheet would take for a formula gets an apostrophe in front.

    So does text that begins with an apostrophe: removing one leading apostrophe restores every text. Numbers are unchanged.
    """
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value


def csv_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row of a CSV file with `csv_cell` applied to its values and to its columns."""
    return {csv_cell(name): csv_cell(value) for name, value in row.items()}
