"""Rates of counters over several times at once, and their peaks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocols.rate_history import WINDOWS, RateHistory
from protocols.snapshot import Rates, Snapshot


def test_one_sample_has_no_rates() -> None:
    history = RateHistory()
    history.add(5.0, {"sent": 100})
    assert history.flows["sent"].total == 100
    assert [rate.current for rate in history.flows["sent"].rates] == [0.0, 0.0, 0.0]
    assert [rate.peak_at for rate in history.flows["sent"].rates] == [None, None, None]


def test_rates_are_means_over_a_second_a_minute_and_five_minutes() -> None:
    history = RateHistory()
    for second in range(601):
        # 10 a second for the first 300 s, then 100 for 290 s, then nothing.
        history.add(float(second), {"sent": 10 * min(second, 300) + 100 * max(0, min(second, 590) - 300)})
    now, minute, five = history.flows["sent"].rates
    assert now.current == 0.0
    assert minute.current == pytest.approx(100 * 50 / 60)
    assert five.current == pytest.approx(100 * 290 / 300, rel=0.01)
    assert (now.peak, now.peak_at) == (100.0, 301.0)
    assert minute.peak == pytest.approx(100.0)
    assert 360.0 <= float(minute.peak_at or 0) <= 361.0


def test_a_counter_that_begins_anew_counts_from_zero_and_a_new_one_too() -> None:
    history = RateHistory()
    history.add(0.0, {"sent": 1000})
    history.add(1.0, {"sent": 1010})
    history.add(2.0, {"sent": 4, "lost": 6})
    assert history.flows["sent"].total == 4
    assert [rate.current for rate in history.flows["sent"].rates] == [4.0, 7.0, 7.0]
    assert history.flows["lost"].rates[0].current == 6.0


def test_a_sample_at_the_same_time_or_earlier_changes_nothing() -> None:
    history = RateHistory()
    history.add(1.0, {"sent": 1})
    history.add(2.0, {"sent": 3})
    before = history.flows
    history.add(2.0, {"sent": 9})
    history.add(0.5, {"sent": 9})
    assert history.flows is before


def test_what_is_kept_is_bounded_however_often_samples_come() -> None:
    history = RateHistory()
    for number in range(20_000):
        history.add(number / 10, {"sent": number})
    assert max(len(samples) for _, samples in history._windows) < 130
    assert [round(rate.current, 6) for rate in history.flows["sent"].rates] == [10.0, 10.0, 10.0]


@given(st.lists(st.tuples(st.integers(1, 5), st.integers(0, 1000)), min_size=1, max_size=60))
def test_rates_are_those_of_snapshots(steps: list[tuple[int, int]]) -> None:
    history, plain = RateHistory(), [Rates(window=window) for window in WINDOWS]
    at = total = 0
    for seconds, more in steps:
        at, total = at + seconds, total + more
        history.add(float(at), {"sent": total})
        wanted = [rates.add(float(at), Snapshot("session", "", {"sent": total})).values.get("sent", 0.0) for rates in plain]
        assert [rate.current for rate in history.flows["sent"].rates] == pytest.approx(wanted)
