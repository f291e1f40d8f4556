"""Figures as plain data, before anybody draws them: the page draws them with plotly, papers get them from matplotlib."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

__all__ = ["BandMark", "BarMark", "BoxMark", "DotMark", "Figure", "FigureAxis", "HeatMark", "IntervalMark", "LineMark", "Panel"]


@dataclass(frozen=True, slots=True)
class FigureAxis:
    """What an axis of a drawing shows. `categories`: words, in this order."""

    label: str
    log: bool = False
    categories: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class LineMark:
    """Values over x with intervals; a `theory` line has none and is dashed. `colour` numbers the palette."""

    label: str
    colour: int
    x: Sequence[Any]
    y: Sequence[float | None]
    low: Sequence[float | None] = ()
    high: Sequence[float | None] = ()
    theory: bool = False


@dataclass(frozen=True, slots=True)
class BandMark:
    """Quantiles over x: the median, half of all runs around it, and nine tenths."""

    label: str
    colour: int
    x: Sequence[float]
    at: Sequence[Sequence[float]]


@dataclass(frozen=True, slots=True)
class HeatMark:
    """A value for each pair of x and y."""

    x: Sequence[Any]
    y: Sequence[Any]
    z: Sequence[Sequence[float | None]]


@dataclass(frozen=True, slots=True)
class BoxMark:
    """Distributions over x: at each, the ranks 5, 25, 50, 75 and 95."""

    label: str
    colour: int
    x: Sequence[Any]
    at: Sequence[Sequence[float]]


@dataclass(frozen=True, slots=True)
class DotMark:
    """One point of the sweep among others; `front` when no other is better in both."""

    x: float
    y: float
    label: str
    colour: int = 0
    front: bool = False


@dataclass(frozen=True, slots=True)
class BarMark:
    """Parts of a whole, one after another."""

    label: str
    parts: Sequence[float]


@dataclass(frozen=True, slots=True)
class IntervalMark:
    """A difference with its interval."""

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
    """A figure: `kind` says what the marks of the panels are (lines bands heat boxes dots bars rows).

    `legend` names the colours of dots and the parts of bars; `command` makes the numbers in it.
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

    def plain(self) -> dict[str, Any]:
        """As plain values for JSON."""
        return asdict(self)
