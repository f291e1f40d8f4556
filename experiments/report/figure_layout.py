"""Assign the axes of a sweep to x, colour and panel of its figures, and fix the values of the others."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from experiments.analysis.summary import GroupSummary
from experiments.report.labels import DisplayedAxis
from experiments.sweep.spec.sweep_file import BACKEND

__all__ = ["COLOURS", "PANELS", "FigureLayout", "assign_axes", "independent_axes", "spread"]

COLOURS, PANELS = 8, 4
"""Largest number of lines and panels of a figure; of more values an evenly spaced subset is drawn."""


@dataclass(frozen=True, slots=True)
class FigureLayout:
    """Axes by role; `fixed` fixes each other axis at one value."""

    x: DisplayedAxis
    colour: DisplayedAxis | None
    panel: DisplayedAxis | None
    fixed: Mapping[str, Any]
    axes: Mapping[str, DisplayedAxis]

    @property
    def caption(self) -> str:
        """Text that states the fixed values; empty if there are none."""
        fixed = ", ".join(f"{self.axes[name].name} = {self.axes[name].text(value)}" for name, value in self.fixed.items())
        return f"At {fixed}." if fixed else ""

    def colours(self) -> list[Any]:
        """Return the values that get a line each."""
        return spread(self.colour.values, COLOURS) if self.colour else [None]

    def panels(self) -> list[Any]:
        """Return the values that get a panel each."""
        return spread(self.panel.values, PANELS) if self.panel else [None]

    def pick(self, groups: Sequence[GroupSummary], panel: Any, colour: Any) -> list[GroupSummary]:
        """Return the groups on one line, in the order of x."""
        wanted = dict(self.fixed)
        if self.colour:
            wanted[self.colour.name] = colour
        if self.panel:
            wanted[self.panel.name] = panel
        return [group for group in groups if all(group.keys[name] == value for name, value in wanted.items())]

    def colour_label(self, colour: Any) -> str:
        """Return the label of a line."""
        return "" if self.colour is None else self.colour.named(colour)

    def panel_label(self, panel: Any) -> str:
        """Return the title of a panel."""
        return "" if self.panel is None else self.panel.named(panel)


def spread(values: Sequence[Any], most: int) -> list[Any]:
    """Return at most `most` evenly spaced values, including the first and the last."""
    if len(values) <= most:
        return list(values)
    return [values[round(place * (len(values) - 1) / (most - 1))] for place in range(most)]


def independent_axes(axes: Mapping[str, DisplayedAxis], points: Sequence[Mapping[str, Any]]) -> dict[str, DisplayedAxis]:
    """Return the axes without those determined by another axis at every point, as zipped axes are."""
    left = dict(axes)
    for name in reversed([name for name, axis in axes.items() if axis.numeric]):
        if any(_follows(name, other, points) for other in left if other != name):
            del left[name]
    return left


def _follows(name: str, other: str, points: Sequence[Mapping[str, Any]]) -> bool:
    pairs = {(point[other], point[name]) for point in points}
    # If every point has a distinct value, as in a sample, no dependency can be inferred.
    return len({value for value, _ in pairs}) == len(pairs) < len(points)


def assign_axes(
    axes: Mapping[str, DisplayedAxis],
    shares: Mapping[str, float],
    points: Sequence[Mapping[str, Any]],
    compared: str | None = None,
) -> FigureLayout | None:
    """Assign numeric axes with many values to x, categorical axes to colour, the backend to the panel; None without any axis.

    `shares` maps each axis to the variance it explains, which breaks ties. Remaining axes are fixed at the values most `points`
    have. The axis `compared` gets the colours, if there is another for x.
    """
    names = sorted(
        axes, key=lambda name: (name == compared, not axes[name].numeric, len(axes[name].values) < 3, -shares.get(name, 0.0))
    )
    if not names:
        return None
    x = axes[names.pop(0)]
    names.sort(key=lambda name: (name != compared, axes[name].numeric, name == BACKEND, -shares.get(name, 0.0)))
    colour = axes[names.pop(0)] if names else None
    names.sort(key=lambda name: (name != BACKEND, -shares.get(name, 0.0)))
    panel = axes[names.pop(0)] if names else None
    return FigureLayout(x, colour, panel, _fixed([axes[name] for name in names], points), axes)


def _fixed(rest: Sequence[DisplayedAxis], points: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the most frequent combination of values; of several, the one nearest to the middle values."""
    found = Counter(tuple(point[axis.name] for axis in rest) for point in points)
    middles = [len(axis.values) // 2 for axis in rest]

    def worth(values: tuple[Any, ...]) -> tuple[int, int]:
        places = [list(axis.values).index(value) for axis, value in zip(rest, values, strict=True)]
        return found[values], -sum(abs(place - middle) for place, middle in zip(places, middles, strict=True))

    best: tuple[Any, ...] = max(found, key=worth, default=())
    return {axis.name: value for axis, value in zip(rest, best, strict=True)}
