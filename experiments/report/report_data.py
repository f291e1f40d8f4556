"""Collect everything a report shows from a sweep's folder, or from two."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from experiments.analysis.analysis_request import HEADLINES
from experiments.analysis.effects import VarianceDecomposition, effects
from experiments.analysis.formulas import parse_formula
from experiments.analysis.overlay import Prediction, overlay
from experiments.analysis.paired_variants import compare_variants
from experiments.analysis.point_scenarios import PointScenarios
from experiments.analysis.quantile_bands import quantile_bands
from experiments.analysis.runs import Runs, open_runs
from experiments.analysis.summary import EXACT_UP_TO, GroupSummary, summarise
from experiments.report import figure_builders
from experiments.report.band_figures import band_figures
from experiments.report.difference_figures import differences, sweep_differences
from experiments.report.figure_layout import FigureLayout, assign_axes, independent_axes
from experiments.report.figures import Figure
from experiments.report.labels import DisplayedAxis, displayed_axes
from experiments.report.provenance import FailedRun, differing_sources, failures, provenance, side_by_side, sources
from experiments.report.sweep_pair import SWEEP, PairedSweeps, open_pair, paired_differences
from experiments.sweep.store.parts import parts
from protocols.errors import UsageError

__all__ = ["ReportData", "collect", "collect_pair"]

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
    """Contents of a report: `groups` has all points by metric, `theory` the formulas' predictions; `pair` of two sweeps."""

    folders: tuple[Path, ...]
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
    bound: frozenset[tuple[Any, ...]] = frozenset()
    """Points at which a core of the machine limited a run; they are drawn hollow."""
    figures: list[Figure] = field(default_factory=list)
    pair: PairedSweeps | None = None

    @property
    def layout(self) -> FigureLayout | None:
        """Assignment of axes to x, colour and panel, by the variance they explain in all metrics; None without an axis."""
        shares: dict[str, float] = {}
        for name, share in ((name, part.share) for found in self.effects for part in found.axes for name in part.axes):
            shares[name] = shares.get(name, 0.0) + share
        return assign_axes(self.independent_axes, shares, self.points, SWEEP if self.pair else None)

    @property
    def points(self) -> list[Mapping[str, Any]]:
        """Values of the axes at each point."""
        return list({tuple(group.keys.items()): group.keys for group in self.groups}.values())

    @property
    def independent_axes(self) -> dict[str, DisplayedAxis]:
        """Axes whose values are not determined by another axis."""
        return independent_axes(self.axes, self.points)

    @property
    def written_folders(self) -> str:
        """The folders as a command line has them."""
        return " ".join(shlex.quote(str(folder)) for folder in self.folders)

    def command(self, *words: str) -> str:
        """Return the command that prints the numbers of a figure, from the words after the folder."""
        return shlex.join(["mcastlab", "analyse", str(self.folders[0]), *words])


def collect(
    session: Any, folder: Path, metrics: Sequence[str], theory: Sequence[str] = (), version: str | None = None
) -> ReportData:
    """Collect everything the report shows.

    An empty `metrics` selects the main metrics that vary; an empty `theory` selects the formulas of the sweep file that apply.
    Raises UsageError if no run succeeded.
    """
    points = PointScenarios(folder)
    runs = open_runs(session, folder, version)
    if runs.count <= EXACT_UP_TO:
        # A dozen queries follow.
        runs.frame.persist()
    runs.check_some_succeeded(folder)
    chosen, groups = _summaries(runs, metrics or _named(points, runs))
    expected, absent = _theory(runs, theory, points, groups)
    counted, failed = failures(folder, runs, points)
    data = ReportData(
        folders=(folder,),
        title=points.sweep.name,
        provenance=[*provenance(folder, points.sweep, runs, len({tuple(group.keys.values()) for group in groups})), *absent],
        sources=sources(folder),
        axes=_axes(runs, groups, points),
        metrics=chosen,
        groups=groups,
        effects=effects(runs, chosen),
        theory=expected,
        kinds=counted,
        failures=failed,
        bound=runs.bound_points(),
    )
    data.figures = _figures(session, runs, data, points)
    return data


def collect_pair(
    session: Any, folders: tuple[Path, Path], metrics: Sequence[str], versions: tuple[str | None, str | None]
) -> ReportData:
    """Collect the report of two sweeps at the points they share: everything has one more axis, the sweep.

    Formulas are left out, since each sweep may have its own. Raises UsageError if the sweeps share no runs.
    """
    points = [PointScenarios(folder) for folder in folders]
    pair = open_pair(session, folders, versions)
    if pair.runs.count <= EXACT_UP_TO:
        pair.runs.frame.persist()
    chosen, groups = _summaries(pair.runs, metrics or _named(points[0], pair.runs), always=True)
    paired_differences(pair, chosen)
    found = [
        (provenance(folder, at.sweep, side, len(groups)), sources(folder), *failures(folder, side, at))
        for folder, at, side in zip(folders, points, pair.sides, strict=True)
    ]
    data = ReportData(
        folders=folders,
        title=" and ".join(dict.fromkeys(at.sweep.name for at in points)) + ": two sweeps compared",
        provenance=side_by_side(found[0][0], found[1][0]),
        sources=differing_sources(found[0][1], found[1][1]),
        axes=_axes(pair.runs, groups, points[0]),
        metrics=chosen,
        groups=groups,
        effects=effects(pair.runs, chosen),
        theory=[],
        kinds=[kind for _, _, kinds, _ in found for kind in kinds],
        failures=[row for *_, failed in found for row in failed],
        bound=pair.runs.bound_points(),
        pair=pair,
    )
    for metric in chosen:
        data.figures += _compared_sweeps(data, pair, metric)
    return data


