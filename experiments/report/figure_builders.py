"""Build figures from group summaries: lines with intervals and theory, heat maps, distributions, Pareto fronts, effects."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from experiments.analysis.effects import VarianceDecomposition
from experiments.analysis.overlay import MARGIN, Prediction
from experiments.analysis.summary import GroupSummary
from experiments.report.figure_layout import FigureLayout
from experiments.report.figures import BarMark, BoxMark, DotMark, Figure, FigureAxis, HeatMark, LineMark, Panel
from experiments.report.labels import HIGHER_IS_BETTER, DisplayedAxis, axis_name, help_of, metric_label, metric_name

__all__ = [
    "boxes",
    "heat",
    "importance",
    "lines",
    "pareto",
    "residuals",
    "scatter",
    "theory_label",
]

LOG_RATIO = 100.0
"""Ratio of a metric's largest to its smallest mean above which its axis is logarithmic."""
TICKS = 12
"""Values of a logarithmic axis up to which each of them has a tick."""
RANKS = (5, 25, 50, 75, 95)
"""Percentiles of the box plots."""


def _axis(shown: DisplayedAxis) -> FigureAxis:
    if shown.numeric:
        values = tuple(map(shown.value, shown.values))
        ticks = values if shown.log and len(values) <= TICKS else ()
        return FigureAxis(shown.label, shown.log, ticks=ticks, whole=all(isinstance(value, int) for value in values))
    return _words(shown)


def _words(shown: DisplayedAxis) -> FigureAxis:
    """Return a categorical axis with equally spaced values."""
    return FigureAxis(shown.label, categories=tuple(map(shown.plain, shown.values)))


def _metric_axis(metric: str, groups: Sequence[GroupSummary]) -> FigureAxis:
    return FigureAxis(metric_label(metric), log=_is_log([group.mean for group in groups]))


def _is_log(values: Sequence[float]) -> bool:
    """Return whether values are positive and spread so far that their axis is logarithmic."""
    return bool(values) and min(values) > 0 and max(values) >= LOG_RATIO * min(values)


def _caption(metric: str, layout: FigureLayout, *more: str) -> str:
    about = help_of(metric)
    return " ".join(filter(None, (about[:1].upper() + about[1:] + "." if about else "", *more, layout.caption)))


def lines(
    metric: str,
    groups: Sequence[GroupSummary],
    layout: FigureLayout,
    theory: Sequence[Prediction],
    command: str,
    bound: Collection[tuple[Any, ...]] = (),
) -> Figure:
    """Plot means over x with their intervals, and theory as dashed lines of the same colour; points in `bound` are hollow."""
    panels = []
    for panel in layout.panels():
        marks: list[LineMark] = []
        for number, colour in enumerate(layout.colours()):
            picked = layout.pick(groups, panel, colour)
            if picked:
                marks.append(_line(picked, layout, number, colour, bound))
                marks += _theory(picked, layout, number, colour, theory)
        panels.append(Panel(layout.panel_label(panel), marks))
    formulas = ", ".join(dict.fromkeys(row.formula for row in theory))
    key = "Lines: means; shaded: 95 % confidence intervals."
    hollow = "Hollow: a program in Mininet used up a core of this machine, so that the value is the machine's." if bound else ""
    caption = _caption(metric, layout, key, f"Dashed: theory ({formulas})." if formulas else "", hollow)
    y = _metric_axis(metric, groups)
    title = f"{metric_name(metric)} over {axis_name(layout.x.name)}"
    return Figure(f"lines-{metric}", "lines", title, caption, command, _axis(layout.x), y, panels)


def _line(
    picked: Sequence[GroupSummary], layout: FigureLayout, number: int, colour: Any, bound: Collection[tuple[Any, ...]]
) -> LineMark:
    x = [layout.x.value(group.keys[layout.x.name]) for group in picked]
    means = [group.mean for group in picked]
    lows, highs = [group.low for group in picked], [group.high for group in picked]
    hollow = [tuple(group.keys.values()) in bound for group in picked] if bound else []
    return LineMark(layout.colour_label(colour), number, x, means, lows, highs, hollow=hollow)


def _theory(
    picked: Sequence[GroupSummary], layout: FigureLayout, number: int, colour: Any, theory: Sequence[Prediction]
) -> list[LineMark]:
    found = []
    for formula in dict.fromkeys(row.formula for row in theory):
        known = {tuple(row.keys.items()): row.expected for row in theory if row.formula == formula}
        at = [(group, known.get(tuple(group.keys.items()))) for group in picked]
        line = [(layout.x.value(group.keys[layout.x.name]), value) for group, value in at if value is not None]
        if line:
            label = theory_label(layout.colour_label(colour), formula)
            found.append(LineMark(label, number, [x for x, _ in line], [y for _, y in line], theory=True))
    return found


