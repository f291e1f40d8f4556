"""The bursts that a sender of N1 plans, repairs among the new units, are what a plain sender sends."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.contract.recorder import Recorder
from experiments.running.content import Extent
from protocols.arq import N1
from protocols.arq.fast.messages import FastData
from protocols.arq.fast.sender import FastGatheringSender
from protocols.arq.messages import Data, Nack
from protocols.arq.wire import DATA_OVERHEAD
from protocols.fast.lookahead import Burst
from protocols.machine import Content, Group, Message, Sender

GROUP = Group("all")
SEGMENT = 100
INTERVAL = 0.001
FIELDS = Data.__dataclass_fields__


class Host:
    """Runs a sender of objects of so many segments, one each millisecond, and keeps what was sent when."""

    def __init__(self, *segments: int, fast: bool = False, **parameters: Any) -> None:
        self.ports = Recorder()
        rate = (DATA_OVERHEAD + SEGMENT) / INTERVAL
        config = N1.config(segment=SEGMENT, rate=rate, **{"gather": 0.0055, "hold": 0.004, **parameters})
        self.machine: Sender = N1.makers(fast).make_sender(self.ports, config, 1, GROUP, 7)
        self.sent: list[tuple[float, Message]] = []
        self.machine.start(0.0)
        for count in segments:
            self.machine.submit(Content(Extent(count * SEGMENT), b"", is_file=False), 0.0)

    def run(self, until: float) -> None:
        """Wake the machine at its deadlines, up to `until` seconds."""
        while self.machine.deadline <= until:
            self.wake(self.machine.deadline)

    def wake(self, now: float) -> None:
        """Wake the machine."""
        self.machine.wake(now)
        self.sent += [(now, packet.message) for packet in self.ports.packets]
        self.ports.packets.clear()

    def nack(self, now: float, unit: int, object_id: int = 0) -> None:
        """Deliver a NACK for a unit, after what is due before."""
        self.run(now)
        self.machine.receive(Nack(1, 7, object_id, unit, 2), "r1", GROUP, now)

    def rows(self) -> list[tuple[Any, ...]]:
        """Return kind, time and fields of the messages sent."""
        named = [(each.kind, when, each, FIELDS if isinstance(each, Data) else ()) for when, each in self.sent]
        return [(kind, when, *[getattr(message, name) for name in fields]) for kind, when, message, fields in named]


class CarryingHost(Host):
    """Carries the bursts of a fast sender."""

    def __init__(self, *segments: int, **parameters: Any) -> None:
        super().__init__(*segments, fast=True, **parameters)
        assert isinstance(self.machine, FastGatheringSender)
        self.fast: FastGatheringSender = self.machine
        self.bursts: list[Burst] = []
        self.planned: list[tuple[float, FastData]] = []
        """The messages of the bursts, and when they are due."""
        self.passed = 0
        """How many of them were sent."""
        self.carried: list[FastData] = []
        """The messages sent in bursts."""
        self.shortened = 0

    def run(self, until: float) -> None:
        """Send what is due, in bursts where the machine plans them."""
        while True:
            while self.passed < len(self.planned) and self.planned[self.passed][0] <= until:
                self.sent.append(self.planned[self.passed])
                self.carried.append(self.planned[self.passed][1])
                self.passed += 1
            if self.machine.deadline > until:
                return
            now = self.machine.deadline
            self.fast.leave_lockstep()
            self.plan()
            if self.machine.deadline <= now:
                self.wake(now)
                self.plan()

    def plan(self) -> None:
        """Ask for bursts."""
        self.bursts = list(self.fast.plan_bursts())
        if not self.bursts:
            return
        begin = self.bursts[0].begin
        for burst in self.bursts:
            assert burst.begin == begin
            for number in range(burst.count):
                self.planned.append((begin, self.linked(burst, number)))
                begin += burst.interval
        for before, after in pairwise(self.bursts):
            assert before.position(before.count) is after.position(0)
        self.fast.fast_state.coordinator = self
        for burst in self.bursts:
            burst.carrier = self
            burst.take(burst.count, begin)

    def linked(self, burst: Burst, number: int) -> FastData:
        """Return a message of a burst, which is linked to its neighbours and named by the burst."""
        message = burst.message(number)
        assert isinstance(message, FastData)
        assert (message.expects, message.next_state) == (burst.position(number), burst.position(number + 1))
        assert message.identity == burst.identity_of(number)
        assert message.fills == ((message.object_id, message.unit) if message.repair else None)
        assert message.redundant == message.repair == burst.is_repeated
        return message

    def report(self) -> None:
        """Commit the messages sent."""
        first = 0
        for burst in self.bursts:
            count = min(self.passed - first, burst.count)
            if count > 0:
                last = self.planned[first + count - 1][0]
                burst.commit(count, last, last + burst.interval)
            first += burst.count

    def shorten(self, until: float) -> None:
        """Drop what is due at `until` or later."""
        self.shortened += 1
        kept = sum([when < until for when, _ in self.planned])
        if kept <= self.passed:
            self.fast.leave_lockstep()
            return
        del self.planned[kept:]
        for burst in self.bursts:
            burst.count = min(burst.count, kept)
            kept -= burst.count
        self.bursts = [burst for burst in self.bursts if burst.count]
        self.bursts[-1].take(self.bursts[-1].count, self.planned[-1][0] + INTERVAL)

    def release(self, machine: object) -> None:
        """End the bursts."""
        del machine
        self.report()
        self.fast.fast_state.coordinator = None
        last = self.bursts[-1]
        self.bursts, self.planned, self.passed = [], [], 0
        last.end()


REQUESTS = st.lists(st.tuples(st.integers(1, 700), st.integers(0, 6), st.integers(0, 1)), max_size=40)


@pytest.mark.parametrize("gather", [0.0, 0.0003, 0.0055, 0.03])
@pytest.mark.parametrize("hold", [0.0, 0.004])
def test_what_a_host_carries_is_what_a_plain_sender_sends(gather: float, hold: float) -> None:
    @settings(deadline=None, max_examples=40, derandomize=True)
    @given(REQUESTS)
    def check(requests: list[tuple[int, int, int]]) -> None:
        hosts = [make(30, 40, gather=gather, hold=hold) for make in (Host, CarryingHost)]
        for host in hosts:
            for tenths, unit, object_id in sorted(requests):
                now = (tenths + 0.37) / 10_000
                host.run(now)
                data = [each.unit for _, each in host.sent if isinstance(each, Data) and each.object_id == object_id]
                if data:
                    host.nack(now, min(unit, max(data)), object_id)
            host.run(0.6)
        plain, carrying = hosts
        assert plain.rows() == carrying.rows()
        assert plain.machine.counts() == carrying.machine.counts()

    check()


def after_fifty() -> CarryingHost:
    """Return a host that has sent fifty units, most of them in bursts."""
    host = CarryingHost(200)
    host.run(0.0503)
    assert len(host.carried) > 40
    return host


def test_repairs_are_carried_with_the_new_units_around_them() -> None:
    host = after_fifty()
    sent, carried = len(host.sent), len(host.carried)
    for unit in (8, 9, 30):
        host.nack(0.0503, unit)
    host.nack(0.0527, 31)
    host.run(0.0703)
    assert len(host.carried) - carried == len(host.sent) - sent == 20
    assert [message.unit for message in host.carried if message.repair] == [8, 9, 30, 31]


def test_bursts_end_where_the_repair_of_a_unit_is_due_that_is_requested_meanwhile() -> None:
    host = after_fifty()
    host.nack(0.0503, 8)
    assert host.shortened == 1
    assert host.planned[-1][0] < 0.0503 + 0.0055 <= host.planned[-1][0] + INTERVAL


def test_requests_of_units_that_are_repeated_anyway_leave_the_bursts_as_they_are() -> None:
    host = after_fifty()
    host.nack(0.0503, 8)
    host.run(0.0559)
    planned, shortened = list(host.planned), host.shortened
    host.nack(0.0559, 8)
    host.nack(0.0571, 8)
    assert (host.planned, host.shortened) == (planned, shortened)


@pytest.mark.parametrize("apart", [(0, 7), (1, 0)])
def test_repairs_of_another_object_or_of_a_head_are_sent_apart(apart: tuple[int, int]) -> None:
    host = CarryingHost(20, 200)
    for object_id, unit in (apart, (1, 30)):
        host.nack(0.0703, unit, object_id)
    host.run(0.0953)
    repairs = [message for _, message in host.sent if isinstance(message, Data) and message.repair]
    assert [(message.object_id, message.unit) for message in repairs] == [apart, (1, 30)]
    assert [any(message is each for each in host.carried) for message in repairs] == [False, True]
