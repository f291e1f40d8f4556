"""SRM: requests by distance timers with exponential back-off, and repairs by any member that has the packet."""

from typing import Any

from experiments.contract.content import Bytes, pattern
from experiments.contract.recorder import Recorder
from protocols.arq.messages import Data, Nack, identity_of
from protocols.events import ObjectReceived
from protocols.machine import Content, Group, Machine
from protocols.srm import PROTOCOL
from protocols.srm.messages import repair_of

GROUP = Group("all")


def receiver(**more: Any) -> tuple[Machine, Recorder]:
    """Return a started receiver, node 2, at a distance of 1 s from all members, without session messages, and its ports."""
    ports = Recorder()
    config = PROTOCOL.config(
        **{"segment": 100, "distance": 1.0, "timeout": 100.0, "session_share": 0.0, "timers": "fixed"} | more
    )
    machine = PROTOCOL.make_receiver(ports, config, 2, GROUP)
    machine.start(0.0)
    return machine, ports


def unit(number: int, *, repair: bool = False) -> Data:
    """Return the DATA message of one unit of an object of two segments."""
    length = 100 if number else 0
    return Data(1, 7, 0, number, 0, 200, 100, True, repair, bytes(length), length, identity_of(1, 0, number))


def run(machine: Machine, until: float) -> None:
    """Wake the machine at its deadlines, up to `until` seconds."""
    while machine.deadline <= until:
        machine.wake(machine.deadline)


def times(machine: Machine, ports: Recorder, until: float) -> list[float]:
    """Run up to `until` seconds; returns the times at which packets were sent."""
    found: list[float] = []
    while machine.deadline <= until:
        now, before = machine.deadline, len(ports.packets)
        machine.wake(now)
        found += [now] * (len(ports.packets) - before)
    return found


def test_requests_wait_between_c1_and_c1_and_c2_distances_and_twice_as_long_each_time() -> None:
    machine, ports = receiver(c1=2.0, c2=2.0)
    for message in (unit(0), unit(2)):
        machine.receive(message, "home", GROUP, 0.0)
    first, second, third, *_ = times(machine, ports, 100.0)
    assert 2.0 <= first <= 4.0
    assert 4.0 <= second - first <= 8.0
    assert 8.0 <= third - second <= 16.0
    assert {packet.to for packet in ports.packets} == {GROUP}


def test_requests_of_others_double_the_timer_once_per_round() -> None:
    machine, ports = receiver(c1=2.0, c2=2.0)
    for message in (unit(0), unit(2)):
        machine.receive(message, "home", GROUP, 0.0)
    for node in (3, 4, 5):
        machine.receive(Nack(1, 7, 0, 1, node), f"r{node}", GROUP, 1.0)
    assert machine.counts()["nacks_suppressed"] == 1
    (first,) = times(machine, ports, 9.0)
    assert 5.0 <= first <= 9.0


def test_a_member_repairs_a_unit_once_and_ignores_requests_during_the_hold_time() -> None:
    machine, ports = receiver(d1=1.0, d2=1.0)
    for message in (unit(0), unit(1), unit(2)):
        machine.receive(message, "home", GROUP, 0.0)
    machine.receive(Nack(1, 7, 0, 1, 3), "r3", GROUP, 10.0)
    machine.receive(Nack(1, 7, 0, 1, 4), "r4", GROUP, 10.1)
    (sent,) = times(machine, ports, 100.0)
    assert 11.0 <= sent <= 12.0
    assert ports.packets[0].message == repair_of(unit(1), 1_000_000)
    machine.receive(Nack(1, 7, 0, 1, 3), "r3", GROUP, sent + 2.9)
    assert not times(machine, ports, sent + 10.0)
    machine.receive(Nack(1, 7, 0, 1, 3), "r3", GROUP, sent + 11.0)
    assert len(times(machine, ports, sent + 20.0)) == 1


def test_a_repair_by_another_member_suppresses_the_own_repair() -> None:
    machine, ports = receiver()
    for message in (unit(0), unit(1), unit(2)):
        machine.receive(message, "home", GROUP, 0.0)
    machine.receive(Nack(1, 7, 0, 1, 3), "r3", GROUP, 10.0)
    machine.receive(unit(1, repair=True), "r4", GROUP, 10.5)
    assert not times(machine, ports, 100.0)
    assert machine.counts()["repairs_suppressed"] == 1


def test_a_repair_by_a_member_completes_an_object() -> None:
    machine, ports = receiver()
    for message in (unit(0), unit(2)):
        machine.receive(message, "home", GROUP, 0.0)
    machine.receive(unit(1, repair=True), "r4", GROUP, 0.5)
    assert isinstance(ports.events[-1], ObjectReceived)
    assert machine.deadline > 1e6


def test_a_repair_by_a_member_suppresses_that_of_the_sender() -> None:
    ports = Recorder()
    config = PROTOCOL.config(segment=100, rate=1e9, distance=1.0, timeout=100.0, session_share=0.0, timers="fixed")
    machine = PROTOCOL.make_sender(ports, config, 1, GROUP, 7)
    machine.start(0.0)
    machine.submit(Content(Bytes(pattern(200)), b""), 0.0)
    run(machine, 0.1)
    machine.receive(Nack(1, 7, 0, 1, 3), "r3", GROUP, 1.0)
    machine.receive(unit(1, repair=True), "r4", GROUP, 1.5)
    run(machine, 50.0)
    assert machine.counts()["repairs_sent"] == 0
    assert machine.counts()["repairs_suppressed"] == 1
    machine.receive(Nack(1, 7, 0, 2, 3), "r3", GROUP, 51.0)
    run(machine, 60.0)
    assert machine.counts()["repairs_sent"] == 1
