"""Sweep files: validation, meaning, and one-line error messages."""

from math import inf
from pathlib import Path
from typing import Any

import pytest

from experiments.cli import invoke
from experiments.sweep.spec.quantities import kind_of, number_of
from experiments.sweep.spec.sweep_file import Until, load_sweep
from tests.experiments.sweep.files import BASE, plan_of, write_sweep

LOSS, RECEIVERS = "topology.link.down.loss", "topology.receivers"


@pytest.mark.parametrize(
    ("keys", "line"),
    [
        ({"axis": {}}, "small.yaml: axis: value {} is not allowed; unknown key, known here: name, scenario, set, axes, zip"),
        ({"axes": {LOSS: []}}, f"small.yaml: axes.{LOSS}: value [] is not allowed; values is empty; at least one value"),
        ({"axes": {LOSS: [0.1, 0.1]}}, "0.1 and 0.1 are equal; each value once"),
        ({"axes": {LOSS: [0.01, 0.1, "1e-2"]}}, "0.01 and '1e-2' are equal; each value once"),
        ({"axes": {LOSS: ["1%", 0.01]}}, "'1%' and 0.01 are equal; each value once"),
        ({"axes": {"workload.size": ["1MB", 1_000_000]}}, "'1MB' and 1000000 are equal; each value once"),
        ({"axes": {"trace": [True, False, "True"]}}, "True and 'True' are equal; each value once"),
        ({"axes": {"trace": ["False", False]}}, "'False' and False are equal; each value once"),
        ({"axes": {"case": {"key": LOSS, "values": [0]}}}, "axes: value 'case' is not allowed; it is the name of the axis of"),
        (
            {"axes": {"Loss": {"key": LOSS, "values": [0]}, "loss": {"key": RECEIVERS, "values": [1]}}},
            "small.yaml: axes: value 'loss' is not allowed; SQL does not tell it from 'Loss'",
        ),
        (
            {"axes": {"A.b": {"key": LOSS, "values": [0]}, "a.B": {"key": RECEIVERS, "values": [1]}}},
            "small.yaml: axes: value 'a.B' is not allowed; SQL does not tell it from 'A.b'",
        ),
        ({"axes": {"e\u0301": {"key": LOSS, "values": [0]}}}, "axes: value 'e\\u0301' is not allowed; its accents are"),
        ({"cases": {"e\u0301": {LOSS: 0}}}, "cases: value 'e\\u0301' is not allowed; its accents are"),
        ({"axes": {"a__b": {"key": LOSS, "values": [0]}}}, "axes: value 'a__b' is not allowed; in columns __ stands for a dot"),
        ({"axes": {"a_.b": {"key": LOSS, "values": [0]}}}, "axes: value 'a_.b' is not allowed; in columns __ stands for a dot"),
        ({"axes": {"a.": {"key": LOSS, "values": [0]}}}, "axes: value 'a.' is not allowed; a name has letters between"),
        ({"axes": {" a": {"key": LOSS, "values": [0]}}}, "axes: value ' a' is not allowed; a name neither begins nor ends"),
        (
            {"axes": {"name": ["x" * 3000]}},
            "): protocol.segment: value 1400 is not allowed; at least 3009 for a name of 3009 bytes (workload)",
        ),
        ({"theory": ["arq", "foo"]}, "small.yaml: theory.1: value 'foo' is not allowed; one of nacks, "),
        ({"theory": ["arqq"]}, "; did you mean 'arq'?"),
        (
            {"theory": ["arq:x=3"]},
            "theory.0: value 'x=3' is not allowed; arq takes argument=number or argument=key of receivers",
        ),
        ({"axes": {LOSS: {"from": 5, "to": 1}}}, "from must be less than to"),
        ({"axes": {LOSS: {"from": 0, "to": 1, "scale": "log"}}}, "greater than 0 on a log scale"),
        ({"axes": {LOSS: {"from": "a", "to": "b"}}}, "from and to must be numbers or quantities"),
        ({"axes": {RECEIVERS: {"from": 1, "to": inf, "whole": True}}}, "from and to must be finite, and so must their"),
        ({"axes": {LOSS: {"from": -1e308, "to": 1e308}}}, "from and to must be finite, and so must their"),
        ({"axes": {LOSS: {"from": 1}}}, "values, or from and to, are required"),
        ({"axes": {LOSS: {"values": [1], "from": 0, "to": 1}}}, "values and a range are both set; exactly one of them"),
        (
            {"axes": {"topology.nonsense": [1]}},
            "point 0 (topology.nonsense=1): topology.nonsense: value 1 is not allowed; unknown",
        ),
        ({"axes": {"name.x": [1]}}, "axes.name.x: 'name.x=1' is not allowed; above 'x' stands the value 'small'"),
        (
            {"axes": {"seed": [1, 2]}},
            "small.yaml: axes.seed: key 'seed' is not allowed; `seed` and `replications` of the sweep",
        ),
        ({"axes": {"n": {"key": ["seed", LOSS], "values": [0]}}}, "small.yaml: axes.n: key 'seed' is not allowed"),
        ({"set": {"seed": 7}}, "small.yaml: set.seed: key 'seed' is not allowed"),
        ({"cases": {"a": {"seed": 7}}}, "small.yaml: cases.a.seed: key 'seed' is not allowed"),
        (
            {"axes": {LOSS: [0], "p": {"key": LOSS, "values": [0.1]}}},
            f"small.yaml: axes.p: key '{LOSS}' is not allowed; axes.{LOSS} sets it, too",
        ),
        (
            {"axes": {LOSS: [0]}, "cases": {"lossy": {LOSS: 0.1}}},
            f"small.yaml: axes.{LOSS}: key '{LOSS}' is not allowed; cases.lossy.{LOSS} sets it, too",
        ),
        ({"set": {"protocol.rate": "fast"}}, "protocol.rate: value 'fast' is not allowed; a rate"),
        ({"cases": {"a": {"protocol.name": "none"}}}, "point 0 (case=a): protocol.name: value 'none' is not allowed; one of"),
        ({"zip": [["a", "b"]]}, "zip.0: value 'a' is not allowed; one of the axes"),
        (
            {"axes": {LOSS: [0, 0.1], RECEIVERS: [1]}, "zip": [[LOSS, RECEIVERS]]},
            "equally many values; topology.link.down.loss has 2",
        ),
        (
            {"axes": {LOSS: [0]}, "leave_out": ["size > 3"]},
            "leave_out.0: value 'size > 3' is not allowed; 'size' is not an axis; one of",
        ),
        ({"axes": {LOSS: [0]}, "leave_out": ["print('x')"]}, "is not supported; comparisons, and, or, not"),
        ({"axes": {LOSS: [0]}, "leave_out": ["1 <"]}, "it is not a comparison"),
        (
            {"axes": {"rate": {"key": "protocol.rate", "values": ["1Mbit", "2Mbit"]}}, "leave_out": ["rate == 1MB"]},
            "leave_out.0: value 'rate == 1MB' is not allowed; rate is a rate and 1MB is a size",
        ),
        (
            {"axes": {LOSS: {"from": "1%", "to": "5%"}}, "leave_out": [f"{LOSS} in [0.02, 2ms]"]},
            f"{LOSS} is a fraction and 2ms is a duration",
        ),
        ({"axes": {LOSS: [0]}, "leave_out": [f"{LOSS} == 0"]}, "leave_out: excludes every point"),
        (
            {"until": {"metric": "beauty", "width": 0.1}},
            "until.metric: value 'beauty' is not allowed; no such metric; one of completed",
        ),
        (
            {"until": {"metric": "loss", "width": 5}},
            "until.width: value 5 is not allowed; it is not a fraction; like 1% or 0.01",
        ),
        (
            {"until": {"metric": "loss", "width": 0.1, "most": 3}, "replications": 4},
            "until.most: value 3 is not allowed; at least",
        ),
        ({"refine": {"axis": "x", "metric": "loss"}}, "refine.axis: value 'x' is not allowed; one of the axes"),
        ({"axes": {"engine": ["fast", "strict"]}, "refine": {"axis": "engine", "metric": "loss"}}, "or more numeric values"),
        ({"sample": {"points": 4}}, "sample: value is not allowed; it requires axes"),
        ({"replications": 0}, "small.yaml: replications: value 0 is not allowed"),
        ({"replications": 1000000, "axes": {"topology.receivers": list(range(1, 1001))}}, "up to 1,000,000,000 runs; --yes"),
        ({"name": "a/b"}, "small.yaml: name: value 'a/b' is not allowed"),
        ({"scenario": "nowhere.yaml"}, "nowhere.yaml: can't be read (No such file or directory)"),
        ({"backend": "emu", "keep": {"series": 1}}, "keep: series and captures are not allowed with backend emu"),
    ],
)
def test_a_bad_sweep_file_is_a_one_line_error_with_exit_code_2(
    keys: dict[str, Any], line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert invoke(["sweep", str(write_sweep(tmp_path, **keys)), "--dry-run", "--out", str(tmp_path / "out")]) == 2
    err = capsys.readouterr().err
    assert line in err
    assert err.count("\n") == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("axes", "line"),
    [
        ({"protocol.block": {"from": 10, "to": 20}}, "axes.protocol.block: `whole: true` rounds the values of the range"),
        ({"n": {"key": RECEIVERS, "from": 1, "to": 9}}, "axes.n: `whole: true` rounds the values of the range"),
        (
            {"workload.size": {"from": "1kB", "to": "1MB", "scale": "log"}},
            "axes.workload.size: `whole: true` rounds the values of the range",
        ),
    ],
)
def test_a_range_of_fractions_for_a_key_of_whole_numbers_names_the_remedy(
    axes: dict[str, Any], line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_sweep(tmp_path, axes=axes)
    assert invoke(["sweep", str(path), "--dry-run"]) == 2
    error = capsys.readouterr().err
    assert f"({line})" in error
    assert error.count("\n") == 1
    whole = {name: axis | {"whole": True} for name, axis in axes.items()}
    assert [list(point.values.values()) for point in plan_of(tmp_path, axes=whole).points()]


def test_a_list_with_a_fraction_for_a_key_of_whole_numbers_gets_no_advice_about_ranges(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_sweep(tmp_path, axes={"protocol.block": [1.5, 8], LOSS: {"from": 0, "to": "1%"}})
    assert invoke(["sweep", str(path), "--dry-run"]) == 2
    assert "whole: true" not in capsys.readouterr().err


def test_the_width_and_the_confidence_of_an_interval_may_be_percentages(tmp_path: Path) -> None:
    until = {"metric": "loss", "width": "5%", "confidence": "99%"}
    assert load_sweep(write_sweep(tmp_path, until=until)).until == Until(metric="loss", width=0.05, confidence=0.99)


def test_ranges_include_both_ends(tmp_path: Path) -> None:
    axes = {
        "a": {"key": LOSS, "from": "0%", "to": "10%", "steps": 3},
        "b": {"key": RECEIVERS, "from": 1, "to": 1000, "steps": 4, "scale": "log", "whole": True},
    }
    sweep = load_sweep(write_sweep(tmp_path, axes=axes))
    assert sweep.axes["a"].grid() == [0.0, 0.05, 0.1]
    assert sweep.axes["b"].grid() == [1, 10, 100, 1000]


def test_integer_ranges_list_each_value_once(tmp_path: Path) -> None:
    axes = {"b": {"key": RECEIVERS, "from": 1, "to": 3, "steps": 9, "whole": True}}
    assert load_sweep(write_sweep(tmp_path, axes=axes)).axes["b"].grid() == [1, 2, 3]


@pytest.mark.parametrize(
    ("value", "number"),
    [
        ("1%", 0.01),
        ("10Mbit", 10_000_000),
        ("5ms", 0.005),
        ("60kB", 60_000),
        ("500/s", 500),
        (".5%", 0.005),
        ("5/x", "5/x"),
        (3, 3),
        (0.5, 0.5),
        (True, True),
        ("norm", "norm"),
    ],
)
def test_quantities_are_converted_to_base_units(value: Any, number: Any) -> None:
    assert number_of(value) == number


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([True, False], "bool"),
        ([1, 2], "long"),
        ([1, 0.5], "double"),
        (["1%", 0], "double"),
        (["a", 1], "string"),
        ([True, 1], "string"),
    ],
)
def test_an_axis_has_the_narrowest_type(values: list[Any], kind: str) -> None:
    assert kind_of(values) == kind


