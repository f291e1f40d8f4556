"""Theory and measurement, point by point."""

from pathlib import Path

import pytest

from experiments.analysis.derived import DERIVED
from experiments.analysis.formulas import FORMULAS
from experiments.analysis.overlay import overlay, parse_formula, predict
from experiments.analysis.point_scenarios import PointScenarios, flat
from experiments.analysis.runs import Runs
from experiments.sweep.spec.metrics import METRICS
from experiments.theory import multicast as theory
from protocols.errors import UsageError


def test_runs_generated_by_a_formula_agree_with_it(runs: Runs, folder: Path) -> None:
    rows = overlay(runs, parse_formula("arq"), PointScenarios(folder))
    assert {row.keys["protocol.name"] for row in rows} == {"srm"}
    assert len(rows) == 6
    for row in rows:
        assert row.expected == pytest.approx(theory.repetition(row.keys["topology.receivers"], row.keys["loss"]))
        assert row.residual is not None
        assert row.holds == "yes"
        assert abs(row.residual) < 4
        assert (row.residual > 0) == (row.mean > row.expected)


def test_runs_generated_otherwise_disagree(runs: Runs, folder: Path) -> None:
    rows = overlay(runs, parse_formula("fec"), PointScenarios(folder))
    assert {row.keys["protocol.name"] for row in rows} == {"norm"}
    assert {row.holds for row in rows} == {"no"}


def test_an_argument_can_be_given_as_a_number_or_by_another_key(runs: Runs, folder: Path) -> None:
    rows = overlay(runs, parse_formula("arq:loss=0.5,receivers=protocol.segment"), PointScenarios(folder))
    assert {row.expected for row in rows} == {theory.repetition(1400, 0.5)}


def test_a_formula_with_unknown_arguments_is_refused(runs: Runs, folder: Path) -> None:
    with pytest.raises(UsageError, match=r"no point sets receivers; give it as arq:receivers=KEY or =NUMBER"):
        overlay(runs, parse_formula("arq:receivers=nowhere"), PointScenarios(folder))


def test_a_formula_for_another_kind_of_network_is_refused(runs: Runs, folder: Path) -> None:
    with pytest.raises(UsageError, match="it applies to no point of this sweep"):
        overlay(runs, parse_formula("single-mac:rate=1e8"), PointScenarios(folder))


def test_a_formula_of_a_metric_that_was_not_stored_is_refused(runs: Runs, folder: Path) -> None:
    with pytest.raises(UsageError, match="it predicts requests_per_loss, which no run here has"):
        overlay(runs, parse_formula("nacks"), PointScenarios(folder))


@pytest.mark.parametrize(
    ("text", "message"),
    [("nothing", "--theory: value 'nothing' is not allowed; one of nacks,"), ("arq:x=1", "arq takes argument=number or")],
)
def test_a_mistyped_formula_is_a_one_line_error(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        parse_formula(text)


def test_every_formula_predicts_a_known_metric() -> None:
    assert all(formula.metric in {*METRICS, *DERIVED} for formula in FORMULAS.values())


def test_derived_metrics_use_stored_metrics_only() -> None:
    assert all(set(made.needs) <= METRICS.keys() for made in DERIVED.values())
    assert not DERIVED.keys() & METRICS.keys()


SUPPRESSED = {"topology.receivers": 100, "topology.link.up.delay": 0.025, "protocol.name": "norm"}
SUPPRESSED |= {"protocol.gsize": 100, "protocol.backoff": 4, "protocol.grtt": 0.1}
CODED = {"protocol.name": "norm", "protocol.parity": 4, "protocol.block": 20, "protocol.segment": 1000}
CODED |= {"topology.receivers": 10, "topology.link.down.loss": 0.1, "workload.0.size": 45_000}
BURSTS = {"model": "gilbert-elliott", "p": 0.1, "r": 0.3, "loss_bad": 1.0, "loss_good": 0.0}
MAC = {"topology.nodes.router.mac": "single", "topology.nodes.router.duplex": "half", "protocol.segment": 1440}


@pytest.mark.parametrize(
    ("name", "point", "value"),
    [
        ("nacks", SUPPRESSED, pytest.approx(theory.nacks(100, 4, 0.5, 100), rel=0.05)),
        ("nacks-rfc5401", SUPPRESSED, pytest.approx(theory.nacks_approximate(100, 4))),
        ("fec", CODED, pytest.approx(theory.integrated(10, 0.1, 15))),
        ("residual", CODED | {"protocol.auto_parity": 2}, pytest.approx(1 - (1 - theory.block_failure(15, 17, 0.1)) ** 3)),
        ("n2-feedback", CODED | {"protocol.name": "n2"}, pytest.approx(theory.tkp_counts(10, 0.1)[2])),
        ("n1-feedback", CODED, None),
        ("single-mac", MAC | {"topology.nodes.router.rate": 1e8}, pytest.approx(46.69, abs=0.1)),
        ("dual-mac", MAC, None),
        ("single-mac", MAC, None),
    ],
)
def test_formulas_take_their_arguments_from_the_scenario(name: str, point: dict[str, object], value: object) -> None:
    assert predict(parse_formula(name), point) == value


def test_an_upper_bound_holds_for_values_below_it() -> None:
    assert FORMULAS["single-mac"].ceiling
    assert not FORMULAS["nacks"].ceiling


def test_independent_losses_predict_their_probability() -> None:
    values = dict(flat({"down": {"loss": {"model": "bernoulli", "p": 0.1}}, "up": {"loss": {"model": "perfect"}}, "n": [1, 2]}))
    assert (values["down.loss"], values["up.loss"], values["n.1"]) == (0.1, 0.0, 2)
    assert "burst.loss" not in dict(flat({"burst": {"loss": BURSTS}}))


def test_the_scenario_of_a_point_is_the_base_with_its_axis_values(folder: Path) -> None:
    point = PointScenarios(folder).at({"topology.receivers": 50, "protocol.name": "srm", "loss": 0.1})
    assert (point["topology.receivers"], point["protocol.name"], point["topology.link.down.loss"]) == (50, "srm", 0.1)
    assert point["name"] == "made-up"
