"""Theory and measurement, point by point."""

from pathlib import Path
from statistics import fmean, stdev

import numpy as np
import pytest

from experiments.analysis.derived import DERIVED
from experiments.analysis.formulas import FORMULAS, parse_formula
from experiments.analysis.overlay import Prediction, overlay, predict
from experiments.analysis.point_scenarios import PointScenarios, flat
from experiments.analysis.runs import Runs
from experiments.analysis.summary import GroupSummary
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


@pytest.mark.parametrize(
    ("text", "given"),
    [
        ("arq:shared=5%", {"shared": 0.05}),
        ("arq:shared=.05", {"shared": 0.05}),
        ("nacks:link_delay=10ms,gsize=protocol.gsize", {"link_delay": 0.01, "gsize": "protocol.gsize"}),
        ("single-mac:rate=100Mbit", {"rate": 1e8}),
    ],
)
def test_an_argument_can_be_a_quantity_with_its_unit(text: str, given: dict[str, float | str]) -> None:
    assert parse_formula(text).given == given


def test_a_formula_with_unknown_arguments_is_refused(runs: Runs, folder: Path) -> None:
    with pytest.raises(UsageError, match=r"; receivers=nowhere is neither a number or quantity nor the key of one"):
        overlay(runs, parse_formula("arq:receivers=nowhere"), PointScenarios(folder))


def test_an_argument_with_a_default_that_is_no_number_is_refused_too(runs: Runs, folder: Path) -> None:
    with pytest.raises(UsageError, match=r"'arq' is not allowed; shared=often is neither a number or quantity nor the"):
        overlay(runs, parse_formula("arq:shared=often"), PointScenarios(folder))


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
        ("fec", CODED | {"topology.link.down.loss": 1.0}, None),
        ("arq", {"topology.receivers": 3, "topology.link.down.loss": 1.0}, None),
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


POINT = {"topology.receivers": 10, "protocol.name": "srm", "loss": 0.1}
NO_FRAME = Runs(None, ("topology.receivers", "protocol.name", "loss"), ("transmissions", "nacks_sent"), 5, 0, "v", ("v",))


def judged(values: list[float], expected: float, folder: Path, margin: float = 0.05) -> Prediction:
    """Compare runs with plain retransmission to one receiver, whose prediction is 1 / (1 - loss)."""
    sd = stdev(values) if len(values) > 1 else None
    ends = {"low": None, "high": None, "boot_low": None, "boot_high": None}
    known = GroupSummary(
        POINT, "transmissions", len(values), 0, fmean(values), sd, **ends, least=0.0, most=0.0, percentiles={}, top=1.0
    )
    formula = parse_formula(f"arq:receivers=1,loss={1 - 1 / expected}")
    (found,) = overlay(NO_FRAME, formula, PointScenarios(folder), [known], margin)
    return found


def test_runs_that_do_not_vary_are_judged_by_their_value(folder: Path) -> None:
    # Four packets of proactive parity for each block of 57 or 58, and nothing more in any of five runs.
    found = judged([306 / 286] * 5, 306 / 286 + 4e-6, folder)
    assert (found.holds, found.residual, found.low, found.high) == ("yes", None, 306 / 286, 306 / 286)
    assert judged([1.0699] * 5, 1.2, folder).holds == "no"
    # The sum of ten equal numbers may differ in the last digit.
    assert judged([0.1 + 0.2 + 0.7699] * 2 + [1.0699] * 3, 1.0699, folder).residual is None


def test_five_runs_are_judged_with_students_t(folder: Path) -> None:
    # Standard error 0.1: the normal interval would reach 1.34, Student's with 4 degrees of freedom 1.42.
    values = [1.2 + 0.2236 * each for each in (-1.2649, -0.6325, 0.0, 0.6325, 1.2649)]
    found = judged(values, 1.4, folder, margin=0.01)
    assert found.residual == pytest.approx(-2.0, abs=0.01)
    assert found.low is not None
    assert found.high is not None
    assert found.low < 1.2 - 2.0 * 0.1 + 0.02
    assert found.high > 1.2 + 2.13 * 0.1
    assert found.holds == "not shown"


def test_few_runs_that_vary_show_nothing_and_name_the_runs_that_would_do(folder: Path) -> None:
    found = judged([1.1, 1.3, 1.2, 1.0, 1.4], 1.2, folder)
    assert found.holds == "not shown"
    assert found.runs_needed is not None
    assert 50 < found.runs_needed < 100
    assert judged([1.1, 1.3, 1.2, 1.0, 1.4] * 20, 1.2, folder).holds == "yes"
    assert judged([1.1, 1.3, 1.2, 1.0, 1.4] * 20, 1.6, folder).holds == "no"


def test_a_single_run_shows_nothing(folder: Path) -> None:
    found = judged([1.2], 1.2, folder)
    assert (found.holds, found.residual, found.low, found.runs_needed) == ("not shown", None, None, None)


def test_the_margin_decides_what_holds(folder: Path) -> None:
    values = [1.20, 1.21, 1.22, 1.23, 1.24]
    assert judged(values, 1.2, folder).holds == "yes"
    assert judged(values, 1.2, folder, margin=0.001).holds == "no"
    assert judged(values, 1.215, folder, margin=0.001).holds == "not shown"


def test_measurements_of_a_formula_that_is_true_are_hardly_ever_said_to_contradict_it(folder: Path) -> None:
    # 1000 draws; the standard error of a rate of 5 % is 0.7 %.
    rng = np.random.default_rng(21)
    for runs, sd in ((2, 0.1), (5, 0.1), (5, 0.02), (30, 0.1)):
        answers = [judged(list(rng.normal(1.2, sd, runs)), 1.2, folder).holds for _ in range(250)]
        assert answers.count("no") <= 0.05 * len(answers)
