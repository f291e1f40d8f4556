"""Paired differences and their intervals."""

from math import inf, isinf

import pytest

from experiments.compare.paired import difference


def test_a_constant_difference_has_an_interval_of_zero_width() -> None:
    gap = difference([11.0, 52.0, 93.0], [10.0, 51.0, 92.0])
    assert (gap.mean, gap.low, gap.high, gap.pairs, gap.sd) == (1.0, 1.0, 1.0, 3, 0.0)
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
    assert gap.sd is None
