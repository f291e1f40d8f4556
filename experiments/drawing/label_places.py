"""Find a free place beside its link for each label of a drawing."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import hypot

from experiments.drawing.boxes import Box, Point, text_box

__all__ = ["LinkLabel", "place_labels"]

_GAP = 2.0
"""Pixels between two texts."""


@dataclass(frozen=True, slots=True)
class LinkLabel:
    """Text beside a link from `begin` to `end`: on its right, at a distance from its middle, or with `both` on either side."""

    text: str
    begin: Point
    end: Point
    distance: float
    both: bool


def place_labels(labels: Sequence[LinkLabel], size: float, taken: Iterable[Box], along: Sequence[float]) -> list[Point | None]:
    """Return the middle of each label, None where there is no free place.

    No label overlaps another or a box of `taken`; of the free places that with the fewest links across it is chosen, and
    of these the first of `along`, which are fractions of the link's length.
    """
    full = list(taken)
    lines = [(label.begin, label.end) for label in labels]
    found: list[Point | None] = []
    for label in labels:
        best: tuple[int, Point, Box] | None = None
        for point in _candidates(label, size, along):
            box = text_box(*point, label.text, size, "middle")
            if any(box.overlaps(other, _GAP) for other in full):
                continue
            crossed = sum(box.crossed_by(*line) for line in lines)
            if best is None or crossed < best[0]:
                best = crossed, point, box
            if not crossed:
                break
        found.append(None if best is None else best[1])
        full += [] if best is None else [best[2]]
    return found


def _candidates(label: LinkLabel, size: float, along: Sequence[float]) -> Iterable[Point]:
    """Yield middles of the text that lie beside the line."""
    (ax, ay), (bx, by) = label.begin, label.end
    length = hypot(bx - ax, by - ay) or 1.0
    across, down = -(by - ay) / length, (bx - ax) / length
    box = text_box(0.0, 0.0, label.text, size, "middle")
    # The distance at which the box no longer meets the line.
    far = label.distance + box.right * abs(across) + box.bottom * abs(down)
    for share in along:
        for side in (1, -1) if label.both else (1,):
            yield ax + (bx - ax) * share + side * far * across, ay + (by - ay) * share + side * far * down