def _compared_sweeps(data: ReportData, pair: PairedSweeps, metric: str) -> list[Figure]:
    """Return the differences of a metric at each point, and its lines with a colour for each sweep."""
    layout, found = data.layout, sweep_differences(metric, pair, data.axes)
    figures = [] if found is None else [found]
    if layout is not None and layout.x.name != SWEEP:
        mine = [group for group in data.groups if group.metric == metric]
        figures.append(figure_builders.lines(metric, mine, layout, [], "", data.bound))
    return figures


def _theory(
    runs: Runs, asked: Sequence[str], points: PointScenarios, groups: Sequence[GroupSummary]
) -> tuple[list[Prediction], list[tuple[str, str]]]:
    """Return the predictions of the formulas asked for, else of those in the sweep file; of these, why some predict nothing.

    UsageError for one that was asked for and predicts nothing.
    """
    found, absent = [], []
    for text in asked or points.sweep.theory:
        try:
            found += overlay(runs, parse_formula(text), points, groups)
        except UsageError as error:
            if asked:
                raise
            absent.append(f"{text}: {str(error).partition('; ')[2]}")
    return found, [("theory left out", "; ".join(absent))] if absent else []


def _named(points: PointScenarios, runs: Runs) -> list[str]:
    """Return the metrics that the sweep file names, as far as the runs have them."""
    return [name for name in points.sweep.metrics if name in runs.metrics]


def _summaries(runs: Runs, metrics: Sequence[str], always: bool = False) -> tuple[tuple[str, ...], list[GroupSummary]]:
    """Return the chosen metrics and their summaries at each point; by default, main metrics that vary or are `always` shown."""
    chosen = runs.chosen_metrics(metrics) if metrics else tuple(name for name in HEADLINES if name in runs.metrics)
    groups = summarise(runs, runs.axes, chosen, percentiles=figure_builders.RANKS)
    if not metrics:
        chosen = (chosen if always else _varying(chosen, groups))[:DEFAULT_METRICS]
    return chosen, [group for group in groups if group.metric in chosen]


def _axes(runs: Runs, groups: Sequence[GroupSummary], points: PointScenarios) -> dict[str, DisplayedAxis]:
    values = {name: list(dict.fromkeys(group.keys[name] for group in groups)) for name in runs.axes}
    return displayed_axes(points.sweep, runs.axes, values)


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
        command = data.command("--effects", "--metric", ",".join(data.metrics))
        found.append(figure_builders.importance(data.effects, data.axes, command))
    if any(row.expected for row in data.theory):
        words = [word for name in dict.fromkeys(row.formula for row in data.theory) for word in ("--theory", name)]
        found.append(figure_builders.residuals(data.theory, data.command(*words)))
    if parts(data.folders[0], "series"):
        by = [layout.colour.name] if layout and layout.colour else []
        made = quantile_bands(session, data.folders[0], runs, by)
        found += band_figures(made, data.axes, data.command("--series", "all", *_grouped(by)))
    return [figure for figure in found if figure is not None]


def _grouped(by: Sequence[str]) -> list[str]:
    """Return the option that groups by these axes; nothing without any."""
    return ["--by", ",".join(by)] if by else []


def _of_metric(data: ReportData, layout: FigureLayout, metric: str, sampled: bool) -> list[Figure | None]:
    groups = [group for group in data.groups if group.metric == metric]
    command = data.command("--metric", metric)
    if sampled:
        return list(figure_builders.scatter(metric, groups, layout, command))
    theory = [row for row in data.theory if row.metric == metric]
    found: list[Figure | None] = [figure_builders.lines(metric, groups, layout, theory, command, data.bound)]
    if metric in data.metrics[:DETAILED]:
        found.append(figure_builders.heat(metric, groups, layout, command))
        if any(group.count > 1 for group in groups):
            found.append(figure_builders.boxes(metric, groups, layout, command))
    return found


def _trade_off(data: ReportData, layout: FigureLayout) -> Figure | None:
    for first, second in TRADE_OFFS:
        if first in data.metrics and second in data.metrics:
            command = data.command("--metric", f"{first},{second}")
            judged = [group for group in data.groups if tuple(group.keys.values()) not in data.bound]
            return figure_builders.pareto(first, second, judged, layout, command)
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
        command = data.command("--compare", axis.name, "--metric", metric, *_grouped(by))
        mine = [gap for gap in gaps if gap.metric == metric]
        found.append(differences(metric, mine, data.axes, command))
    return found
