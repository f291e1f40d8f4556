"""Names of a user's that matplotlib would take for something else are drawn as they are."""

from pathlib import Path

import pytest

pytest.importorskip("matplotlib")

from experiments.report.figures import Figure, FigureAxis, LineMark, Panel
from experiments.report.matplotlib_figures import save


def test_dollars_are_no_formula_and_an_underscore_hides_nothing(tmp_path: Path) -> None:
    name = "$a_{$"
    lines = [LineMark(label, at, [name, "b"], [1, 2], [None] * 2, [None] * 2) for at, label in enumerate(("_under", "c$d_{$"))]
    axis, other = FigureAxis("x$_{$", categories=(name, "b")), FigureAxis("y$_{$")
    figure = Figure("odd", "lines", "t$_{$", "", "", axis, other, [Panel("p$_{$", lines)])
    _, svg = save([figure], tmp_path)
    # Each text is a comment before its glyphs.
    drawn = svg.read_text(encoding="utf-8").replace("\u200b", "")
    for text in (name, "x$_{$", "y$_{$", "T$_{$", "p$_{$", "_under", "c$d_{$"):
        assert f"<!-- {text} -->" in drawn
