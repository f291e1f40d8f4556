"""Who speaks when in A, N1 and N2: one machine at a time, by hand."""

from typing import Any

import pytest

from protocols.arq import N1, N2, A
from protocols.arq.messages import Ack, Data, End, Nack, identity_of
from protocols.events import FlushCompleted, ObjectAborted, ObjectReceived, SenderReset, SenderSilent
from protocols.machine import Content, Group, Machine, Message, Sender
from protocols.spec import ProtocolSpec
from tests.support.content import Bytes, pattern
from tests.support.recorder import Recorder

GROUP = Group("all")
SIZE, SEGMENT = 250, 100
UNITS = 4
"""A head and three segments."""
TIMES: dict[str, dict[str, Any]] = {
    "a": {"timeout": 1.0},
    "n1": {"timeout": 1.0, "gather": 0.2, "hold": 0.1},
    "n2": {"timeout": 1.0, "gather": 0.0, "hold": 0.1, "window": 0.5},
}


def receiver(kind: ProtocolSpec, **more: Any) -> tuple[Machine, Recorder]:
    """A started receiver, node 2."""
    ports = Recorder()
    machine = kind.make_receiver(ports, kind.config(segment=SEGMENT, **(TIMES[kind.name] | more)), 2, GROUP)
    machine.start(0.0)
    return machine, ports


def sender(kind: ProtocolSpec, **more: Any) -> tuple[Sender, Recorder]:
    """A started sender, node 1, that has sent its one object."""
    ports = Recorder()
    config = kind.config(segment=SEGMENT, rate=1e9, **({"robust": 3} | TIMES[kind.name] | more))
    machine = kind.make_sender(ports, config, 1, GROUP, 7)
    machine.start(0.0)
    machine.submit(Content(Bytes(pattern(SIZE)), b"name"), 0.0)
    run(machine, 0.01)
    return machine, ports


def run(machine: Machine, until: float) -> None:
    """Wake the machine whenever it wants, up to a time."""
    for _ in range(10_000):
        if machine.deadline > until:
            return
        machine.wake(machine.deadline)
    raise AssertionError("never quiet")


def unit(number: int, *, object_id: int = 0, instance: int = 7, first: int = 0, repair: bool = False) -> Data:
    """One unit of the object."""
    content = pattern(SIZE)
    payload = b"name" if number == 0 else content[(number - 1) * SEGMENT : number * SEGMENT]
    named = identity_of(1, object_id, number)
    return Data(1, instance, object_id, number, first, SIZE, SEGMENT, True, repair, payload, len(payload), named)


def hear(machine: Machine, now: float, *messages: Message) -> None:
    """Deliver messages from the sender."""
    for message in messages:
        machine.receive(message, "home", GROUP, now)


def said(ports: Recorder) -> list[Message]:
    """Everything sent so far."""
    return [packet.message for packet in ports.packets]


def test_a_acknowledges_every_packet_to_its_sender_even_twice() -> None:
    machine, ports = receiver(A)
    hear(machine, 0.0, unit(0), unit(2), unit(2))
    assert said(ports) == [Ack(1, 7, 0, number, 2) for number in (0, 2, 2)]
    assert {packet.to for packet in ports.packets} == {"home"}


def test_n1_asks_the_sender_at_once_for_each_missing_packet_and_again_after_the_timeout() -> None:
    machine, ports = receiver(N1)
    hear(machine, 0.0, unit(0), unit(3))
    assert said(ports) == [Nack(1, 7, 0, number, 2) for number in (1, 2)]
    assert {packet.to for packet in ports.packets} == {"home"}
    hear(machine, 0.5, unit(1, repair=True))
    run(machine, 1.5)
    assert said(ports)[2:] == [Nack(1, 7, 0, 2, 2)]
    hear(machine, 1.6, unit(2, repair=True))
    assert machine.deadline > 1e6
    assert isinstance(ports.events[-1], ObjectReceived)


def test_n2_waits_before_it_asks_the_group() -> None:
    machine, ports = receiver(N2)
    hear(machine, 0.0, unit(0), unit(2))
    assert not ports.packets
    run(machine, 0.5)
    assert said(ports) == [Nack(1, 7, 0, 1, 2)]
    assert ports.packets[0].to == GROUP


def test_n2_is_silent_when_another_asked_first_and_asks_when_no_repair_comes() -> None:
    machine, ports = receiver(N2)
    hear(machine, 0.0, unit(0), unit(2))
    machine.receive(Nack(1, 7, 0, 1, 3), "r3", GROUP, 0.0)
    run(machine, 0.99)
    assert not ports.packets
    assert machine.counts()["nacks_suppressed"] == 1
    run(machine, 1.6)
    assert said(ports) == [Nack(1, 7, 0, 1, 2)]


def test_n2_learns_from_others_what_it_has_not_missed_yet() -> None:
    machine, ports = receiver(N2)
    hear(machine, 0.0, unit(0), unit(1))
    machine.receive(Nack(1, 7, 0, 2, 3), "r3", GROUP, 0.0)
    assert machine.counts()["data_lost"] == 1
    run(machine, 1.6)
    assert said(ports) == [Nack(1, 7, 0, 2, 2)]


