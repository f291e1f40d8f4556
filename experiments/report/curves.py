"""Time series of many runs as figures of bands."""

import re
from collections.abc import Mapping, Sequence

from experiments.analysis import curves as measured
from experiments.report.figures import Axis, Band, Figure, Panel
from experiments.report.layout import COLOURS
from experiments.report.names import Shown, metric_label

__all__ = ["curves"]

MOST = 6
"""Quantities that have a figure."""


def curves(bands: Sequence[measured.Band], axes: Mapping[str, Shown], command: str) -> list[Figure]:
    """A figure for each quantity, with a band for each group."""
    found = []
    for name in list(dict.fromkeys(band.name for band in bands))[:MOST]:
        mine = [band for band in bands if band.name == name][:COLOURS]
        marks = [
            Band(_label(band, axes), number, band.times, [band.at[rank] for rank in measured.QUANTILES])
            for number, band in enumerate(mine)
        ]
        caption = "Mean per interval of the series. Line: median over the runs; shaded: the middle half, and nine tenths."
        title = f"{metric_label(name)} over time"
        x, y = Axis("time [s]"), Axis(metric_label(name))
        found.append(Figure(_file_name(name), "bands", title, caption, command, x, y, [Panel("", marks)]))
    return found


def _file_name(name: str) -> str:
    """Names of series have spaces, which a command line would have to quote."""
    return "series-" + re.sub(r"[^A-Za-z0-9_.]+", "-", name)


def _label(band: measured.Band, axes: Mapping[str, Shown]) -> str:
    return ", ".join(f"{name.rpartition('.')[2]} {axes[name].text(value)}" for name, value in band.keys.items() if name in axes)