def test_zipped_axes_vary_together_and_others_are_crossed(tmp_path: Path) -> None:
    axes = {LOSS: [0, 0.1], RECEIVERS: [1, 2], "duration": [10, 20]}
    points = list(plan_of(tmp_path, axes=axes, zip=[[LOSS, RECEIVERS]]).points())
    assert [tuple(point.values.values()) for point in points] == [(0, 1, 10), (0, 1, 20), (0.1, 2, 10), (0.1, 2, 20)]


def test_points_that_meet_an_exclusion_are_left_out(tmp_path: Path) -> None:
    axes = {LOSS: ["0%", "10%"], RECEIVERS: [1, 2, 3]}
    keys = {"axes": axes, "cases": {"x": {}, "y": {"duration": 9}}}
    wanted = [f"{LOSS} > 5% and {RECEIVERS} in [2, 3]", "case == 'y' and not topology.receivers * 2 == 2"]
    points = list(plan_of(tmp_path, **keys, leave_out=wanted).points())
    found = [(point.case, point.values[LOSS], point.values[RECEIVERS]) for point in points]
    assert found == [("x", "0%", 1), ("x", "0%", 2), ("x", "0%", 3), ("x", "10%", 1), ("y", "0%", 1), ("y", "10%", 1)]
    assert [point.index for point in points] == list(range(6))


