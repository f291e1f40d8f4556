"""The test of one metric of a twin: its verdict, its nominal error rate, and the runs that would do."""

from math import inf, sqrt

import numpy as np
import pytest

from experiments.compare.twin.equivalence import equivalence_test
from experiments.statistics.student import student
from experiments.statistics.verdicts import Verdict


def two_tests(gaps: np.ndarray, margin: float) -> bool:
    """Decide by the p-values of two one-sided t tests at 5 %."""
    n = len(gaps)
    error = gaps.std(ddof=1) / sqrt(n)
    below = 1 - student(float((gaps.mean() + margin) / error), n - 1)
    above = student(float((gaps.mean() - margin) / error), n - 1)
    return bool(max(below, above) < 0.05)


def test_the_interval_decides_like_two_one_sided_tests() -> None:
    rng = np.random.default_rng(5)
    decisions = []
    for _ in range(300):
        first = rng.normal(10.0, 1.0, 6)
        second = first + rng.normal(rng.uniform(-1.5, 1.5), 0.5, 6)
        found = equivalence_test(first.tolist(), second.tolist(), 0.1)
        equivalent = found.verdict is Verdict.EQUIVALENT
        assert equivalent == two_tests(second - first, found.margin)
        decisions.append(equivalent)
    assert 30 < sum(decisions) < 270


def test_a_difference_at_the_margin_passes_in_5_percent_of_cases() -> None:
    # A difference at the margin passes in at most 5 % of cases: 2000 draws, standard error 0.5 %.
    rng = np.random.default_rng(6)
    draws, runs, margin = 2000, 8, 1.0
    passed = 0
    for _ in range(draws):
        gaps = rng.normal(margin, 0.3, runs)
        passed += equivalence_test([10.0] * runs, (10.0 + gaps).tolist(), 0.1).verdict is Verdict.EQUIVALENT
    assert passed / draws == pytest.approx(0.05, abs=4 * sqrt(0.05 * 0.95 / draws))


def test_equal_values_are_equivalent_and_a_single_pair_decides_nothing() -> None:
    assert equivalence_test([3.0, 4.0, 5.0], [3.0, 4.0, 5.0], 0.1).verdict is Verdict.EQUIVALENT
    alone = equivalence_test([3.0], [3.0], 0.1)
    assert alone.verdict is Verdict.NOT_SHOWN
    assert (alone.gap.high, alone.runs_needed) == (inf, None)


def test_differences_that_do_not_vary_are_judged_by_their_value() -> None:
    first = [1.0, 2.0, 3.0]
    assert equivalence_test(first, [1.1, 2.1, 3.1], 0.1).verdict is Verdict.EQUIVALENT
    assert equivalence_test(first, [1.5, 2.5, 3.5], 0.1).verdict is Verdict.DIFFERENT
    # A margin of 0 is met by equal values, and 0.1 + 0.2 equals 0.3 but for rounding.
    assert equivalence_test([0.0, 0.0], [0.0, 0.0], 0.2).verdict is Verdict.EQUIVALENT
    assert equivalence_test([0.3, 0.3], [0.1 + 0.2, 0.1 + 0.2], 1e-17).verdict is Verdict.EQUIVALENT


def test_too_much_variance_is_not_shown_and_names_the_runs_that_would_do() -> None:
    found = equivalence_test([10.0] * 4, [9.0, 11.0, 10.5, 9.5], 0.1)
    assert found.verdict is Verdict.NOT_SHOWN
    assert found.runs_needed is not None
    assert 8 <= found.runs_needed <= 12
    assert equivalence_test([10.0] * 4, [10.1, 9.9, 10.0, 10.0], 0.1).runs_needed is None


def test_small_counts_have_an_absolute_margin_of_a_few_packets() -> None:
    first, second = [2.0, 3.0, 2.0, 3.0], [3.0, 4.0, 3.0, 4.0]
    assert equivalence_test(first, second, 0.2).verdict is Verdict.DIFFERENT
    assert equivalence_test(first, second, 0.2, absolute=2.0).verdict is Verdict.EQUIVALENT
