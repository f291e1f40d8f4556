"""Packets over time are counted in at most about sixty intervals of a round length."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.inspection.interval_counts import IntervalCounts, nice_interval


@pytest.mark.parametrize(("span", "interval"), [(1.0, 0.02), (60.0, 1.0), (61.0, 2.0), (0.0, 1e-6), (299.0, 5.0)])
def test_intervals_have_round_lengths(span: float, interval: float) -> None:
    assert nice_interval(span) == pytest.approx(interval)


@given(st.floats(0, 1e10))
def test_any_span_has_a_bounded_number_of_intervals(span: float) -> None:
    assert re.fullmatch(r"[125]\.0+e[+-]\d+", f"{nice_interval(span):.9e}")
    assert 1 <= IntervalCounts(span).count <= 61


def test_messages_outside_the_span_count_in_the_first_and_last_interval() -> None:
    timeline = IntervalCounts(1.0)
    for time in (0.0, 0.019, 0.021, 1.0, -5.0, 7.0):
        timeline.add("data", time, 100)
    counts = timeline.packets["data"]
    assert (counts[0], counts[1], counts[-1], sum(counts)) == (3, 1, 2, 6)
    assert sum(timeline.octets["data"]) == 600
