"""Suggest the known word nearest to one that is not known."""

from collections.abc import Iterable
from difflib import get_close_matches

__all__ = ["did_you_mean", "one_of"]

_LONGEST = 100


def did_you_mean(word: object, known: Iterable[str]) -> str:
    """Return "; did you mean 'x'?" to end an error message with, or nothing if no known word is near."""
    if not isinstance(word, str) or len(word) > _LONGEST:
        return ""
    near = get_close_matches(word, list(known), 1, 0.6)
    return f"; did you mean {near[0]!r}?" if near else ""


def one_of(word: object, known: Iterable[str]) -> str:
    """Return "one of a, b, c" with the nearest word, as what is allowed in place of `word`; "there is none" without names."""
    names = list(known)
    return f"one of {', '.join(names)}{did_you_mean(word, names)}" if names else "there is none"
