"""The three-way verdict errs as seldom as it says, and its power is what it states."""

from collections.abc import Callable
from math import sqrt
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from experiments.statistics.student import student_quantile
from experiments.statistics.verdicts import (
    MOST_RUNS,
    POWER,
    Verdict,
    decide,
    difference_power,
    equivalence_power,
    largest_sd,
    runs_needed,
    shown_excess,
)

DRAWS = 4000
ERROR = sqrt(0.05 * 0.95 / DRAWS)
"""Standard error of a rate of 5 %: 0.34 %."""
Floats = npt.NDArray[np.floating[Any]]

NOISE: dict[str, Callable[[np.random.Generator, tuple[int, int]], Floats]] = {
    "normal": lambda rng, shape: rng.normal(0.0, 0.6, shape),
    "uniform": lambda rng, shape: rng.uniform(-1.0, 1.0, shape),
    "heavy tails (t with 3 degrees of freedom)": lambda rng, shape: 0.5 * rng.standard_t(3, shape),
    "differences of skewed times": lambda rng, shape: rng.lognormal(0, 0.5, shape) - rng.lognormal(0, 0.5, shape),
    "differences of counts": lambda rng, shape: 0.4 * (rng.poisson(1.0, shape) - rng.poisson(1.0, shape)),
}


def rates(gaps: Floats, margin: float = 1.0) -> dict[Verdict, float]:
    """Return how often each verdict is reached from rows of differences."""
    runs = gaps.shape[1]
    means = gaps.mean(axis=1)
    reach = student_quantile(0.95, runs - 1) * gaps.std(axis=1, ddof=1) / sqrt(runs)
    found = [decide(low, high, margin) for low, high in zip((means - reach).tolist(), (means + reach).tolist(), strict=True)]
    return {verdict: found.count(verdict) / len(found) for verdict in Verdict}


@pytest.mark.parametrize("runs", [2, 4, 5, 30])
@pytest.mark.parametrize("noise", NOISE)
def test_neither_verdict_is_given_wrongly_more_often_than_it_may(noise: str, runs: int) -> None:
    rng = np.random.default_rng(11)
    # Two differences of small counts are often equal, and then look as if they did not vary.
    slack = 0.12 if noise == "differences of counts" and runs == 2 else 0.02 if noise != "normal" else 0.0
    at_margin = rates(1.0 + NOISE[noise](rng, (DRAWS, runs)))
    assert at_margin[Verdict.EQUIVALENT] <= 0.05 + slack + 4 * ERROR
    assert at_margin[Verdict.DIFFERENT] <= 0.05 + slack + 4 * ERROR
    # Worlds that are half a margin apart are equivalent, and are hardly ever called different.
    inside = rates(0.5 + NOISE[noise](rng, (DRAWS, runs)))
    assert inside[Verdict.DIFFERENT] <= 0.03 + slack
    beyond = rates(1.5 + NOISE[noise](rng, (DRAWS, runs)))
    assert beyond[Verdict.EQUIVALENT] <= 0.03 + slack


def test_few_runs_that_vary_show_nothing_instead_of_a_difference() -> None:
    rng = np.random.default_rng(12)
    few = rates(rng.normal(0.0, 1.0, (DRAWS, 4)))
    assert few[Verdict.DIFFERENT] < 0.01
    assert few[Verdict.NOT_SHOWN] > 0.7
    many = rates(rng.normal(0.0, 1.0, (DRAWS, 60)))
    assert many[Verdict.EQUIVALENT] > 0.99


def test_differences_that_do_not_vary_are_decided_by_their_value() -> None:
    assert decide(0.0, 0.0, 0.0) is Verdict.EQUIVALENT
    assert decide(1.0, 1.0, 1.0) is Verdict.EQUIVALENT
    assert decide(1.01, 1.01, 1.0) is Verdict.DIFFERENT
    assert decide(-1.01, -1.01, 1.0) is Verdict.DIFFERENT
    # Rounding of floating-point numbers is no difference.
    assert decide(1e-12, 1e-12, 0.0, rounding=1e-9) is Verdict.EQUIVALENT


@pytest.mark.parametrize(("runs", "mean", "sd"), [(2, 0.0, 0.1), (4, 0.3, 0.5), (8, 0.0, 0.9), (30, 0.5, 1.0)])
def test_the_power_of_equivalence_is_that_of_simulated_runs(runs: int, mean: float, sd: float) -> None:
    # The standard error is at most 0.8 %.
    gaps = np.random.default_rng(13).normal(mean, sd, (DRAWS, runs))
    assert rates(gaps)[Verdict.EQUIVALENT] == pytest.approx(equivalence_power(runs, mean, sd, 1.0), abs=0.032)


def test_the_power_of_a_difference_is_that_of_the_noncentral_t_distribution() -> None:
    nct = pytest.importorskip("scipy.stats").nct
    for runs in (2, 4, 5, 30, 300):
        for excess in (0.2, 1.0, 3.0):
            expected = nct.sf(student_quantile(0.95, runs - 1), runs - 1, excess * sqrt(runs))
            assert difference_power(runs, excess, 1.0) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("runs", [2, 3, 4, 8, 1000])
def test_what_is_stated_before_the_runs_is_shown_with_the_stated_power(runs: int) -> None:
    assert equivalence_power(runs, 0.0, largest_sd(runs), 1.0) == pytest.approx(POWER, abs=1e-6)
    assert difference_power(runs, shown_excess(runs), 1.0) == pytest.approx(POWER, abs=1e-6)


@pytest.mark.parametrize(("mean", "sd"), [(0.0, 0.9), (0.5, 0.5), (-0.5, 0.5), (1.5, 2.0), (-3.0, 2.0)])
def test_the_runs_that_would_do_decide_with_the_stated_power(mean: float, sd: float) -> None:
    needed = runs_needed(4, mean, sd, 1.0)
    assert needed is not None
    wanted = Verdict.EQUIVALENT if abs(mean) < 1 else Verdict.DIFFERENT
    # The standard error is 0.6 %.
    shown = rates(np.random.default_rng(14).normal(mean, sd, (DRAWS, needed)))[wanted]
    assert POWER - 0.025 < shown < 0.95
    if needed > 5:
        fewer = rates(np.random.default_rng(15).normal(mean, sd, (DRAWS, needed // 2)))[wanted]
        assert fewer < POWER - 0.05


def test_no_number_of_runs_is_named_where_none_is_known_to_do() -> None:
    assert runs_needed(1, 0.0, None, 1.0) is None
    assert runs_needed(4, 1.0, 0.5, 1.0) is None
    assert runs_needed(4, 0.99, 1.0, 1.0) is None
    assert (runs_needed(4, 0.0, 10.0, 1.0) or 0) <= MOST_RUNS
