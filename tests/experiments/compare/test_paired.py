"""Paired differences and Student's distribution, compared with printed tables."""

from math import inf, isinf

import pytest

from experiments.compare.paired import MANY, difference, student, student_quantile

TABLE = {1: 12.7062, 2: 4.3027, 3: 3.1824, 4: 2.7764, 9: 2.2622, 10: 2.2281, 30: 2.0423, 100: 1.9840}
"""97.5 % points of Student's t by degrees of freedom, from any table."""


@pytest.mark.parametrize("freedom", TABLE)
def test_quantiles_agree_with_the_table(freedom: int) -> None:
    assert student_quantile(0.975, freedom) == pytest.approx(TABLE[freedom], abs=6e-5)


@pytest.mark.parametrize("p", [0.9, 0.975, 0.995])
def test_the_series_for_many_degrees_of_freedom_continues_the_sum(p: float) -> None:
    sum_, series = student_quantile(p, MANY), student_quantile(p, MANY + 1)
    assert 0 < sum_ - series < 3e-4
    assert student(series, MANY + 1) == pytest.approx(p, abs=1e-8)


def test_the_distribution_is_symmetric() -> None:
    assert student(0.0, 5) == 0.5
    assert student(1.3, 4) + student(-1.3, 4) == pytest.approx(1.0)


def test_a_constant_difference_has_an_interval_of_zero_width() -> None:
    gap = difference([11.0, 52.0, 93.0], [10.0, 51.0, 92.0])
    assert (gap.mean, gap.low, gap.high, gap.pairs) == (1.0, 1.0, 1.0, 3)
    assert gap.clear


def test_the_interval_is_students_interval() -> None:
    gap = difference([1.0, 2.0, 3.0, 4.0], [0.0, 0.0, 0.0, 0.0])
    assert gap.high - gap.mean == pytest.approx(3.1824 * (5 / 3) ** 0.5 / 2, rel=1e-4)
    assert not difference([1.0, -1.0], [0.0, 0.0]).clear


def test_one_pair_has_no_interval() -> None:
    gap = difference([3.0], [1.0])
    assert gap.mean == 2.0
    assert isinf(gap.high)
    assert gap.low == -inf
    assert not gap.clear
