"""Patterns of LIKE."""

import re
from collections.abc import Callable

__all__ = ["like"]


def like(pattern: str, escape: str) -> Callable[[str], bool]:
    """Return the test whether a text fits a pattern; its time grows with the product of the two lengths at the most.

    `escape` is a character or empty. ValueError when the pattern ends with it.
    """
    first, *rest = _pieces(pattern, escape)
    if not rest:
        return lambda text: first.fullmatch(text) is not None
    *middle, last = rest
    length = _length(last)

    def fits(text: str) -> bool:
        found = first.match(text)
        if found is None:
            return False
        place, end = found.end(), len(text) - length
        for piece in middle:
            # The leftmost place leaves most of the text to the pieces that follow.
            found = piece.search(text, place)
            if found is None:
                return False
            place = found.end()
        return place <= end and last.fullmatch(text, end) is not None

    return fits


def _pieces(pattern: str, escape: str) -> list["re.Pattern[str]"]:
    """Return what lies between the `%` of a pattern; each fits texts of one length."""
    pieces, piece = [], ""
    characters = iter(pattern)
    for character in characters:
        if character == escape:
            escaped = next(characters, None)
            if escaped is None:
                raise ValueError(f"the pattern ends with its escape character {escape!r}")
            piece += re.escape(escaped)
        elif character == "%":
            pieces.append(piece)
            piece = ""
        else:
            piece += "." if character == "_" else re.escape(character)
    return [re.compile(text, re.DOTALL) for text in (*pieces, piece)]


def _length(piece: "re.Pattern[str]") -> int:
    """Return how many characters a piece fits."""
    return len(re.sub(r"\\(.)", r"\1", piece.pattern, flags=re.DOTALL))
