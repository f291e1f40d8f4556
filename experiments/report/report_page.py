"""Render the report as one self-contained HTML file with its data, scripts and style."""

import shlex
from collections.abc import Iterator, Sequence
from html import escape
from typing import Any

from experiments.analysis.overlay import MARGIN, Prediction
from experiments.report.comparison_page import difference_section, summary
from experiments.report.figure_layout import FigureLayout
from experiments.report.figures import Figure
from experiments.report.labels import DisplayedAxis, axis_name, help_of, metric_label, rounded
from experiments.report.page_skeleton import Section, asset, command_line, plotly, render
from experiments.report.report_data import ReportData
from experiments.report.sweep_tables import tables_of

__all__ = ["MOST_POINTS", "report_page"]

MOST_POINTS = 20_000
"""Largest number of rows in the explorer and the table; the report of a larger sweep has figures only."""
MOST_LISTED = 6
"""Largest number of values of an axis that are listed above the report."""
TABLES = {
    "points": (
        "Points",
        "Each metric at each point, in its unit: mean, standard deviation (sd), 95 % confidence interval of the "
        "mean (low, high), and percentiles of the runs.",
    ),
    "pairs": (
        "By point",
        "Mean difference of B to A over the pairs of runs with equal seeds at each point, in the metric's unit, with its "
        "95 % confidence interval; clear if it excludes 0.",
    ),
    "theory": (
        "Theory",
        "What formulas expect at each point beside the mean of its runs with its 90 % interval (low, high). Theory holds where "
        f"the interval is within {MARGIN:.0%} of it, and does not where it is beyond; otherwise more runs would show it.",
    ),
    "failed": ("Failed runs", ""),
}
"""Title of each table and what its columns mean."""


def report_page(contents: ReportData, layout: FigureLayout | None, command: str) -> str:
    """Render the page; `layout` is the initial state of the explorer. UnsupportedError without Plotly."""
    data = _data(contents, layout)
    scripts = [plotly(), *map(asset, ("page.js", "figures.js", "explorer.js"))]
    return render(contents.title, _lead(contents), _sections(contents, data), data, scripts, command)


def _lead(contents: ReportData) -> str:
    failed = sum(count for _, _, count in contents.kinds)
    tag = f'<span class="tag bad">{failed:,} failed</span>' if failed else '<span class="tag">all runs ok</span>'
    incomplete = dict(contents.provenance).get("incomplete", "").partition(" ")[0]
    tag += f' <span class="tag bad">{incomplete} incomplete</span>' if incomplete else ""
    return f'<p class="lead">{tag}{escape(_summary(contents))}</p>'


def _summary(contents: ReportData) -> str:
    if contents.pair:
        return summary(contents.pair)
    about = dict(contents.provenance)
    runs, points = about["runs"].partition(" (")[0], about["points"].partition(", ")[0]
    varied = "; ".join(map(_varied, contents.axes.values()))
    counts = f"{runs} run{'' if runs == '1' else 's'} at {points} point{'' if points == '1' else 's'}"
    return counts + (f": {varied}" if varied else "") + f". Code {about['code']}"


def _varied(axis: DisplayedAxis) -> str:
    """Return the name of an axis with its values, or with the first and the last of many."""
    texts = [axis.text(value) for value in axis.values]
    few = len(texts) <= MOST_LISTED
    return f"{axis_name(axis.name)} {', '.join(texts) if few else f'{texts[0]} to {texts[-1]} ({len(texts)} values)'}"


def _sections(contents: ReportData, data: dict[str, Any]) -> Iterator[Section]:
    """Yield the results first, then what they come from."""
    if contents.pair:
        yield Section("difference", "Overall", difference_section(contents.pair))
    if data["points"] and data["axes"]:
        explorer = '<div class="card"><div class="controls" id="controls"></div><p id="explained"></p>'
        yield Section("explore", "Explore", explorer + '<div class="plot" id="plot-explore"></div></div>')
    if contents.figures:
        yield Section("figures", "Figures", "\n".join(_card(figure, contents) for figure in contents.figures))
    for table in data["tables"]:
        title, about = TABLES[table["name"]]
        kinds = _failure_kinds(contents) if table["name"] == "failed" else f"<p>{about}</p>"
        yield Section(table["name"], title, f'<div class="card tall">{kinds}<div id="table-{table["name"]}"></div></div>')
    yield Section("run", "Runs", _provenance_section(contents))
    yield Section("again", "Reproduce", _commands_section(contents))


def _provenance_section(contents: ReportData) -> str:
    rows = "".join(f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in contents.provenance)
    texts = "".join(
        f"<details><summary>{escape(name)}</summary><pre>{escape(text)}</pre></details>"
        for name, text in contents.sources.items()
    )
    return f'<div class="card"><dl class="facts">{rows}</dl>{texts}</div>'


