"""Queue disciplines: drop-tail, token bucket, RED, CoDel and priority, against reference queues and by their purpose."""

from collections import deque
from itertools import pairwise
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocols.rng import Rng
from tests.topologies.offers import STEPS, timed
from topologies.drop_tail import DropTailQueue
from topologies.ports import CodelPort, Departures, DropTailPort, Markable, Port, PriorityPort, RedPort, TokenPort
from topologies.queues import Codel, Priority, Red
from topologies.service_classes import rank_of


def sent(port: Port, offers: list[tuple[float, int]]) -> dict[int, float]:
    """Return the end of transmission by packet number; the port is woken at its deadlines."""
    found: dict[int, float] = {}
    for number, (now, size) in enumerate(offers):
        while port.deadline <= now:
            found.update(port.wake(port.deadline))
        found.update(port.offer(number, size, now))
    while port.deadline < 1e9:
        found.update(port.wake(port.deadline))
    return found


@given(STEPS, st.sampled_from([None, 0, 2]))
def test_drop_tail_by_packets_codel_that_never_drops_and_one_priority_are_the_queue_of_plain_links(
    steps: list[tuple[float, int]], limit: int | None
) -> None:
    offers = timed(steps)
    queue = DropTailQueue(100.0, limit)
    right = {n: end for n, (now, size) in enumerate(offers) if (end := queue.offer(size, now)) is not None}
    assert sent(DropTailPort(100.0, limit), offers) == right
    assert sent(PriorityPort(100.0, limit), offers) == right
    assert sent(CodelPort(100.0, limit, target=1e9, interval=1.0, ecn=False), offers) == right if limit is not None else True


@given(STEPS, st.integers(0, 900))
def test_drop_tail_by_bytes_does_what_an_event_loop_does(steps: list[tuple[float, int]], limit: int) -> None:
    waiting: deque[tuple[int, int]] = deque()
    service: tuple[float, int] | None = None
    right: dict[int, float] = {}
    offers = timed(steps)
    for number, (now, size) in enumerate([*offers, (1e6, 0)]):
        while service is not None and service[0] <= now:
            end, which = service
            right[which] = end
            service = (end + waiting[0][1] / 100.0, waiting.popleft()[0]) if waiting else None
        if service is None:
            service = (now + size / 100.0, number)
        elif sum(octets for _, octets in waiting) + size <= limit:
            waiting.append((number, size))
    assert sent(DropTailPort(100.0, None, limit), offers) == right


class _Classed(Markable):
    """A packet of a class of service."""

    __slots__ = ("number",)

    def __init__(self, number: int, dscp: int) -> None:
        super().__init__(dscp)
        self.number = number


CLASSES = st.lists(st.sampled_from([0, 1, 8, 10, 14, 40, 46]), min_size=40, max_size=40)


@given(STEPS, CLASSES, st.sampled_from([None, 0, 2]), st.floats(0.0, 5.0))
def test_strict_priority_does_what_an_event_loop_does_however_late_it_is_woken(
    steps: list[tuple[float, int]], classes: list[int], limit: int | None, late: float
) -> None:
    offers = timed(steps)
    waiting: list[tuple[int, int, int]] = []
    service: tuple[float, int] | None = None
    right: dict[int, float] = {}
    for number, (now, size) in enumerate([*offers, (1e6, 0)]):
        while service is not None and service[0] <= now:
            end, which = service
            right[which] = end
            waiting.sort()
            service = (end + waiting[0][2] / 100.0, waiting.pop(0)[1]) if waiting else None
        rank = rank_of(classes[number]) if number < len(offers) else 0
        if service is None:
            service = (now + size / 100.0, number)
        elif limit is None or sum(before == -rank for before, _, _ in waiting) < limit:
            waiting.append((-rank, number, size))
    port, found = PriorityPort(100.0, limit), dict[int, float]()

    def note(departures: Departures) -> None:
        found.update({entry.number: end for entry, end in departures})

    for number, (now, size) in enumerate(offers):
        if port.deadline + late <= now:
            note(port.wake(now))
        note(port.offer(_Classed(number, classes[number]), size, now))
        assert port.deadline == inf or port.deadline > now
    note(port.wake(1e6))
    while port.deadline < inf:
        note(port.wake(port.deadline))
    assert found == {number: end for number, end in right.items() if number < len(offers)}
    assert port.dropped == len(offers) - len(found)


def test_a_packet_of_a_higher_class_overtakes_what_waits_and_not_what_is_being_sent() -> None:
    port = PriorityPort(100.0, 2)
    for number, dscp in enumerate((0, 0, 0, 0, 46, 8)):
        port.offer(_Classed(number, dscp), 100, 0.5)
    assert (port.waiting(0.5), port.dropped, port.deadline) == (4, 1, 1.5)
    # A late call transmits packets at the times at which they should have been.
    assert [(entry.number, end) for entry, end in port.wake(50.0)] == [(4, 2.5), (1, 3.5), (2, 4.5), (5, 5.5)]


def test_a_token_bucket_lets_a_burst_pass_and_then_its_rate() -> None:
    port = TokenPort(1000.0, 2000, None, None)
    assert list(sent(port, [(0.0, 1000)] * 4).values()) == [0.0, 0.0, 1.0, 2.0]
    # The bucket holds the tokens of half a second.
    assert port.offer("late", 1000, 2.5) == (("late", 3.0),)
    assert port.offer("huge", 2001, 9.0) == ()
    assert port.dropped == 1


