"""The ready sweeps can be planned, and small parts of them show the documented results."""

import json
from collections.abc import Mapping
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import pytest

from experiments.analysis.formulas import FormulaRequest
from experiments.analysis.overlay import predict
from experiments.analysis.point_scenarios import flat
from experiments.scenario.scenario import parse
from experiments.sweep.run.single_run import perform
from experiments.sweep.spec.grid import Point, SweepPlan
from experiments.sweep.spec.sweep_file import load_sweep

FOLDER = Path(__file__).parents[3] / "experiments" / "sweeps"
SWEEPS = sorted(path.stem for path in FOLDER.glob("*.yaml"))
NEAR = 4.0
"""Standard errors."""


def plan_of(name: str) -> SweepPlan:
    """Return the plan of a ready sweep."""
    path = FOLDER / f"{name}.yaml"
    return SweepPlan(load_sweep(path), path)


def points(plan: SweepPlan, case: str | None = None, **values: object) -> list[Point]:
    """Return the points of a case with these axis values; dots in names are written as double underscores."""
    wanted = {key.replace("__", "."): value for key, value in values.items()}
    found = [
        point
        for point in plan.points()
        if case in (None, point.case) and all(point.values[key] == value for key, value in wanted.items())
    ]
    assert found, f"no point has {case} {wanted}"
    return found


def measure(plan: SweepPlan, point: Point, metric: str, runs: int) -> list[float]:
    """Measure a metric of the first runs of a point, without Spark."""
    rest = {"backend": "sim", "receivers": False, "series": None, "captures": (), "folder": ""}
    found = [perform({"scenario": run.scenario} | rest)["metrics"][metric] for run in plan.runs(point, 0, runs)]
    return [float(value) for value in found if value is not None]


def theory(plan: SweepPlan, point: Point, name: str) -> float:
    """Return the prediction of a formula for a point."""
    keys: Mapping[str, Any] = dict(flat(parse(json.loads(plan.runs(point, 0, 1)[0].scenario), "point").plain()))
    value = predict(FormulaRequest(name, {}), keys)
    assert value is not None, f"{name} says nothing of {point}"
    return value


def test_there_is_a_ready_sweep_for_each_question() -> None:
    assert SWEEPS == ["baselines", "congestion", "distributor-storm", "fec", "nack-atlas", "router", "storm", "twin"]


def test_without_the_remedies_of_the_distributor_every_subscriber_causes_a_retransmission() -> None:
    plan = plan_of("distributor-storm")
    found = {
        case: fmean(measure(plan, points(plan, case, topology__receivers=20)[0], "repair_multiplicity", 1))
        for case in ("all-three", "no-suppression", "no-merging", "none")
    }
    assert found["all-three"] == 1
    assert found["none"] == pytest.approx(20, abs=1)
    assert 1 < found["no-suppression"] < 5
    assert 1 < found["no-merging"] < 5


@pytest.mark.parametrize("name", SWEEPS)
def test_a_ready_sweep_has_hundreds_of_runs_and_every_point_is_a_valid_scenario(name: str) -> None:
    plan = plan_of(name)
    made = [run for point in plan.points() for run in plan.runs(point, 0, plan.sweep.replications)]
    assert 30 <= len(made) <= 1000
    assert len({run.run_id for run in made}) == len(made)


def test_nacks_of_the_atlas_agree_with_theory_where_its_assumptions_hold() -> None:
    plan, residuals = plan_of("nack-atlas"), []
    for case, receivers, formula in (
        ("shared", 10, "nacks"),
        ("shared", 100, "nacks"),
        ("independent", 100, "nacks-independent"),
    ):
        for point in points(plan, case, topology__receivers=receivers):
            found = measure(plan, point, "requests_per_loss", 10)
            error = stdev(found) / len(found) ** 0.5
            gap = fmean(found) - theory(plan, point, formula)
            residuals.append(gap / error if error else 0.0 if abs(gap) < 1e-6 else float("inf"))
    assert len(residuals) >= 30
    assert sum(abs(residual) <= NEAR for residual in residuals) >= 0.95 * len(residuals), residuals


def test_unequal_rtts_cause_fewer_nacks_than_equal_ones() -> None:
    plan = plan_of("nack-atlas")
    cell = {"topology__receivers": 100, "protocol__backoff": 1, "protocol__gsize": 100}
    equal, spread = (
        fmean(measure(plan, points(plan, case, **cell)[0], "requests_per_loss", 5)) for case in ("shared", "shared-spread")
    )
    assert spread < equal


def test_a_router_with_one_half_duplex_mac_carries_less_than_half_of_its_ethernet_at_every_load() -> None:
    plan = plan_of("router")
    fast = {"protocol__segment": 1440, "topology__nodes__router__cpu": "5us"}
    for case, low, high in (("single-half", 40.0, 50.0), ("single-full", 80.0, 100.0), ("dual", 80.0, 100.0)):
        best = max(measure(plan, point, "goodput_mbit_s", 1)[0] for point in points(plan, case, **fast))
        assert low < best < high, case


@pytest.mark.parametrize("receivers", [10, 30])
@pytest.mark.parametrize("loss", ["1%", "10%"])
def test_receiver_initiated_protocols_need_less_processing(receivers: int, loss: str) -> None:
    plan = plan_of("baselines")
    cell = {"topology__receivers": receivers, "topology__link__down__loss__p": loss}
    n2, n1, a = (fmean(measure(plan, points(plan, name, **cell)[0], "processing_throughput", 3)) for name in ("n2", "n1", "a"))
    assert n2 >= n1 >= a
    expected = theory(plan, points(plan, "a", **cell)[0], "a-throughput")
    assert a == pytest.approx(expected, rel=0.1)


def test_without_hold_off_repairs_are_repeated_and_without_suppression_all_receivers_send_nacks() -> None:
    plan = plan_of("storm")
    cell = {"topology__receivers": 50}

    def mean(case: str, metric: str) -> float:
        return fmean(measure(plan, points(plan, case, **cell)[0], metric, 1))

    assert mean("no-suppression", "requests_per_loss") > 3 * mean("all-three", "requests_per_loss")
    assert mean("no-hold-off", "repair_multiplicity") > 1.5 > mean("all-three", "repair_multiplicity")
    assert mean("no-aggregation", "repair_wait") < mean("all-three", "repair_wait")


def test_parity_repairs_different_losses_at_different_receivers() -> None:
    plan = plan_of("fec")
    cell = {
        "topology__receivers": 100,
        "protocol__block": 64,
        "topology__link__down__loss__p": "5%",
        "topology__link__down__loss__r": "95%",
    }
    for case, formula in (("arq", "arq"), ("on-demand", "fec"), ("proactive", "fec")):
        point = points(plan, case, **cell)[0]
        assert fmean(measure(plan, point, "transmissions", 3)) == pytest.approx(theory(plan, point, formula), rel=0.05), case
