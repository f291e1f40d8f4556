"""Points at which a core of the machine limited a run: drawn hollow, and compared with nothing."""

from pathlib import Path
from typing import Any

import pytest

from experiments.analysis.runs import open_runs
from experiments.analysis.summary import GroupSummary
from experiments.report.figure_builders import lines
from experiments.report.figure_layout import assign_axes
from experiments.report.figures import HOLLOW, Figure, LineMark, Panel, has_hollow, has_own_scales
from experiments.report.labels import DisplayedAxis
from experiments.report.matplotlib_figures import save
from tests.support.sweep_store import row, write_runs

SIZE = DisplayedAxis("size", "size [B]", (64, 256, 4096), 1.0, "B", numeric=True, log=True)
CASE = DisplayedAxis("case", "case", ("a", "b"), 1.0, "", numeric=False, log=False)
WORLD = DisplayedAxis("backend", "backend", ("emu", "sim"), 1.0, "", numeric=False, log=False)
BOUND = {(64, "a", "emu")}


def group(size: int, case: str, backend: str) -> GroupSummary:
    """Return the summary of a single run."""
    keys = {"size": size, "case": case, "backend": backend}
    return GroupSummary(keys, "goodput_mbit_s", 1, 0, 5.0, None, None, None, None, None, 5.0, 5.0, {}, 1.0)


@pytest.fixture
def figure() -> Figure:
    """Draw case a in both worlds, and case b in Mininet only."""
    groups = [group(size, case, world) for case, world in (("a", "emu"), ("a", "sim"), ("b", "emu")) for size in SIZE.values]
    layout = assign_axes({"size": SIZE, "case": CASE, "backend": WORLD}, {"backend": 0.9}, [each.keys for each in groups])
    assert layout is not None
    return lines("goodput_mbit_s", groups, layout, [], "", BOUND)


def test_a_point_is_hollow_where_a_core_was_used_up(figure: Figure) -> None:
    marks = {(panel.title, mark.label): mark for panel in figure.panels for mark in panel.marks}
    assert {key: list(mark.hollow) for key, mark in marks.items()} == {
        ("Mininet", "a"): [True, False, False],
        ("Mininet", "b"): [False, False, False],
        ("simulator", "a"): [False, False, False],
    }
    assert "Hollow:" in figure.caption
    assert has_hollow(figure)


def test_the_worlds_are_panels_whatever_they_explain(figure: Figure) -> None:
    assert [panel.title for panel in figure.panels] == ["Mininet", "simulator"]


def test_the_values_of_a_logarithmic_axis_have_ticks(figure: Figure) -> None:
    assert figure.x.ticks == (64, 256, 4096)


def test_panels_with_values_far_apart_have_scales_of_their_own(figure: Figure) -> None:
    assert not has_own_scales(figure)
    high = Panel("", [LineMark("c", 0, [64], [100.0], [None], [None])])
    apart = Figure(**{name: getattr(figure, name) for name in Figure.__slots__} | {"panels": [*figure.panels, high]})
    assert has_own_scales(apart)
    assert apart.plain()["own_y"]


def test_the_legend_has_the_lines_of_all_panels_and_says_what_hollow_means(
    figure: Figure, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Text of an SVG file is written as text.
    monkeypatch.setattr("experiments.report.matplotlib_figures.STYLE", {"svg.fonttype": "none"})
    turned = Figure(**{name: getattr(figure, name) for name in Figure.__slots__} | {"panels": figure.panels[::-1]})
    text = save([turned], tmp_path)[1].read_text(encoding="utf-8")
    assert all(f">{label}</text>" in text for label in ("a", "b", HOLLOW))


def test_without_hollow_points_nothing_is_said_of_them() -> None:
    layout = assign_axes({"size": SIZE}, {}, [{"size": size} for size in SIZE.values])
    assert layout is not None
    found = lines("goodput_mbit_s", [], layout, [], "")
    assert "Hollow" not in found.caption
    plain = Figure("f", "lines", "", "", "", found.x, found.y, [Panel("", [LineMark("", 0, [1], [1.0], [None], [None])])])
    assert not has_hollow(plain)


def test_runs_that_a_core_limited_are_kept_and_not_judged(spark: Any, tmp_path: Path) -> None:
    values = ((1, 0.0), (2, 1.0), (3, None))
    write_runs(tmp_path, [row({"n": n}, 1, {"loss": 0.1, "cpu_bound": bound}, point=n) for n, bound in values])
    runs = open_runs(spark, tmp_path)
    assert runs.bound_points() == {(2,)}
    assert (runs.ok.count(), sorted(each["p_n"] for each in runs.judged.collect())) == (3, [1, 3])
