"""Figures as plain data; the HTML page draws them with Plotly, and matplotlib draws them for papers."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

__all__ = [
    "HOLLOW",
    "BandMark",
    "BarMark",
    "BoxMark",
    "DotMark",
    "Figure",
    "FigureAxis",
    "HeatMark",
    "IntervalMark",
    "LineMark",
    "Panel",
    "has_hollow",
    "has_own_scales",
]

HOLLOW = "hollow: limited by a core of the machine"
"""Key to hollow points."""
APART = 4.0
"""Ratio of the largest values of two panels with lines above which each panel has a scale of its own."""


@dataclass(frozen=True, slots=True)
class FigureAxis:
    """An axis of a figure; `categories` are the ordered values of a categorical axis, `ticks` those of a logarithmic one.

    `whole`: its values are whole numbers, so that no tick is a fraction.
    """

    label: str
    log: bool = False
    categories: tuple[str, ...] | None = None
    ticks: tuple[float, ...] = ()
    whole: bool = False


@dataclass(frozen=True, slots=True)
class LineMark:
    """Values over x with confidence intervals; a `theory` line has none and is dashed. `colour` is an index of the palette.

    `hollow` says of each value whether a core of the machine limited it; empty: none.
    """

    label: str
    colour: int
    x: Sequence[Any]
    y: Sequence[float | None]
    low: Sequence[float | None] = ()
    high: Sequence[float | None] = ()
    theory: bool = False
    hollow: Sequence[bool] = ()


@dataclass(frozen=True, slots=True)
class BandMark:
    """Quantiles over x at the ranks 5, 25, 50, 75 and 95: median, interquartile range and central 90 %."""

    label: str
    colour: int
    x: Sequence[float]
    at: Sequence[Sequence[float]]


@dataclass(frozen=True, slots=True)
class HeatMark:
    """A value for each pair of x and y; None where there is none."""

    x: Sequence[Any]
    y: Sequence[Any]
    z: Sequence[Sequence[float | None]]


@dataclass(frozen=True, slots=True)
class BoxMark:
    """Box plots over x: at each x the percentiles 5, 25, 50, 75 and 95."""

    label: str
    colour: int
    x: Sequence[Any]
    at: Sequence[Sequence[float]]


@dataclass(frozen=True, slots=True)
class DotMark:
    """One point of the sweep; `front` marks Pareto-optimal points."""

    x: float
    y: float
    label: str
    colour: int = 0
    front: bool = False


@dataclass(frozen=True, slots=True)
class BarMark:
    """Parts of a stacked bar."""

    label: str
    parts: Sequence[float]


@dataclass(frozen=True, slots=True)
class IntervalMark:
    """A difference with its confidence interval; `clear` if the interval excludes 0."""

    label: str
    mean: float
    low: float | None
    high: float | None
    clear: bool


@dataclass(frozen=True, slots=True)
class Panel:
    """One of the drawings of a figure, with the same axes as the others."""

    title: str
    marks: Sequence[Any]


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure: `kind` names the marks of its panels (lines bands heat boxes dots bars rows).

    `legend` names the colours of dots and the parts of bars; `band` is a shaded range of y; `command` prints the numbers.
    """

    name: str
    kind: str
    title: str
    caption: str
    command: str
    x: FigureAxis
    y: FigureAxis
    panels: Sequence[Panel]
    legend: Sequence[str] = field(default=())
    band: tuple[float, float] | None = None

    def plain(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return asdict(self) | {"own_y": has_own_scales(self)}


def has_hollow(figure: Figure) -> bool:
    """Return whether a line of the figure has a hollow point."""
    return any(any(mark.hollow) for panel in figure.panels for mark in panel.marks if isinstance(mark, LineMark))


def has_own_scales(figure: Figure) -> bool:
    """Return whether the lines of one panel would be flat on the scale of another."""
    lines = [[mark for mark in panel.marks if isinstance(mark, LineMark)] for panel in figure.panels]
    tops = [max((y for mark in marks for y in mark.y if y is not None), default=0.0) for marks in lines]
    return not figure.y.log and min(tops, default=0.0) > 0 and max(tops) > APART * min(tops)
