"""Fixed and adaptive intervals of timers (Floyd et al. 1997, section VII-A)."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from protocols.rng import Rng
from protocols.srm.config import SrmConfig
from protocols.srm.intervals import Interval, repair_interval, request_interval
from protocols.srm.member import Member


def intervals(members: int = 20, **settings: Any) -> tuple[Interval, Interval]:
    """Return the intervals of request and of repair timers in a group of so many members."""
    group = cast(Member, SimpleNamespace(group_size=lambda: members))
    config = SrmConfig(**settings)
    return request_interval(config, group), repair_interval(config, group)


def lose(interval: Interval, duplicates: int, losses: int, delay: float = 0.5) -> None:
    """Let an interval see so many losses, each with so many duplicates and this delay in round-trip times."""
    for _ in range(losses):
        interval.on_loss()
        interval.on_answer(delay)
        for _ in range(duplicates):
            interval.on_duplicate(None, 0.0)


def test_waits_are_between_the_start_and_start_and_width_distances() -> None:
    interval, rng = Interval(2.0, 3.0), Rng(1)
    waits = [interval.draw(0.1, rng) for _ in range(1000)]
    assert 0.2 <= min(waits) < 0.21
    assert 0.49 < max(waits) < 0.5


@pytest.mark.parametrize("settings", [{"timers": "fixed"}, {"c1": 1.0, "c2": 0.0, "d1": 1.0, "d2": 0.0}])
def test_fixed_timers_and_timers_without_a_random_part_never_change(settings: dict[str, Any]) -> None:
    for interval in intervals(**settings):
        before = interval.start, interval.width
        lose(interval, 5, 20, delay=9.0)
        interval.on_sent()
        assert (interval.start, interval.width) == before


def test_many_duplicates_widen_both_intervals_up_to_their_bounds() -> None:
    for interval in intervals():
        lose(interval, 3, 10)
        once = interval.start, interval.width
        lose(interval, 3, 1)
        assert interval.width == pytest.approx(once[1] + 0.5)
        lose(interval, 3, 2000)
        assert interval.width == 16.0 * 20
    request, repair = intervals()
    lose(request, 3, 100)
    lose(repair, 3, 100)
    assert request.start == 2.0
    assert repair.start == pytest.approx(1.301, abs=1e-3)


def test_long_delays_without_duplicates_narrow_the_width_to_its_lower_bound() -> None:
    for interval in intervals():
        lose(interval, 3, 10)
        wide = interval.width
        lose(interval, 0, 20, delay=0.5)
        assert interval.width == pytest.approx(wide, abs=3.1)
        lose(interval, 0, 500, delay=4.0)
        assert (interval.start, interval.width) == (0.5, 1.0)


def test_who_sends_begins_earlier() -> None:
    request, _ = intervals()
    request.on_sent()
    assert request.start == pytest.approx(1.95)


def test_a_duplicate_from_much_farther_away_narrows_the_width_although_there_are_many() -> None:
    request, _ = intervals()
    lose(request, 3, 10)
    before = request.width
    request.on_duplicate(0.02, 0.031)
    request.on_loss()
    assert request.width == pytest.approx(before - 0.1)
    request.on_duplicate(0.02, 0.029)
    request.on_loss()
    assert request.width > before - 0.1


def test_the_width_of_repair_timers_begins_at_the_root_of_the_group_size_and_follows_its_estimate() -> None:
    size = 100
    group = cast(Member, SimpleNamespace(group_size=lambda: size))
    interval = repair_interval(SrmConfig(d2=1.5), group)
    interval.on_loss()
    assert interval.width == pytest.approx(15.0)
    size = 25
    interval.on_loss()
    assert interval.width == pytest.approx(7.5, abs=0.6)


def test_large_groups_widen_in_larger_steps() -> None:
    _, repair = intervals(members=320)
    lose(repair, 3, 10)
    before = repair.width
    lose(repair, 3, 1)
    assert repair.width == pytest.approx(before + 5.0)
