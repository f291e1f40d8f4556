"""Which messages of a topic a subscription selects."""

import re
from collections.abc import Callable, Mapping
from typing import TypeAlias

from protocols.broker.content import is_typed, selector_fields
from protocols.broker.messages import Content
from protocols.errors import UnsupportedError
from protocols.messaging import Value

__all__ = ["Selection", "selection"]

LONGEST_INTEGER = 19
"""Characters up to which a number is taken for an integer, of 64 bits at the most; a longer one may exceed any float."""
_NUMBER = re.compile(r"\s*[+-]?(?:NaN|Infinity|[0-9.][0-9.eE+-]*)\s*", re.ASCII)
"""Matches texts that may be numbers of Java. Python reads others as numbers, too, such as 1_000 and inf."""
_Test: TypeAlias = Callable[[Mapping[str, Value]], bool]


class Selection:
    """A selector of a client of STOMP. ConfigError for a text that is none, UnsupportedError without the parser.

    Of a message of another program all properties are texts, as STOMP has no types. Those that the selector compares with
    numbers are taken for the numbers that they spell, as ActiveMQ takes them.
    """

    __slots__ = ("_numbers", "_selects")

    def __init__(self, text: str) -> None:
        # Selectors need a parser, which is an extra; a broker without selectors needs none.
        try:
            from protocols.broker.conversion import compared_with_numbers
            from protocols.selector import selector
        except ImportError as error:
            raise UnsupportedError("selectors need the package lark: pip install 'mcastlab[messaging]'") from error
        found = selector(text)
        self._selects: _Test = found.selects
        self._numbers = compared_with_numbers(found.tree)

    def selects(self, content: Content) -> bool:
        """Return whether a message is selected."""
        fields = selector_fields(content)
        if self._numbers and not is_typed(content):
            fields = {name: _number(value) if name in self._numbers else value for name, value in fields.items()}
        return self._selects(fields)


def selection(text: str) -> Selection | None:
    """Return the selection of a selector; None for the empty one, which selects everything. ConfigError for what is none."""
    return Selection(text) if text.strip() else None


def _number(value: Value) -> Value:
    """Return the number that a text stands for, or the text if it stands for none."""
    if not isinstance(value, str) or not _NUMBER.fullmatch(value):
        return value
    for kind in (int, float) if len(value) <= LONGEST_INTEGER else (float,):
        try:
            return kind(value)
        except ValueError:
            continue
    return value
