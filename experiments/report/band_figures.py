"""Figures of time series: quantile bands over many runs."""

import re
from collections.abc import Mapping, Sequence

from experiments.analysis import quantile_bands as measured
from experiments.report.figure_layout import COLOURS
from experiments.report.figures import BandMark, Figure, FigureAxis, Panel
from experiments.report.labels import DisplayedAxis, series_label

__all__ = ["band_figures"]

MOST = 6
"""Largest number of quantities with a figure."""


def band_figures(bands: Sequence[measured.QuantileBand], axes: Mapping[str, DisplayedAxis], command: str) -> list[Figure]:
    """Return a figure for each quantity, with a band for each group."""
    found = []
    for name in list(dict.fromkeys(band.name for band in bands))[:MOST]:
        mine = [band for band in bands if band.name == name][:COLOURS]
        marks = [
            BandMark(_label(band, axes), number, band.times, [band.at[rank] for rank in measured.QUANTILES])
            for number, band in enumerate(mine)
        ]
        caption = "Mean per interval of the series. Line: median over the runs; shaded: central 50 % and 90 % of the runs."
        title = f"{series_label(name).partition(' [')[0]} over time"
        x, y = FigureAxis("time [s]"), FigureAxis(series_label(name))
        found.append(Figure(_file_name(name), "bands", title, caption, command, x, y, [Panel("", marks)]))
    return found


def _file_name(name: str) -> str:
    """Return a file name without spaces or other characters that a command line would have to quote."""
    return "series-" + re.sub(r"[^A-Za-z0-9_.]+", "-", name)


def _label(band: measured.QuantileBand, axes: Mapping[str, DisplayedAxis]) -> str:
    return ", ".join(f"{name.rpartition('.')[2]} {axes[name].text(value)}" for name, value in band.keys.items() if name in axes)