def test_a_condition_that_leaves_out_no_point_is_found(tmp_path: Path) -> None:
    axes = {LOSS: ["0%", "10%"], RECEIVERS: [1, 2]}
    conditions = [f"{LOSS} > 5", f"{LOSS} > 5%", f"{RECEIVERS} == 3"]
    plan = plan_of(tmp_path, axes=axes, leave_out=conditions)
    assert plan.idle_conditions() == (f"{LOSS} > 5", f"{RECEIVERS} == 3")
    assert plan_of(tmp_path, axes=axes).idle_conditions() == ()


@pytest.mark.parametrize("method", ["latin-hypercube", "sobol"])
def test_samples_are_stratified_on_every_axis(method: str, tmp_path: Path) -> None:
    axes = {
        LOSS: {"from": 0, "to": 0.1},
        RECEIVERS: {"from": 1, "to": 100, "scale": "log", "whole": True},
        "wire": ["objects", "bytes"],
    }
    plan = plan_of(tmp_path, axes=axes, sample={"method": method, "points": 16})
    points = list(plan.points())
    assert points == list(plan.points())
    assert len(points) == 16
    # Each sixteenth of an axis has one point.
    assert sorted(int(float(point.values[LOSS]) * 160) for point in points) == list(range(16))
    assert [point.values["wire"] for point in points].count("bytes") == 8


def test_one_axis_may_set_several_keys(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, axes={"size": {"key": ["protocol.block", "protocol.parity"], "values": [8, 16]}})
    run = plan.runs(next(plan.points()), 0, 1)[0]
    assert '"block":8' in run.scenario
    assert '"parity":8' in run.scenario


def test_a_scenario_file_is_found_beside_the_sweep(tmp_path: Path) -> None:
    import yaml

    (tmp_path / "base.yaml").write_text(yaml.safe_dump({"name": "b", **BASE}))
    assert plan_of(tmp_path, scenario="base.yaml").base["protocol"]["rate"] == "10Mbit"
