"""Ticks of the axes of figures."""

import re
from pathlib import Path

import pytest

from experiments.report.figure_builders import lines
from experiments.report.figure_layout import assign_axes
from experiments.report.figures import Figure, LineMark, Panel
from experiments.report.labels import DisplayedAxis
from experiments.report.matplotlib_figures import save


@pytest.mark.parametrize(("values", "whole"), [((1, 2, 4, 8, 16), True), ((0.5, 1, 2, 4), False)])
def test_an_axis_of_whole_numbers_has_no_tick_at_a_fraction(
    values: tuple[float, ...], whole: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Text of an SVG file is written as text.
    monkeypatch.setattr("experiments.report.matplotlib_figures.STYLE", {"svg.fonttype": "none"})
    axis = DisplayedAxis("n", "n", values, 1.0, "", numeric=True, log=False)
    layout = assign_axes({"n": axis}, {}, [{"n": value} for value in values])
    assert layout is not None
    found = lines("goodput_mbit_s", [], layout, [], "")
    nothing = [None] * len(values)
    panel = Panel("", [LineMark("", 0, list(values), [1000.0] * len(values), nothing, nothing)])
    drawn = Figure("f", "lines", "", "", "", found.x, found.y, [panel])
    below = re.findall(r'id="xtick_.*?>([^<>]+)</text>', save([drawn], tmp_path)[1].read_text(encoding="utf-8"), re.S)
    assert len(below) > 3
    assert any("." in text for text in below) != whole
