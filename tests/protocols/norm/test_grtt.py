"""The sender's estimate of the group round-trip time (GRTT), and its probe intervals."""

from math import inf

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocols.norm.grtt import RTT_FLOOR, GrttEstimator
from protocols.norm.quantise import rtt_code, rtt_seconds
from tests.protocols.norm.scenes import quick


def estimator(**settings: float) -> GrttEstimator:
    return GrttEstimator(quick(**{"rate": 1e9, "grtt": 0.1, **settings}))


def test_the_initial_estimate_has_the_code_of_nrl_norm() -> None:
    grtt = estimator(grtt=0.25)
    assert grtt.code == 148
    assert grtt.advertised == pytest.approx(0.2663, abs=1e-4)


def test_a_larger_sample_raises_the_estimate_at_once_by_three_quarters_of_the_difference() -> None:
    grtt = estimator()
    assert grtt.respond(0.2)
    assert grtt.measured == pytest.approx(0.25 * 0.1 + 0.75 * 0.2)
    assert grtt.advertised == rtt_seconds(rtt_code(grtt.measured))


def test_the_bound_of_the_advertised_grtt_yields_to_the_time_of_a_packet() -> None:
    grtt = estimator(rate=125.0, segment=1400, grtt_max=10.0)
    assert grtt.advertised >= 1444 / 125
    grtt.respond(100.0)
    assert rtt_seconds(rtt_code(10.0)) < grtt.advertised < 13.0


def test_smaller_samples_change_nothing_before_the_next_probe() -> None:
    grtt = estimator()
    assert not grtt.respond(0.03)
    assert grtt.measured == 0.1


def test_at_a_probe_the_estimate_decreases_by_at_most_a_tenth() -> None:
    grtt = estimator()
    grtt.respond(0.03)
    assert grtt.probed(10.0)
    assert grtt.measured == pytest.approx(0.09)


def test_the_largest_sample_counts() -> None:
    grtt = estimator()
    for sample in (0.02, 0.095, 0.01):
        grtt.respond(sample)
    grtt.probed(10.0)
    assert grtt.measured == pytest.approx(0.095)


def test_the_sample_that_raised_the_estimate_counts_at_the_next_probe() -> None:
    grtt = estimator()
    for sample in (0.02, 0.2, 0.02):
        grtt.respond(sample)
    assert not grtt.probed(10.0)
    assert grtt.measured == pytest.approx(0.175)


def test_the_estimate_is_the_round_trip_time_of_the_farthest_of_unequal_receivers() -> None:
    grtt = estimator()
    for number in range(1, 50):
        for sample in (0.02, 0.4, 0.02):
            grtt.respond(sample)
        grtt.probed(10.0 * number)
        # The farthest answers each probe, so the rest below it is a quarter of what it was.
        assert 0.4 - grtt.measured == pytest.approx(0.3 * 0.25**number)


def test_without_a_sample_the_estimate_is_kept() -> None:
    grtt = estimator()
    assert not grtt.probed(10.0)
    assert not grtt.probed(20.0)
    assert grtt.measured == 0.1


def test_a_sample_counts_for_one_probe_only() -> None:
    grtt = estimator()
    grtt.respond(0.03)
    grtt.probed(10.0)
    assert not grtt.probed(20.0)
    assert grtt.measured == pytest.approx(0.09)


def test_the_estimate_decreases_at_most_once_per_minimum_interval() -> None:
    grtt = estimator(probe_min=1.0)
    grtt.respond(0.03)
    grtt.probed(10.0)
    grtt.respond(0.03)
    assert not grtt.probed(10.9)
    assert grtt.probed(11.0)


def test_the_estimate_converges_to_a_constant_round_trip_time() -> None:
    grtt = estimator(grtt=1.0)
    for i in range(100):
        grtt.respond(0.04)
        grtt.probed(float(10 * i))
    assert grtt.measured == pytest.approx(0.04)


def test_the_advertised_grtt_is_at_least_the_time_of_a_packet() -> None:
    grtt = estimator(rate=1000, segment=956, grtt=0.001)
    assert grtt.advertised >= 1.0
    assert grtt.advertised == rtt_seconds(rtt_code(1.0))


@settings(deadline=None, derandomize=True)
@given(st.lists(st.floats(-10.0, 1e6) | st.just(inf), max_size=20))
def test_any_samples_keep_the_estimate_within_its_bounds(samples: list[float]) -> None:
    grtt = estimator(grtt_max=5.0)
    for i, sample in enumerate(samples):
        grtt.respond(sample)
        grtt.probed(float(10 * i))
        assert RTT_FLOOR <= grtt.measured <= 5.0
        assert grtt.advertised <= rtt_seconds(rtt_code(5.0))


def test_probe_intervals_grow() -> None:
    grtt = estimator(probe_min=1.0, probe_max=30.0)
    intervals = [grtt.next_interval() for _ in range(12)]
    assert intervals[:4] == [1.0, 1.5, 2.25, 3.375]
    assert intervals[-2:] == [30.0, 30.0]


def test_a_longer_round_trip_that_has_passed_is_probed_at_the_shortest_interval() -> None:
    grtt = estimator(probe_min=1.0, probe_max=30.0)
    for _ in range(12):
        grtt.next_interval()
    grtt.respond(5.0)
    assert grtt.next_interval() == 30.0
    probes = 0
    while grtt.measured > 0.1:
        grtt.respond(0.1)
        probes += 1
        grtt.probed(10.0 * probes)
        assert grtt.measured == 0.1 or grtt.next_interval() == 1.0
    assert 30 < probes < 45
    assert [grtt.next_interval() for _ in range(3)] == [1.5, 2.25, 3.375]


def test_an_estimate_that_no_answer_has_raised_is_lowered_at_growing_intervals() -> None:
    grtt = estimator(grtt=0.5, probe_min=1.0, probe_max=30.0)
    intervals = []
    for number in range(1, 5):
        grtt.respond(0.04)
        grtt.probed(100.0 * number)
        intervals.append(grtt.next_interval())
    assert intervals == [1.0, 1.5, 2.25, 3.375]


@pytest.mark.parametrize("jitter", [0.0001, 0.004])
def test_answers_that_vary_by_less_than_a_step_leave_the_growth_of_probe_intervals(jitter: float) -> None:
    grtt = estimator(grtt=0.1, probe_min=1.0, probe_max=30.0)
    intervals = []
    for number in range(1, 10):
        grtt.respond(0.1 + jitter * (number % 3))
        grtt.respond(0.1)
        grtt.probed(100.0 * number)
        intervals.append(grtt.next_interval())
    assert intervals == [min(1.5**n, 30.0) for n in range(9)]


def test_a_change_smaller_than_one_code_is_no_change() -> None:
    grtt = estimator(grtt=0.1)
    assert not grtt.respond(0.1 + 1e-6)
    assert grtt.measured > 0.1
