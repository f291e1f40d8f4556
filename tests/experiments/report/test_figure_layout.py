"""Assignment of axes to a figure, and their units."""

from itertools import product
from pathlib import Path
from typing import Any

import pytest

from experiments.analysis.derived import DERIVED
from experiments.report.figure_builders import _front
from experiments.report.figure_layout import assign_axes, independent_axes, spread
from experiments.report.labels import UNITS, DisplayedAxis, displayed_axes
from experiments.sweep.spec.metrics import METRICS
from experiments.sweep.spec.quantities import number_of
from experiments.sweep.spec.sweep_file import Sweep, load_sweep


def shown(name: str, *values: Any) -> DisplayedAxis:
    """Return an axis without a unit."""
    numeric = not isinstance(values[0], str)
    return DisplayedAxis(name, name, values, 1.0, "", numeric, False)


AXES = {
    axis.name: axis for axis in (shown("case", "a", "b"), shown("loss", 0.1, 0.2, 0.3), shown("n", 1, 2, 3), shown("k", 1, 2))
}


POINTS = [dict(zip(AXES, values, strict=True)) for values in product(*(axis.values for axis in AXES.values()))]


def test_the_numeric_axis_with_the_largest_effect_is_x_and_text_axes_are_lines() -> None:
    layout = assign_axes(AXES, {"loss": 0.2, "n": 0.5, "case": 0.1, "k": 0.9}, POINTS)
    assert layout is not None
    assert layout.colour is not None
    assert layout.panel is not None
    assert (layout.x.name, layout.colour.name, layout.panel.name) == ("n", "case", "k")
    assert layout.fixed == {"loss": 0.2}
    assert layout.caption == "At loss = 0.2."


def test_remaining_axes_are_fixed_at_their_most_frequent_value() -> None:
    left = [point for point in POINTS if point["loss"] == 0.3 or (point["n"], point["k"]) == (1, 1)]
    layout = assign_axes(AXES, {"loss": 0.2, "n": 0.5, "case": 0.1, "k": 0.9}, left)
    assert layout is not None
    assert layout.fixed == {"loss": 0.3}


def test_an_axis_determined_by_another_is_not_drawn() -> None:
    zipped = [{"case": case, "loss": 0.1 * n, "n": n, "k": k} for case in "ab" for n in (1, 2, 3) for k in (1, 2)]
    assert set(independent_axes(AXES, zipped)) == {"case", "loss", "k"}
    assert set(independent_axes(AXES, POINTS)) == set(AXES)
    # Every sampled point has its own values, so no axis determines another.
    assert set(independent_axes(AXES, [{"case": "a", "loss": n / 9, "n": n, "k": -n} for n in range(9)])) == set(AXES)


def test_a_sweep_without_axes_has_no_layout() -> None:
    assert assign_axes({}, {}, []) is None


def test_text_axes_are_x_if_there_are_no_numbers() -> None:
    layout = assign_axes({"case": AXES["case"]}, {}, [{"case": "a"}, {"case": "b"}])
    assert layout is not None
    assert (layout.x.name, layout.colour, layout.panel, layout.caption) == ("case", None, None, "")


def test_a_subset_of_many_values_is_drawn_with_both_ends() -> None:
    assert spread(range(100), 4) == [0, 33, 66, 99]
    assert spread([1, 2], 4) == [1, 2]


@pytest.fixture(scope="module")
def sweep(tmp_path_factory: pytest.TempPathFactory) -> Sweep:
    """Write a sweep whose axes have units."""
    path: Path = tmp_path_factory.mktemp("units") / "sweep.yaml"
    path.write_text(
        "name: units\nscenario: {}\naxes:\n  topology.link.loss: [1%, 5%]\n  protocol.rate: [10Mbit, 1Gbit]\n"
        "  delay: {key: topology.link.delay, from: 1ms, to: 1s, scale: log}\n  wire: [objects, bytes]\n"
    )
    return load_sweep(path)


def test_values_are_shown_in_the_unit_of_the_sweep_file(sweep: Sweep) -> None:
    values: dict[str, list[Any]] = {
        "topology.link.loss": [0.05, 0.01],
        "protocol.rate": [1e7, 1e9],
        "delay": [0.001, 1.0],
        "wire": ["objects", "bytes"],
    }
    axes = displayed_axes(sweep, list(values), values)
    assert [axes["topology.link.loss"].text(value) for value in (0.01, 0.05)] == ["1%", "5%"]
    assert axes["protocol.rate"].label == "rate [Mbit/s]"
    assert axes["protocol.rate"].value(1e7) == 10
    assert axes["protocol.rate"].log
    assert not axes["topology.link.loss"].log
    assert axes["delay"].unit in ("ms", "s")
    assert axes["wire"].values == ("bytes", "objects")


def test_axes_written_as_plain_numbers_have_the_unit_in_which_they_are_stored(tmp_path: Path) -> None:
    path = tmp_path / "sweep.yaml"
    path.write_text("name: plain\nscenario: {}\naxes:\n  topology.link.loss: [0.01, 0.05]\n  topology.receivers: [1, 2]\n")
    values: dict[str, list[Any]] = {"topology.link.loss": [0.01, 0.05], "topology.receivers": [1, 2]}
    axes = displayed_axes(load_sweep(path), list(values), values)
    assert [axis.label for axis in axes.values()] == ["loss [fraction]", "receivers"]
    assert axes["topology.link.loss"].text(0.01) == "0.01"


def test_rates_of_messages_are_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    path = tmp_path / "sweep.yaml"
    path.write_text("name: rates\nscenario: {}\naxes:\n  workload.0.rate: [100/s, 1000/s, 500/s]\n")
    sweep = load_sweep(path)
    stored = [number_of(value) for value in sweep.axes["workload.0.rate"].values or ()]
    axis = displayed_axes(sweep, ["workload.0.rate"], {"workload.0.rate": stored})["workload.0.rate"]
    assert (axis.values, axis.label, axis.numeric) == ((100, 500, 1000), "rate [1/s]", True)


def test_every_metric_has_a_unit() -> None:
    assert {*METRICS, *DERIVED} == set(UNITS)


def test_the_compared_axis_gets_the_colours_whatever_it_explains() -> None:
    layout = assign_axes(AXES, {"loss": 0.2, "n": 0.5, "case": 0.1, "k": 0.9}, POINTS, "k")
    assert layout is not None
    assert layout.colour is not None
    assert (layout.x.name, layout.colour.name) == ("n", "k")


def test_an_axis_of_one_value_is_no_axis(sweep: Sweep) -> None:
    assert displayed_axes(sweep, ["wire"], {"wire": ["bytes"]}) == {}


def test_the_pareto_front_holds_the_points_that_no_other_dominates() -> None:
    assert _front([(1, 5), (2, 3), (3, 4), (4, 1), (2, 3)]) == [True, True, False, True, False]
