"""How a publisher follows brakes: multiplicative decrease, additive increase, and back to its rate when nobody brakes."""

import itertools

import pytest

from protocols.fjm2.braking import FIRST, LEAST, STEP, Braking
from protocols.tunnel.messages import Brake

TOP = 1e6


def brake(lost: float = 0.0, ring: float = 0.0) -> Brake:
    """Return a brake with these shares."""
    return Brake(1, round(65_535 * ring), round(65_535 * lost))


def test_losses_lower_the_rate_to_less_than_gets_through() -> None:
    braking = Braking(TOP)
    braking.hear(brake(), True, 0.01, 0.0)
    before = braking.rate
    assert before == pytest.approx(TOP / FIRST, rel=0.1)
    braking.hear(brake(lost=0.4), True, 0.01, 0.1)
    assert 0.8 * 0.6 * before < braking.rate < 0.6 * before
    # The next report still has losses of the old rate.
    after = braking.rate
    braking.hear(brake(lost=0.4), True, 0.01, 0.2)
    assert braking.rate == after
    braking.hear(brake(lost=0.4), True, 0.01, 0.3)
    assert braking.rate < after


def test_losses_that_come_late_lower_the_rate_once() -> None:
    # The queue of a router is full, and what is lost in it is told half a second later.
    braking = Braking(TOP)
    braking.hear(brake(), True, 0.5, 0.0)
    before = braking.rate
    for number in range(1, 6):
        braking.hear(brake(lost=0.4), True, 0.5, number / 10)
    assert 0.8 * 0.6 * before < braking.rate < 0.6 * before
    braking.hear(brake(lost=0.5), True, 0.5, 0.6)
    assert braking.rate < 0.5 * before


def test_a_full_ring_lowers_the_rate() -> None:
    braking = Braking(TOP)
    braking.hear(brake(), True, 0.01, 0.0)
    before = braking.rate
    braking.hear(brake(ring=1.0), True, 0.01, 0.1)
    assert braking.rate < 0.8 * before


def test_a_queue_that_has_to_drain_lowers_the_rate_once() -> None:
    braking = Braking(TOP)
    braking.hear(brake(), True, 0.01, 0.0)
    braking.hear(brake(lost=0.2, ring=0.6), True, 0.01, 0.1)
    after = braking.rate
    for number in range(2, 7):
        braking.hear(brake(lost=0.1, ring=0.6), True, 0.01, number / 10)
    assert braking.rate == after
    braking.hear(brake(ring=0.6), True, 0.01, 1.0)
    assert 0.9 * after < braking.rate < after


def test_the_rate_does_not_grow_while_a_quarter_of_the_ring_is_in_use() -> None:
    braking = Braking(TOP)
    braking.hear(brake(), True, 0.01, 0.0)
    held = braking.rate
    braking.hear(brake(ring=0.3), True, 0.01, 0.1)
    assert braking.rate == held
    braking.hear(brake(ring=0.2), True, 0.01, 0.2)
    assert braking.rate > held


def test_the_rate_grows_by_equal_steps_while_it_is_used() -> None:
    braking = Braking(TOP)
    braking.hear(brake(), True, 0.01, 0.0)
    braking.hear(brake(lost=0.1), True, 0.01, 0.1)
    rates = []
    for number in range(2, 6):
        rates.append(braking.rate)
        braking.hear(brake(), True, 0.01, number / 10)
    assert [b - a for a, b in itertools.pairwise(rates)] == pytest.approx([STEP * TOP] * 3)
    held = braking.rate
    braking.hear(brake(), False, 0.01, 1.0)
    assert braking.rate == held


def test_the_rate_has_bounds_and_returns_when_nobody_brakes() -> None:
    braking = Braking(TOP)
    for number in range(100):
        braking.hear(brake(lost=1.0), True, 0.01, number / 5)
    assert braking.rate == TOP / LEAST
    assert not braking.is_over(20.5)
    assert braking.is_over(21.0)
    assert braking.rate == TOP
    assert not braking.is_over(30.0)
    for number in range(10_000):
        braking.hear(brake(), True, 0.01, 30 + number / 10)
    assert braking.rate == TOP
