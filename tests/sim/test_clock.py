"""A host's clock: never back, exact while nothing is done to it, and late by no rounding."""

from math import inf

from hypothesis import given
from hypothesis import strategies as st

from sim.clock import Clock

TIMES = st.lists(st.floats(0.0, 100.0), min_size=1, max_size=20)
DOINGS = st.lists(
    st.tuples(st.floats(0.0, 10.0), st.sampled_from(["drift", "step", "read"]), st.floats(0.1, 10.0)), max_size=30
)


@given(TIMES)
def test_an_untouched_clock_shows_simulated_time(times: list[float]) -> None:
    clock = Clock()
    assert [clock.read(now) for now in sorted(times)] == sorted(times)
    assert clock.when(max(times) + 1.5) == max(times) + 1.5
    assert clock.when(inf) == inf


@given(DOINGS)
def test_no_clock_runs_back_and_a_time_waited_for_is_later_than_now(doings: list[tuple[float, str, float]]) -> None:
    clock, now, shown = Clock(), 0.0, 0.0
    for wait, what, amount in doings:
        now += wait
        if what == "drift":
            clock.drift(now, amount)
        elif what == "step":
            clock.step(now, amount)
        looks = [clock.look(now), clock.look(now)]
        local = clock.read(now)
        assert looks == [local, local]
        assert local >= shown
        shown = local
        assert clock.when(local) <= now
        assert clock.when(local + 1e-12) > now or local + 1e-12 == local
        due = clock.when(local + amount)
        # The line is inverted to within rounding.
        assert abs(due - now - amount / clock.speed) < 1e-6


def test_a_fast_clock_gains_and_a_step_jumps() -> None:
    clock = Clock()
    clock.drift(10.0, 1.5)
    assert clock.read(12.0) == 13.0
    clock.step(12.0, 5.0)
    assert clock.read(12.0) == 18.0
    assert clock.when(21.0) == 14.0
    assert clock.when(15.0) <= 12.0