@pytest.mark.parametrize("kind", [N1, N2], ids=lambda kind: str(kind.name))
def test_an_end_shows_what_was_lost_at_the_end(kind: ProtocolSpec) -> None:
    machine, ports = receiver(kind)
    hear(machine, 0.0, unit(0), unit(1), unit(2), End(1, 7, 0, UNITS, 0))
    run(machine, 0.6)
    assert said(ports) == [Nack(1, 7, 0, 3, 2)]


def test_an_object_of_which_nothing_came_is_asked_for_from_its_head() -> None:
    machine, ports = receiver(N1)
    hear(machine, 0.0, End(1, 7, 0, UNITS, 0))
    assert said(ports) == [Nack(1, 7, 0, 0, 2)]
    hear(machine, 0.1, unit(0, repair=True))
    assert said(ports)[1:] == [Nack(1, 7, 0, number, 2) for number in (1, 2, 3)]


def test_who_asks_in_vain_gives_up() -> None:
    machine, ports = receiver(N1, robust=3)
    hear(machine, 0.0, unit(0), unit(2))
    run(machine, 100.0)
    assert len(ports.packets) == 4
    assert [type(event) for event in ports.events[-1:]] == [ObjectAborted]
    assert machine.deadline > 1e6


def test_a_silent_sender_is_reported_while_something_is_missing() -> None:
    machine, ports = receiver(A, robust=3)
    hear(machine, 0.0, unit(0))
    run(machine, 100.0)
    assert [type(event) for event in ports.events[-2:]] == [SenderSilent, ObjectAborted]


def test_objects_that_are_not_served_any_more_are_given_up() -> None:
    machine, ports = receiver(N1)
    hear(machine, 0.0, unit(0), unit(0, object_id=5, first=4))
    gone = [event.object_id for event in ports.events if isinstance(event, ObjectAborted)]
    assert gone == [0, 1, 2, 3]
    assert said(ports)[-1] == Nack(1, 7, 4, 0, 2)


def test_a_restarted_sender_begins_anew() -> None:
    machine, ports = receiver(N1)
    hear(machine, 0.0, unit(0), unit(0, instance=8))
    assert any(isinstance(event, SenderReset) for event in ports.events)
    hear(machine, 0.1, *(unit(number, instance=8) for number in (1, 2, 3)))
    assert sum(isinstance(event, ObjectReceived) for event in ports.events) == 1


def test_requests_that_come_together_are_served_by_one_repair() -> None:
    machine, _ = sender(N1)
    for node in (2, 3, 4):
        machine.receive(Nack(1, 7, 0, 2, node), f"r{node}", GROUP, 0.1)
    run(machine, 0.29)
    assert machine.counts()["repairs_sent"] == 0
    run(machine, 0.31)
    machine.receive(Nack(1, 7, 0, 2, 5), "r5", GROUP, 0.35)
    run(machine, 0.9)
    assert machine.counts()["repairs_sent"] == 1
    assert machine.counts()["nacks_received"] == 4
    machine.receive(Nack(1, 7, 0, 2, 5), "r5", GROUP, 0.9)
    run(machine, 1.15)
    assert machine.counts()["repairs_sent"] == 2


def test_a_request_right_after_the_first_transmission_counts() -> None:
    machine, _ = sender(N2)
    machine.receive(Nack(1, 7, 0, 2, 3), "r3", GROUP, 0.011)
    run(machine, 0.02)
    assert machine.counts()["repairs_sent"] == 1


def test_an_unanswered_end_finishes_the_session() -> None:
    machine, ports = sender(N1)
    run(machine, 1e6)
    assert [message for message in said(ports) if isinstance(message, End)] == 3 * [End(1, 7, 0, UNITS, 0)]
    assert [event for event in ports.events if isinstance(event, FlushCompleted)] == [FlushCompleted(0)]


def test_a_repeats_until_everybody_it_knows_has_acknowledged() -> None:
    machine, ports = sender(A)
    for number in range(UNITS):
        machine.receive(Ack(1, 7, 0, number, 2), "r2", GROUP, 0.1)
    machine.receive(Ack(1, 7, 0, 0, 3), "r3", GROUP, 0.1)
    run(machine, 1.5)
    assert machine.counts()["repairs_sent"] == 3
    for number in range(UNITS):
        machine.receive(Ack(1, 7, 0, number, 3), "r3", GROUP, 1.6)
    run(machine, 1e6)
    assert machine.counts()["repairs_sent"] == 3
    assert isinstance(ports.events[-1], FlushCompleted)


def test_a_forgets_who_is_silent() -> None:
    machine, ports = sender(A)
    for number in range(UNITS):
        machine.receive(Ack(1, 7, 0, number, 2), "r2", GROUP, 0.1)
    machine.receive(Ack(1, 7, 0, 0, 3), "r3", GROUP, 0.1)
    run(machine, 1e6)
    assert isinstance(ports.events[-1], FlushCompleted)
    assert machine.counts()["repairs_sent"] <= 3 * 4
