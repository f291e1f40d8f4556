"""The analytic drop-tail queue against one that is served packet by packet."""

from collections import deque
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.topologies.offers import STEPS, timed
from topologies.drop_tail import DropTailQueue

RATE = 100.0


def served(offers: list[tuple[float, int]], limit: float) -> list[float | None]:
    """Simulate the queue event by event; returns the end of transmission of each packet, None if it is dropped."""
    found: list[float | None] = [None] * len(offers)
    waiting: deque[int] = deque()
    busy_until = -inf
    for number, (now, size) in enumerate(offers):
        while waiting and busy_until <= now:
            first = waiting.popleft()
            found[first] = busy_until = busy_until + offers[first][1] / RATE
        if busy_until <= now:
            found[number] = busy_until = now + size / RATE
        elif len(waiting) < limit:
            waiting.append(number)
    while waiting:
        first = waiting.popleft()
        found[first] = busy_until = busy_until + offers[first][1] / RATE
    return found


@given(STEPS, st.sampled_from([None, 0, 2]))
def test_packets_leave_when_an_event_loop_sends_them_and_drop_where_it_drops(
    steps: list[tuple[float, int]], limit: int | None
) -> None:
    offers = timed(steps)
    queue = DropTailQueue(RATE, limit)
    found = [queue.offer(size, now) for now, size in offers]
    assert found == served(offers, inf if limit is None else limit)


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
