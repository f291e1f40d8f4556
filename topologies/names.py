"""Names in messages: the first of them, since there may be a million."""

from collections.abc import Iterable
from itertools import islice

__all__ = ["first_names"]


def first_names(names: Iterable[object], most: int = 8) -> str:
    """Return the first `most` names, separated by commas, and an ellipsis if there are more."""
    listed = [str(name) for name in islice(names, most + 1)]
    return ", ".join(listed[:most]) + (", ..." if len(listed) > most else "")
