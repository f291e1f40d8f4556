"""Rectangles of a drawing: the estimated extent of text, and tests for overlaps."""

from typing import NamedTuple

__all__ = ["Box", "Point", "text_box", "text_width"]

Point = tuple[float, float]
_NARROW, _WIDE = frozenset("ijlftrI.,:;'|!()[]/- "), frozenset("mwMW%@")
_BOLD = 1.13
"""Ratio of the widths of bold and regular text."""
_CJK = 0x2E80
"""First code point of the scripts with square characters."""


def text_width(text: str, size: float, bold: bool = False) -> float:
    """Estimate the width of text in pixels, from above: by the widths of DejaVu Sans, a wide system font."""
    return sum(map(_share, text)) * size * (_BOLD if bold else 1.0)


def _share(letter: str) -> float:
    """Return an upper bound of a character's width as a fraction of the font size."""
    if letter in _WIDE or ord(letter) >= _CJK:
        return 1.02
    return 0.42 if letter in _NARROW else 0.78 if letter.isupper() else 0.64


class Box(NamedTuple):
    """A rectangle with sides in parallel to the axes; `top` is above `bottom`, so it has the smaller value."""

    left: float
    top: float
    right: float
    bottom: float

    def moved(self, x: float, y: float) -> "Box":
        """Return the box moved by (x, y)."""
        return Box(self.left + x, self.top + y, self.right + x, self.bottom + y)

    def overlaps(self, other: "Box", gap: float = 0.0) -> bool:
        """Return whether the boxes are less than `gap` apart."""
        across = self.left < other.right + gap and other.left < self.right + gap
        return across and self.top < other.bottom + gap and other.top < self.bottom + gap

    def crossed_by(self, begin: Point, end: Point) -> bool:
        """Return whether a straight line from `begin` to `end` meets the box."""
        first, last = 0.0, 1.0
        for low, high, at, to in ((self.left, self.right, begin[0], end[0]), (self.top, self.bottom, begin[1], end[1])):
            if at == to:
                if not low <= at <= high:
                    return False
                continue
            enter, leave = sorted(((low - at) / (to - at), (high - at) / (to - at)))
            first, last = max(first, enter), min(last, leave)
        return first <= last


def text_box(x: float, y: float, text: str, size: float, anchor: str = "start", bold: bool = False) -> Box:
    """Return the box of text that `Drawing.text_at` draws with the same arguments."""
    width = text_width(text, size, bold)
    left = x - {"start": 0.0, "middle": width / 2, "end": width}[anchor]
    return Box(left, y - size * 0.62, left + width, y + size * 0.62)
