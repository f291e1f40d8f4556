"""Collect everything a report shows from a sweep's folder."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from experiments.analysis.analysis_request import HEADLINES
from experiments.analysis.effects import VarianceDecomposition, effects
from experiments.analysis.overlay import Prediction, overlay, parse_formula
from experiments.analysis.paired_variants import compare_variants
from experiments.analysis.point_scenarios import PointScenarios
from experiments.analysis.quantile_bands import quantile_bands
from experiments.analysis.runs import Runs, open_runs
from experiments.analysis.summary import EXACT_UP_TO, GroupSummary, summarise
from experiments.report import figure_builders
from experiments.report.band_figures import band_figures
from experiments.report.figure_layout import FigureLayout, assign_axes, independent_axes
from experiments.report.figures import Figure
from experiments.report.labels import DisplayedAxis, displayed_axes
from experiments.report.provenance import FailedRun, failures, provenance, sources
from experiments.sweep.store.datasets import parts
from protocols.errors import UsageError

__all__ = ["ReportData", "collect"]

DEFAULT_METRICS = 6
"""Default number of metrics with figures."""
DETAILED = 2
"""Number of these metrics that also have heat maps, distributions and paired differences."""
TRADE_OFFS = (("overhead", "completion_time"), ("transmissions", "completion_time"), ("feedback", "completion_time"))
"""Pairs of metrics with a trade-off; the first pair present gets a Pareto front."""
MOST_PAIRS = 40
"""Largest number of paired differences in one figure."""


@dataclass(slots=True)
class ReportData:
    """Contents of a report: `groups` has all points by metric, `theory` the predictions of the formulas."""

    folder: Path
    title: str
    provenance: list[tuple[str, str]]
    sources: dict[str, str]
    axes: Mapping[str, DisplayedAxis]
    metrics: Sequence[str]
    groups: list[GroupSummary]
    effects: list[VarianceDecomposition]
    theory: list[Prediction]
    kinds: list[tuple[str, str, int]]
    failures: list[FailedRun]
    figures: list[Figure] = field(default_factory=list)

    @property
    def layout(self) -> FigureLayout | None:
        """Assignment of axes to x, colour and panel, by the variance they explain in all metrics; None without an axis."""
        shares: dict[str, float] = {}
        for part in (part for found in self.effects for part in found.axes):
            shares[part.axis] = shares.get(part.axis, 0.0) + part.share
        return assign_axes(self.independent_axes, shares, self.points)

    @property
    def points(self) -> list[Mapping[str, Any]]:
        """Values of the axes at each point."""
        return list({tuple(group.keys.items()): group.keys for group in self.groups}.values())

    @property
    def independent_axes(self) -> dict[str, DisplayedAxis]:
        """Axes whose values are not determined by another axis."""
        return independent_axes(self.axes, self.points)

    def command(self, options: str) -> str:
        """Return the command that prints the numbers of a figure."""
        return f"mcastlab analyse {shlex.quote(str(self.folder))} {options}"


def collect(
    session: Any, folder: Path, metrics: Sequence[str] = (), theory: Sequence[str] = (), version: str | None = None
) -> ReportData:
    """Query the store for everything a report shows.

    An empty `metrics` selects the main metrics that vary; an empty `theory` selects the formulas of the sweep file. Raises
    UsageError if no run succeeded.
    """
    points = PointScenarios(folder)
    runs = open_runs(session, folder, version)
    if runs.count <= EXACT_UP_TO:
        # A dozen queries follow.
        runs.frame.persist()
    if runs.failed == runs.count:
        raise UsageError(f"{folder}: no run succeeded; `mcastlab results {folder}` shows the reasons")
    chosen = runs.chosen_metrics(metrics) if metrics else tuple(name for name in HEADLINES if name in runs.metrics)
    groups = summarise(runs, runs.axes, chosen, percentiles=figure_builders.RANKS)
    if not metrics:
        chosen = _varying(chosen, groups)[:DEFAULT_METRICS]
    groups = [group for group in groups if group.metric in chosen]
    values = {name: list(dict.fromkeys(group.keys[name] for group in groups)) for name in runs.axes}
    axes = displayed_axes(points.sweep, runs.axes, values)
    expected = [row for text in theory or points.sweep.theory for row in overlay(runs, parse_formula(text), points, groups)]
    counted, failed = failures(folder, runs, points)
    data = ReportData(
        folder=folder,
        title=points.sweep.name,
        provenance=provenance(folder, points.sweep, runs, len({tuple(group.keys.values()) for group in groups})),
        sources=sources(folder),
        axes=axes,
        metrics=chosen,
        groups=groups,
        effects=effects(runs, chosen),
        theory=expected,
        kinds=counted,
        failures=failed,
    )
    data.figures = _figures(session, runs, data, points)
    return data


def _varying(metrics: Sequence[str], groups: Sequence[GroupSummary]) -> tuple[str, ...]:
    """Return the metrics whose mean differs between points, or all if none does."""
    means = {metric: {group.mean for group in groups if group.metric == metric} for metric in metrics}
    return tuple(metric for metric in metrics if len(means[metric]) > 1) or tuple(metrics)


def _figures(session: Any, runs: Runs, data: ReportData, points: PointScenarios) -> list[Figure]:
    found: list[Figure | None] = []
    layout = data.layout
    if layout is not None:
        for metric in data.metrics:
            found += _of_metric(data, layout, metric, sampled=points.sweep.sample is not None)
        found += [_trade_off(data, layout)]
        found += _compared(runs, data, layout)
    if data.effects:
        command = data.command(f"--effects --metric {','.join(data.metrics)}")
        found.append(figure_builders.importance(data.effects, data.axes, command))
    if any(row.residual is not None for row in data.theory):
        names = " ".join(f"--theory {name}" for name in dict.fromkeys(row.formula for row in data.theory))
        found.append(figure_builders.residuals(data.theory, data.command(names)))
    if parts(data.folder, "series"):
        by = [layout.colour.name] if layout and layout.colour else []
        made = quantile_bands(session, data.folder, runs, by)
        found += band_figures(made, data.axes, data.command(f"--series all --by {','.join(by)}"))
    return [figure for figure in found if figure is not None]


def _of_metric(data: ReportData, layout: FigureLayout, metric: str, sampled: bool) -> list[Figure | None]:
    groups = [group for group in data.groups if group.metric == metric]
    command = data.command(f"--metric {metric}")
    if sampled:
        return list(figure_builders.scatter(metric, groups, layout, command))
    theory = [row for row in data.theory if row.metric == metric]
    found: list[Figure | None] = [figure_builders.lines(metric, groups, layout, theory, command)]
    if metric in data.metrics[:DETAILED]:
        found += [figure_builders.heat(metric, groups, layout, command), figure_builders.boxes(metric, groups, layout, command)]
    return found


def _trade_off(data: ReportData, layout: FigureLayout) -> Figure | None:
    for first, second in TRADE_OFFS:
        if first in data.metrics and second in data.metrics:
            command = data.command(f"--metric {first},{second}")
            return figure_builders.pareto(first, second, data.groups, layout, command)
    return None


def _compared(runs: Runs, data: ReportData, layout: FigureLayout) -> list[Figure]:
    """Return figures of paired differences between the values of a categorical axis, such as protocols or cases."""
    axis = next((axis for axis in data.axes.values() if not axis.numeric), None)
    if axis is None:
        return []
    by = [layout.x.name] if layout.x is not axis and len(layout.x.values) * len(axis.values) <= MOST_PAIRS else []
    gaps = compare_variants(runs, axis.name, data.metrics[:DETAILED], by)
    found = []
    for metric in dict.fromkeys(gap.metric for gap in gaps):
        options = f"--compare {axis.name} --metric {metric}" + (f" --by {by[0]}" if by else "")
        mine = [gap for gap in gaps if gap.metric == metric]
        found.append(figure_builders.differences(metric, mine, data.axes, data.command(options)))
    return found
