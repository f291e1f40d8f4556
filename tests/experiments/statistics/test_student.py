"""Student's distribution, compared with printed tables and with scipy."""

import pytest

from experiments.statistics.student import MANY, student, student_quantile

TABLE = {1: 12.7062, 2: 4.3027, 3: 3.1824, 4: 2.7764, 9: 2.2622, 10: 2.2281, 30: 2.0423, 100: 1.9840}
"""97.5 % points of Student's t by degrees of freedom, from any table."""


@pytest.mark.parametrize("freedom", TABLE)
def test_quantiles_agree_with_the_table(freedom: int) -> None:
    assert student_quantile(0.975, freedom) == pytest.approx(TABLE[freedom], abs=6e-5)


@pytest.mark.parametrize("p", [0.6, 0.9, 0.975, 0.9995])
def test_distribution_and_quantiles_agree_with_scipy(p: float) -> None:
    t = pytest.importorskip("scipy.stats").t
    for freedom in (1, 2, 3, 4, 7, 29, 199, 200, 201, 5000):
        assert student_quantile(p, freedom) == pytest.approx(t.ppf(p, freedom), rel=2e-8)
        assert student(1.7, freedom) == pytest.approx(t.cdf(1.7, freedom), abs=1e-12)


@pytest.mark.parametrize("p", [0.9, 0.975, 0.995])
def test_the_series_for_many_degrees_of_freedom_continues_the_sum(p: float) -> None:
    sum_, series = student_quantile(p, MANY), student_quantile(p, MANY + 1)
    assert 0 < sum_ - series < 3e-4
    assert student(series, MANY + 1) == pytest.approx(p, abs=1e-8)


def test_the_distribution_is_symmetric() -> None:
    assert student(0.0, 5) == 0.5
    assert student(1.3, 4) + student(-1.3, 4) == pytest.approx(1.0)