def poisson(count: int, gap: float, size: int = 1000) -> list[tuple[float, int]]:
    """Return random arrivals."""
    rng, now, offers = Rng(3), 0.0, []
    for _ in range(count):
        now += 2 * gap * rng.uniform()
        offers.append((now, size))
    return offers


def waits(port: Port, offers: list[tuple[float, int]]) -> list[float]:
    """Return the sojourn time of each packet that was sent."""
    return [end - offers[number][0] for number, end in sorted(sent(port, offers).items())]


def test_red_leaves_a_short_queue_alone_and_drops_more_the_longer_it_is() -> None:
    calm = RedPort(1000.0, 60, 1, thresholds=(5, 15), p=0.1, weight=0.02, ecn=False)
    sent(calm, poisson(2000, 1.5))
    assert calm.dropped == 0
    shares = []
    for gap in (0.95, 0.8, 0.5):
        port = RedPort(1000.0, 60, 1, thresholds=(5, 15), p=0.1, weight=0.02, ecn=False)
        sent(port, poisson(3000, gap))
        shares.append(port.dropped / 3000)
    assert shares == sorted(shares)
    # The excess over the rate is dropped: a fraction of 1 - gap.
    assert shares[1:] == pytest.approx([0.2, 0.5], abs=0.03)


def test_red_keeps_the_queue_between_its_thresholds_where_drop_tail_fills_it() -> None:
    offers = poisson(4000, 0.93)
    red = waits(RedPort(1000.0, 200, 1, thresholds=(5, 15), p=0.1, weight=0.02, ecn=False), offers)
    tail = waits(DropTailPort(1000.0, 200), offers)
    assert sum(red[1000:]) / len(red[1000:]) < 20
    assert sum(tail[1000:]) / len(tail[1000:]) > 100


def test_early_drops_of_red_are_spread_evenly() -> None:
    # With the average held half-way, p is 0.05, and distances between drops are uniform on 1 .. 1 / p - 1 (Floyd, Jacobson).
    port = RedPort(1000.0, 10_000, 1, thresholds=(5, 15), p=0.1, weight=1e-12, ecn=False)
    port._average = 10.0
    port.offer(-1, 1_000_000, 0.0)
    fates = [not port.offer(n, 1, 0.0) for n in range(8000)]
    places = [n for n, dropped in enumerate(fates) if dropped]
    gaps = [b - a for a, b in pairwise(places)]
    assert max(gaps) <= 19
    # Mean 10, standard error 5.5 / sqrt(800) = 0.2.
    assert sum(gaps) / len(gaps) == pytest.approx(10.0, abs=0.8)


def test_red_with_ecn_marks_instead_of_dropping() -> None:
    offers = poisson(3000, 1.05)
    port = RedPort(1000.0, 60, 1, thresholds=(1, 30), p=0.1, weight=0.02, ecn=True)
    assert len(sent(port, offers)) == 3000
    assert port.marked > 20
    assert port.dropped == 0


def test_codel_leaves_bursts_alone_and_ends_a_standing_queue() -> None:
    burst = CodelPort(1000.0, 1000, target=5.0, interval=100.0, ecn=False)
    assert len(sent(burst, [(0.0, 1000)] * 50)) == 50
    offers = [(0.95 * n, 1000) for n in range(6000)]
    controlled = waits(CodelPort(1000.0, 1000, target=5.0, interval=100.0, ecn=False), offers)
    tail = waits(DropTailPort(1000.0, 1000), offers)
    assert max(controlled[4000:]) < 20
    assert max(tail) > 200


def test_codel_drops_faster_and_faster_by_the_control_law() -> None:
    port = CodelPort(1000.0, 10_000, target=5.0, interval=100.0, ecn=False)
    offers = [(0.5 * n, 1000) for n in range(3000)]
    times, last = [], 0
    for now, size in offers:
        while port.deadline <= now:
            when = port.deadline
            port.wake(when)
            if port.dropped > last:
                times.append(when)
                last = port.dropped
        port.offer(None, size, now)
    gaps = [b - a for a, b in pairwise(times)][:8]
    # interval / sqrt(count), rounded up to the end of a transmission, which takes 1.
    assert gaps == pytest.approx([100.0 / count**0.5 for count in range(1, 9)], abs=1.01)


def test_codel_with_ecn_marks_instead_of_dropping() -> None:
    port = CodelPort(1000.0, 10_000, target=5.0, interval=100.0, ecn=True)
    assert len(sent(port, [(0.9 * n, 1000) for n in range(2000)])) == 2000
    assert port.dropped == 0
    assert port.marked > 20


def test_a_late_wake_transmits_packets_at_the_right_times() -> None:
    punctual = CodelPort(100.0, 50, target=5.0, interval=100.0, ecn=False)
    late = CodelPort(100.0, 50, target=5.0, interval=100.0, ecn=False)
    offers = [(0.0, 100), (0.0, 100), (0.5, 100)]
    for number, (now, size) in enumerate(offers):
        late.offer(number, size, now)
    assert {0: 1.0} | dict(late.wake(50.0)) == sent(punctual, offers) == {0: 1.0, 1: 2.0, 2: 3.0}


def test_disciplines_reject_parameters_out_of_range() -> None:
    for wrong in ({"least": 9, "most": 9}, {"most": 70}, {"p": 0}):
        with pytest.raises(ValueError, match="validation error"):
            Red.model_validate(wrong)
    for model, value in ((Codel, {"target": 0}), (Priority, {"packets": -1}), (Priority, {"bands": 3})):
        with pytest.raises(ValueError, match="validation error"):
            model.model_validate(value)