def theory_label(line: str, formula: str) -> str:
    """Return the label of a theory line that belongs to a measured `line`."""
    return ", ".join(filter(None, (line, f"theory {formula}")))


def heat(metric: str, groups: Sequence[GroupSummary], layout: FigureLayout, command: str) -> Figure | None:
    """Plot means over two numeric axes; None if there are not two."""
    others = [axis for axis in layout.axes.values() if axis.numeric and axis is not layout.x]
    if not layout.x.numeric or not others:
        return None
    y = max(others, key=lambda axis: len(axis.values))
    # The axis along y cannot also be the panel; the colour axis replaces it.
    rest = [axis for axis in (layout.colour, layout.panel) if axis is not None and axis is not y]
    fixed = {
        name: axis.values[len(axis.values) // 2] for name, axis in layout.axes.items() if axis not in (layout.x, y, *rest[:1])
    }
    turned = FigureLayout(layout.x, y, rest[0] if rest else None, fixed, layout.axes)
    panels = [Panel(turned.panel_label(panel), [_grid(turned, groups, panel)]) for panel in turned.panels()]
    caption = _caption(metric, turned, "Colour: mean of the runs.")
    title = f"{metric_name(metric)} over {axis_name(layout.x.name)} and {axis_name(y.name)}"
    return Figure(
        f"heat-{metric}", "heat", title, caption, command, _words(layout.x), _words(y), panels, (metric_label(metric),)
    )


def _grid(layout: FigureLayout, groups: Sequence[GroupSummary], panel: Any) -> HeatMark:
    assert layout.colour is not None, "a heat map has two axes"
    x, y = layout.x, layout.colour
    rows = []
    for value in y.values:
        means = {group.keys[x.name]: group.mean for group in layout.pick(groups, panel, value)}
        rows.append([means.get(place) for place in x.values])
    return HeatMark([x.plain(value) for value in x.values], [y.plain(value) for value in y.values], rows)


def boxes(metric: str, groups: Sequence[GroupSummary], layout: FigureLayout, command: str) -> Figure:
    """Plot the distribution of runs: boxes from the 25th to the 75th percentile, whiskers from the 5th to the 95th."""
    panels = []
    for panel in layout.panels():
        marks = []
        for number, colour in enumerate(layout.colours()):
            picked = layout.pick(groups, panel, colour)
            x = [layout.x.plain(group.keys[layout.x.name]) for group in picked]
            at = [[group.percentiles[rank] for rank in RANKS] for group in picked]
            if picked:
                marks.append(BoxMark(layout.colour_label(colour), number, x, at))
        panels.append(Panel(layout.panel_label(panel), marks))
    key = "Boxes: median and interquartile range of the runs; whiskers: 5th to 95th percentile."
    title = f"distribution of {metric_name(metric)} over runs"
    caption = _caption(metric, layout, key)
    return Figure(f"spread-{metric}", "boxes", title, caption, command, _words(layout.x), _metric_axis(metric, groups), panels)


def scatter(metric: str, groups: Sequence[GroupSummary], layout: FigureLayout, command: str) -> Iterator[Figure]:
    """Yield a scatter plot of a sampled sweep for each numeric axis, in order of the variance explained."""
    words = layout.colour if layout.colour and not layout.colour.numeric else None
    legend = tuple(layout.colour_label(value) for value in words.values) if words else ()
    numeric = [axis for axis in (layout.x, layout.colour, layout.panel) if axis is not None and axis.numeric]
    for axis in numeric:
        dots = [
            DotMark(
                axis.value(group.keys[axis.name]), group.mean, "", words.values.index(group.keys[words.name]) if words else 0
            )
            for group in groups
        ]
        about = help_of(metric)
        caption = f"{about[:1].upper()}{about[1:]}. Every dot is the mean of a point; the other axes vary as well."
        title = f"{metric_name(metric)} over {axis_name(axis.name)}"
        name = f"scatter-{metric}-{axis.name.rpartition('.')[2]}"
        y = _metric_axis(metric, groups)
        yield Figure(name, "dots", title, caption, command, _axis(axis), y, [Panel("", dots)], legend)


def pareto(first: str, second: str, groups: Sequence[GroupSummary], layout: FigureLayout, command: str) -> Figure | None:
    """Plot two metrics of every point against each other with their Pareto front; None with fewer than three points."""
    values: dict[tuple[Any, ...], dict[str, float]] = {}
    keys: dict[tuple[Any, ...], dict[str, Any]] = {}
    for group in groups:
        place = tuple(group.keys.items())
        keys[place] = group.keys
        values.setdefault(place, {})[group.metric] = group.mean
    both = [place for place, means in values.items() if first in means and second in means]
    if len(both) < 3:
        return None
    front = _front([(_cost(first, values[place][first]), _cost(second, values[place][second])) for place in both])
    words = layout.colour if layout.colour and len(layout.colour.values) <= 8 else None
    dots = []
    for place, best in zip(both, front, strict=True):
        label = ", ".join(f"{axis_name(axis.name)} {axis.text(keys[place][axis.name])}" for axis in layout.axes.values())
        colour = words.values.index(keys[place][words.name]) if words else 0
        dots.append(DotMark(values[place][first], values[place][second], label, colour, best))
    legend = tuple(layout.colour_label(value) for value in words.values) if words else ()
    wanted = " and ".join(f"{'more' if name in HIGHER_IS_BETTER else 'less'} {metric_name(name)}" for name in (first, second))
    caption = f"Every point of the sweep; joined: the Pareto front (points not dominated by another). Better is {wanted}."
    title = f"{metric_name(first)} against {metric_name(second)}"
    axes = [FigureAxis(metric_label(name), log=_is_log([values[place][name] for place in both])) for name in (first, second)]
    return Figure("pareto", "dots", title, caption, command, axes[0], axes[1], [Panel("", dots)], legend)


def _cost(metric: str, value: float) -> float:
    return -value if metric in HIGHER_IS_BETTER else value


def _front(points: Sequence[tuple[float, float]]) -> list[bool]:
    """Return which points are Pareto-optimal: in order of the first cost, those with a new minimum of the second."""
    found, lowest = [False] * len(points), float("inf")
    for place in sorted(range(len(points)), key=lambda place: points[place]):
        if points[place][1] < lowest:
            found[place], lowest = True, points[place][1]
    return found


def importance(found: Sequence[VarianceDecomposition], axes: Mapping[str, DisplayedAxis], command: str) -> Figure:
    """Plot the variance decomposition of each metric."""
    known = {part.axes for effect in found for part in effect.axes}
    order = list(axes)
    groups = sorted((group for group in known if group[0] in axes), key=lambda group: order.index(group[0]))
    names = [*groups, ("interaction",), ("chance",)]
    bars = []
    for effect in found:
        shares = {part.axes: part.share for part in effect.axes}
        shares |= {("interaction",): effect.interaction or 0.0, ("chance",): effect.chance or 0.0}
        bars.append(BarMark(metric_name(effect.metric), [max(0.0, shares.get(name, 0.0)) for name in names]))
    legend = tuple(", ".join(map(axis_name, group)) for group in names)
    caption = (
        "Fraction of a metric's variance explained by each axis (main effect), by interaction of axes, and by chance: "
        "differences between seeds."
    )
    axis = FigureAxis("share of variance [%]")
    return Figure(
        "effects",
        "bars",
        "variance explained by each parameter",
        caption,
        command,
        axis,
        FigureAxis(""),
        [Panel("", bars)],
        legend,
    )


def residuals(rows: Sequence[Prediction], command: str) -> Figure:
    """Plot how far measured means are from theory, in per cent of it, over what theory expects."""
    formulas = list(dict.fromkeys(row.formula for row in rows))
    dots = [
        DotMark(
            row.expected,
            100 * (row.mean / row.expected - 1),
            f"{', '.join(f'{key} {value}' for key, value in row.keys.items())}: holds: {row.holds}",
            formulas.index(row.formula),
        )
        for row in rows
        if row.expected
    ]
    found = Counter(row.holds for row in rows)
    caption = (
        f"Shaded: {MARGIN:.0%} around theory. By the 90 % intervals of the means, of {len(rows)} points theory holds at "
        f"{found['yes']} and does not at {found['no']}; at {found['not shown']} the runs are too few to show either."
    )
    x, y = _expected_axis(rows, dots), FigureAxis("measured - theory [% of theory]")
    legend, margin = tuple(theory_label("", name) for name in formulas), (-100 * MARGIN, 100 * MARGIN)
    return Figure("theory", "dots", "distance from theory", caption, command, x, y, [Panel("", dots)], legend, margin)


def _expected_axis(rows: Sequence[Prediction], dots: Sequence[DotMark]) -> FigureAxis:
    """Return the axis of the expected values, with the metric and its unit if there is one."""
    values, metrics = [dot.x for dot in dots], list(dict.fromkeys(row.metric for row in rows))
    label = metric_label(metrics[0]) if len(metrics) == 1 else "each metric in its unit"
    return FigureAxis(f"expected by theory: {label}", log=_is_log(values))
