"""Selectors of JMS 1.1 (3.8.1): conditions on header fields and properties, by which a subscriber chooses messages.

The folder stands alone: brokers and subscribers of any protocol use it. It needs the extra `messaging`.

A comparison of values that are not alike is false, one with null unknown, and a selector that is unknown selects nothing.
Numbers are those of Java: whole ones have 64 bits and wrap around, a division of them is cut towards zero, and with a fraction
they are fractions. Where JMS is silent: whole numbers divided by zero, and arithmetic with what is no number, are unknown, as
is IN of what is no text; texts and truth values have no order.
"""

from functools import lru_cache
from typing import Final

from protocols.selector.evaluate import Fields, compiled
from protocols.selector.parser import SelectorError, parse

__all__ = ["Fields", "Selector", "SelectorError", "selector"]

SHORT: Final = 256
"""Most characters of a selector that counts as short; each character takes some 80 bytes of memory."""
MOST_SHORT: Final = 1024
MOST_LONG: Final = 8
"""Numbers of short and of long selectors that are cached."""


class Selector:
    """A selector that is ready for use."""

    __slots__ = ("_evaluate", "tree")

    def __init__(self, text: str) -> None:
        self.tree = parse(text) if text.strip() else None
        """The syntax tree; None for the empty selector."""
        self._evaluate = None if self.tree is None else compiled(self.tree)

    def selects(self, fields: Fields) -> bool:
        """Return whether it is true of a message with these header fields and properties. The empty selector always is."""
        return self._evaluate is None or self._evaluate(fields) is True


_short: Final = lru_cache(maxsize=MOST_SHORT)(Selector)
_long: Final = lru_cache(maxsize=MOST_LONG)(Selector)


def selector(text: str) -> Selector:
    """Return the selector with this text; those used last are cached. SelectorError for a text that is none."""
    return _short(text) if len(text) <= SHORT else _long(text)