def _card(figure: Figure, contents: ReportData) -> str:
    title = figure.title[:1].upper() + figure.title[1:]
    commands = [figure.command, f"mcastlab report {contents.written_folders} --only {figure.name}"]
    shown = "".join(command_line(text) for text in commands if text)
    folder = "comparison" if contents.pair else "figures"
    return (
        f'<article class="card"><h3>{escape(title)}</h3><p>{escape(figure.caption)}</p>'
        f'<div class="plot" id="plot-{figure.name}" role="img" aria-label="{escape(title)}"></div>'
        f"<details><summary>numbers and files of this figure</summary>{shown}"
        f"<p>For papers: {folder}/{figure.name}.svg and .png</p></details></article>"
    )


def _failure_kinds(contents: ReportData) -> str:
    rows = "".join(f"<li>{count} {escape(status)}: {escape(reason)}</li>" for status, reason, count in contents.kinds[:20])
    return f"<ul>{rows}</ul>"


def _commands_section(contents: ReportData) -> str:
    parts = []
    for folder in map(shlex.quote, map(str, contents.folders)):
        commands = {
            "The runs (those stored are not repeated):": f"mcastlab sweep {folder}/sweep.yaml --out {folder} --resume",
            "The numbers:": f"mcastlab analyse {folder} --csv groups.csv",
            "One row for each run:": f"mcastlab results {folder} --csv runs.csv",
        }
        parts += [f"<p>{escape(why)}</p>{command_line(text)}" for why, text in commands.items()]
    return f'<div class="card">{"".join(parts)}</div>'


def _data(contents: ReportData, layout: FigureLayout | None) -> dict[str, Any]:
    """Return the data for the scripts of the page."""
    small = len(contents.groups) <= MOST_POINTS
    independent_axes = contents.independent_axes
    axes = [
        {
            "key": axis.name,
            "name": axis_name(axis.name),
            "label": axis.label,
            "values": [axis.value(value) if axis.numeric else axis.text(value) for value in axis.values],
            "texts": [axis.text(value) for value in axis.values],
            "numeric": axis.numeric,
            "log": axis.log,
            "leading": axis.name in independent_axes,
        }
        for axis in contents.axes.values()
    ]
    metrics = [{"name": name, "label": metric_label(name), "help": help_of(name)} for name in contents.metrics]
    return {
        "figures": [_rounded(figure.plain()) for figure in contents.figures],
        "axes": axes,
        "metrics": metrics,
        "points": _points(contents) if small else [],
        "tables": list(tables_of(contents, small)),
        "start": _start(contents, layout),
    }


def _start(contents: ReportData, layout: FigureLayout | None) -> dict[str, Any]:
    names = list(contents.axes)
    if layout is None:
        return {}
    fixed = dict(layout.fixed)
    if layout.panel is not None:
        # The panel axis of the figures is a fixed axis of the explorer.
        fixed |= {layout.panel.name: _middle(contents, layout)}
    return {
        "x": names.index(layout.x.name),
        "lines": names.index(layout.colour.name) if layout.colour else -1,
        "held": {names.index(name): list(contents.axes[name].values).index(value) for name, value in fixed.items()},
    }


def _middle(contents: ReportData, layout: FigureLayout) -> Any:
    assert layout.panel is not None
    there = {point[layout.panel.name] for point in contents.points if all(point[k] == v for k, v in layout.fixed.items())}
    known = [value for value in layout.panel.values if value in there]
    return known[len(known) // 2]


def _points(contents: ReportData) -> list[dict[str, Any]]:
    theory = {(row.metric, *row.keys.items()): row for row in contents.theory}
    places = {name: {value: n for n, value in enumerate(axis.values)} for name, axis in contents.axes.items()}
    return [
        {
            "keys": [places[name][group.keys[name]] for name in contents.axes],
            "metric": contents.metrics.index(group.metric),
            **_theory(theory.get((group.metric, *group.keys.items()))),
            "hollow": tuple(group.keys.values()) in contents.bound,
            **{key: rounded(getattr(group, key)) for key in ("mean", "low", "high")},
            **{f"p{rank}": rounded(group.percentiles[rank]) for rank in (5, 95)},
        }
        for group in contents.groups
    ]


def _theory(found: Prediction | None) -> dict[str, Any]:
    return {"theory": None} if found is None else {"theory": rounded(found.expected), "formula": found.formula}


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return rounded(value)
    if isinstance(value, dict):
        return {key: _rounded(inner) for key, inner in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_rounded(inner) for inner in value]
    return value
