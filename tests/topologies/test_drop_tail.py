"""The analytic drop-tail queue against one that is served packet by packet."""

from collections import deque
from collections.abc import Callable
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.topologies.offers import STEPS, timed
from topologies.drop_tail import DropTailQueue

RATE = 100.0


def _constant(when: float) -> float:
    del when
    return RATE


def served(offers: list[tuple[float, int]], limit: float, rate_at: Callable[[float], float] = _constant) -> list[float | None]:
    """Simulate the queue event by event; returns the end of transmission of each packet, None if it is dropped.

    A packet is sent at the rate of the time at which its transmission begins.
    """
    found: list[float | None] = [None] * len(offers)
    waiting: deque[int] = deque()
    busy_until = -inf
    for number, (now, size) in enumerate(offers):
        while waiting and busy_until <= now:
            first = waiting.popleft()
            found[first] = busy_until = busy_until + offers[first][1] / rate_at(busy_until)
        if busy_until <= now:
            found[number] = busy_until = now + size / rate_at(now)
        elif len(waiting) < limit:
            waiting.append(number)
    while waiting:
        first = waiting.popleft()
        found[first] = busy_until = busy_until + offers[first][1] / rate_at(busy_until)
    return found


@given(STEPS, st.sampled_from([None, 0, 2]))
def test_packets_leave_when_an_event_loop_sends_them_and_drop_where_it_drops(
    steps: list[tuple[float, int]], limit: int | None
) -> None:
    offers = timed(steps)
    queue = DropTailQueue(RATE, limit)
    found = [queue.offer(size, now) for now, size in offers]
    assert found == served(offers, inf if limit is None else limit)


# Halved and doubled rates leave sums of binary fractions exact, and no packet is offered or sent at the time of a change.
CHANGES = st.lists(
    st.tuples(st.integers(0, 40), st.sampled_from([32.0, 64.0, 128.0, 256.0])), max_size=4, unique_by=lambda c: c[0]
)


@given(STEPS, st.sampled_from([None, 0, 2]), CHANGES)
def test_after_a_change_of_the_rate_those_that_wait_are_sent_at_the_new_one(
    steps: list[tuple[float, int]], limit: int | None, changes: list[tuple[int, float]]
) -> None:
    offers = [(round(when * 64) / 64, size) for when, size in timed(steps)]
    turns = [(at + 1 / 1024, rate) for at, rate in sorted(changes)]
    queue = DropTailQueue(128.0, limit)
    queue.remember()
    ends: list[float | None] = []
    events: list[tuple[float, int | None, float]] = [(now, size, 0.0) for now, size in offers]
    for now, size, rate in sorted([*events, *((at, None, rate) for at, rate in turns)], key=lambda event: event[0]):
        if size is not None:
            ends.append(queue.offer(size, now))
        else:
            begin, factor = queue.change_rate(rate, now)
            ends = [end if end is None or end <= begin else begin + (end - begin) * factor for end in ends]

    def rate_at(when: float) -> float:
        return [128.0, *(rate for at, rate in turns if at <= when)][-1]

    assert ends == served(offers, inf if limit is None else limit, rate_at)


def test_the_packet_in_transmission_does_not_wait() -> None:
    queue = DropTailQueue(RATE, 1)
    assert [queue.offer(100, 0.0) for _ in range(3)] == [1.0, 2.0, None]
    assert [queue.waiting(now) for now in (0.0, 1.0, 2.0)] == [1, 0, 0]


def test_without_a_limit_no_departures_are_kept() -> None:
    queue = DropTailQueue(RATE, None)
    assert [queue.offer(100, 0.0) for _ in range(3)] == [1.0, 2.0, 3.0]
    assert queue.departures is None


@pytest.mark.parametrize("limit", [None, 1])
def test_advancing_equals_offering_packets_to_an_idle_queue(limit: int | None) -> None:
    offered, advanced = DropTailQueue(RATE, limit), DropTailQueue(RATE, limit)
    for number in range(3):
        offered.offer(100, 2.0 * number)
    advanced.advance(5.0)
    following = [(4.5, 100), (4.5, 100), (4.5, 100), (9.0, 100)]
    assert [advanced.offer(size, now) for now, size in following] == [offered.offer(size, now) for now, size in following]
