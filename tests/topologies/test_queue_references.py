"""RED and CoDel packet by packet against implementations written from their papers: the same drops, marks and departures.

The references are event loops around the published pseudo-code, with the variables of the papers.
"""

import random
from collections import deque
from math import sqrt
from typing import NamedTuple

import pytest

from protocols.rng import unit
from topologies.ports import CodelPort, Port, RedPort

RATE = 125_000.0
PACKETS = 3000
KEY = 7


class Fate(NamedTuple):
    """End of transmission by packet, and how many packets were dropped and marked."""

    sent: dict[int, float]
    dropped: int
    marked: int


class CodelReference:
    """RFC 8289, section 5: `dequeue` is `deque` of the pseudo-code, `dodequeue` has its name. Marks are as in Linux."""

    def __init__(self, target: float, interval: float, ecn: bool) -> None:
        self.target, self.interval, self.ecn = target, interval, ecn
        self.queue: deque[tuple[int, int, float]] = deque()
        self.maxpacket = self.count = self.lastcount = self.drops = self.marks = 0
        self.first_above_time = self.drop_next = 0.0
        self.dropping = False

    def dodequeue(self, now: float) -> tuple[tuple[int, int, float] | None, bool]:
        if not self.queue:
            self.first_above_time = 0.0
            return None, False
        packet = self.queue.popleft()
        if now - packet[2] < self.target or sum(size for _, size, _ in self.queue) <= self.maxpacket:
            self.first_above_time = 0.0
        elif self.first_above_time == 0.0:
            self.first_above_time = now + self.interval
        elif now >= self.first_above_time:
            return packet, True
        return packet, False

    def control_law(self, t: float) -> float:
        return t + self.interval / sqrt(self.count)

    def dequeue(self, now: float) -> tuple[int, int, float] | None:
        packet, ok_to_drop = self.dodequeue(now)
        if self.dropping:
            self.dropping = ok_to_drop
            while self.dropping and now >= self.drop_next:
                self.count += 1
                if self.ecn:
                    self.marks += 1
                    self.drop_next = self.control_law(self.drop_next)
                    break
                self.drops += 1
                packet, self.dropping = self.dodequeue(now)
                if self.dropping:
                    self.drop_next = self.control_law(self.drop_next)
        elif ok_to_drop:
            if self.ecn:
                self.marks += 1
            else:
                self.drops += 1
                packet, _ = self.dodequeue(now)
            self.dropping = True
            delta = self.count - self.lastcount
            self.count = delta if delta > 1 and now - self.drop_next < 16 * self.interval else 1
            self.drop_next = self.control_law(now)
            self.lastcount = self.count
        return packet

    def fates(self, offers: list[tuple[float, int]], limit: int) -> Fate:
        """Transmit what is offered; packets beyond the limit are dropped on arrival."""
        sent: dict[int, float] = {}
        ends: list[float] = []

        def serve(now: float) -> None:
            ends.clear()
            if (packet := self.dequeue(now)) is not None:
                sent[packet[0]] = now + packet[1] / RATE
                ends.append(sent[packet[0]])

        for number, (now, size) in enumerate([*offers, (1e9, 0)]):
            while ends and ends[0] <= now:
                serve(ends[0])
            self.maxpacket = max(self.maxpacket, size)
            if ends and len(self.queue) >= limit:
                self.drops += 1
                continue
            self.queue.append((number, size, now))
            if not ends and number < len(offers):
                serve(now)
        return Fate(sent, self.drops, self.marks)


def red_fates(offers: list[tuple[float, int]], limit: int, least: int, most: int, p: float, weight: float, ecn: bool) -> Fate:
    """Return what RED does (Floyd, Jacobson 1993, figure 2; gentle as in ns-2), with the random numbers of the port."""
    avg, count, q_time, draws = 0.0, -1, 0.0, 0
    sent, ends, drops, marks = dict[int, float](), deque[float](), 0, 0
    for number, (now, size) in enumerate(offers):
        while ends and ends[0] <= now:
            q_time = ends.popleft()
        waiting = max(len(ends) - 1, 0)
        avg = (1 - weight) * avg + weight * waiting if ends else (1 - weight) ** ((now - q_time) * RATE / size) * avg
        chosen = forced = False
        if least <= avg < 2 * most:
            count += 1
            p_b = p * (avg - least) / (most - least) if avg < most else p + (1 - p) * (avg - most) / most
            draws += 1
            chosen = count * p_b >= 1 or unit(KEY, draws) < p_b / (1 - count * p_b)
            count = 0 if chosen else count
        else:
            forced = avg >= 2 * most
            count = 0 if forced else -1
        marks += chosen and ecn and avg < most
        if forced or (chosen and not (ecn and avg < most)) or (ends and waiting >= limit):
            drops += 1
            continue
        sent[number] = max(ends[-1] if ends else now, now) + size / RATE
        ends.append(sent[number])
    return Fate(sent, drops, marks)


def fates(port: Port, offers: list[tuple[float, int]]) -> Fate:
    """Return what a port does; it is woken at its deadlines."""
    sent: dict[int, float] = {}
    for number, (now, size) in enumerate(offers):
        while port.deadline <= now:
            sent.update(port.wake(port.deadline))
        sent.update(port.offer(number, size, now))
    while port.deadline < 1e9:
        sent.update(port.wake(port.deadline))
    return Fate(sent, port.dropped, port.marked)


def changing_load(seed: int, least: float, most: float) -> list[tuple[float, int]]:
    """Return packets of several sizes at exponential intervals; the load changes between two values."""
    rng, now, offers = random.Random(seed), 0.0, list[tuple[float, int]]()
    loads, period = (rng.uniform(least, most), rng.uniform(least, most)), rng.uniform(0.5, 10.0)
    for _ in range(PACKETS):
        size = rng.choice((40, 576, 1500))
        now += rng.expovariate(1.0) * size / RATE / loads[int(now / period) % 2]
        offers.append((now, size))
    return offers


@pytest.mark.parametrize("ecn", [False, True])
@pytest.mark.parametrize(("target", "interval", "limit"), [(0.005, 0.1, 1000), (0.02, 0.03, 50), (0.005, 1.0, 10)])
def test_codel_drops_marks_and_sends_what_the_pseudo_code_of_rfc_8289_does(
    target: float, interval: float, limit: int, ecn: bool
) -> None:
    touched = 0
    for seed in range(6):
        offers = changing_load(seed, 0.5, 2.0)
        right = CodelReference(target, interval, ecn).fates(offers, limit)
        assert fates(CodelPort(RATE, limit, target=target, interval=interval, ecn=ecn), offers) == right
        touched += right.marked + right.dropped
    assert touched > 100


@pytest.mark.parametrize("ecn", [False, True])
@pytest.mark.parametrize(("least", "most", "limit", "p", "weight"), [(5, 15, 60, 0.1, 0.002), (1, 5, 12, 0.02, 0.05)])
def test_red_drops_marks_and_sends_what_the_algorithm_of_floyd_and_jacobson_does(
    least: int, most: int, limit: int, p: float, weight: float, ecn: bool
) -> None:
    touched = 0
    for seed in range(8):
        offers = changing_load(seed, 0.3, 4.0)
        right = red_fates(offers, limit, least, most, p, weight, ecn)
        port = RedPort(RATE, limit, KEY, thresholds=(least, most), p=p, weight=weight, ecn=ecn)
        found = fates(port, offers)
        assert found[1:] == right[1:]
        assert found.sent == pytest.approx(right.sent)
        touched += right.marked + right.dropped
    assert touched > 100
