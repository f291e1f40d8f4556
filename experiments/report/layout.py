"""Which axis of a sweep goes where in its figures: along x, by colour, by panel, and what the rest is held at."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from experiments.analysis.summary import Group
from experiments.report.names import Shown

__all__ = ["COLOURS", "PANELS", "Layout", "lay_out", "spread"]

COLOURS, PANELS = 8, 4
"""Lines and panels that a figure has at the most; of more values, some that are evenly spread are drawn."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Axes by their place; `held` are the other axes, each at its middle value."""

    x: Shown
    colour: Shown | None
    panel: Shown | None
    held: Mapping[str, Any]
    axes: Mapping[str, Shown]

    @property
    def caption(self) -> str:
        """What the other axes are held at; empty when there are none."""
        told = ", ".join(f"{self.axes[name].name} = {self.axes[name].text(value)}" for name, value in self.held.items())
        return f"At {told}." if told else ""

    def colours(self) -> list[Any]:
        """Values that have a line."""
        return spread(self.colour.values, COLOURS) if self.colour else [None]

    def panels(self) -> list[Any]:
        """Values that have a panel."""
        return spread(self.panel.values, PANELS) if self.panel else [None]

    def pick(self, groups: Sequence[Group], panel: Any, colour: Any) -> list[Group]:
        """The groups on one line, in the order of x."""
        wanted = dict(self.held)
        if self.colour:
            wanted[self.colour.name] = colour
        if self.panel:
            wanted[self.panel.name] = panel
        return [group for group in groups if all(group.keys[name] == value for name, value in wanted.items())]

    def colour_label(self, colour: Any) -> str:
        """A line's name."""
        return "" if self.colour is None else _named(self.colour, colour)

    def panel_label(self, panel: Any) -> str:
        """A panel's name."""
        return "" if self.panel is None else _named(self.panel, panel)


def _named(axis: Shown, value: Any) -> str:
    text = axis.text(value)
    return f"{axis.name.rpartition('.')[2]} {text}" if axis.numeric else text


def spread(values: Sequence[Any], most: int) -> list[Any]:
    """At most so many of the values, the first and the last among them."""
    if len(values) <= most:
        return list(values)
    return [values[round(place * (len(values) - 1) / (most - 1))] for place in range(most)]


def lay_out(axes: Mapping[str, Shown], shares: Mapping[str, float]) -> Layout | None:
    """Numbers go along x, the one with most values that matters most; words by colour; None without any axis.

    `shares` says how much of the variance each axis explains.
    """
    names = sorted(axes, key=lambda name: (not axes[name].numeric, len(axes[name].values) < 3, -shares.get(name, 0.0)))
    if not names:
        return None
    x = axes[names.pop(0)]
    names.sort(key=lambda name: (axes[name].numeric, -shares.get(name, 0.0)))
    colour = axes[names.pop(0)] if names else None
    names.sort(key=lambda name: -shares.get(name, 0.0))
    panel = axes[names.pop(0)] if names else None
    held = {name: axes[name].values[len(axes[name].values) // 2] for name in names}
    return Layout(x, colour, panel, held, axes)
