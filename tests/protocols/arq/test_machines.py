"""The senders and receivers of A, N1 and N2: what is sent, to whom and when, one machine at a time."""

from typing import Any

import pytest

from experiments.contract.content import Bytes, pattern
from experiments.contract.recorder import Recorder
from protocols.arq import N1, N2, A
from protocols.arq.messages import Ack, Data, End, Nack, identity_of
from protocols.arq.receiver import ArqReceiver
from protocols.arq.repair_policy import RepairPolicy
from protocols.arq.session import Session
from protocols.events import FlushCompleted, ObjectAborted, ObjectReceived, ObjectSent, SenderReset, SenderSilent
from protocols.machine import Content, Group, Machine, Message, Sender
from protocols.spec import ProtocolSpec

GROUP = Group("all")
SIZE, SEGMENT = 250, 100
UNITS = 4
"""A head and three segments."""
TIMES: dict[str, dict[str, Any]] = {
    "a": {"timeout": 1.0},
    "n1": {"timeout": 1.0, "gather": 0.2, "hold": 0.1},
    "n2": {"timeout": 1.0, "gather": 0.0, "hold": 0.1, "window": 0.5},
}


def receiver(kind: ProtocolSpec, *, fast: bool = False, **more: Any) -> tuple[Machine, Recorder]:
    """Return a started receiver, node 2, and its ports."""
    ports = Recorder()
    machine = kind.makers(fast).make_receiver(ports, kind.config(segment=SEGMENT, **(TIMES[kind.name] | more)), 2, GROUP)
    machine.start(0.0)
    return machine, ports


def sender(kind: ProtocolSpec, **more: Any) -> tuple[Sender, Recorder]:
    """Return a sender, node 1, that has sent its only object, and its ports."""
    ports = Recorder()
    config = kind.config(segment=SEGMENT, rate=1e9, **({"robust": 3} | TIMES[kind.name] | more))
    machine = kind.make_sender(ports, config, 1, GROUP, 7)
    machine.start(0.0)
    machine.submit(Content(Bytes(pattern(SIZE)), b"name"), 0.0)
    run(machine, 0.01)
    return machine, ports


def run(machine: Machine, until: float) -> None:
    """Wake the machine at its deadlines, up to `until` seconds."""
    for _ in range(10_000):
        if machine.deadline > until:
            return
        machine.wake(machine.deadline)
    raise AssertionError("never quiet")


def unit(number: int, *, object_id: int = 0, instance: int = 7, first: int = 0, repair: bool = False) -> Data:
    """Return the DATA message of one unit of the object."""
    content = pattern(SIZE)
    payload = b"name" if number == 0 else content[(number - 1) * SEGMENT : number * SEGMENT]
    named = identity_of(1, object_id, number)
    return Data(1, instance, object_id, number, first, SIZE, SEGMENT, True, repair, payload, len(payload), named)


def hear(machine: Machine, now: float, *messages: Message) -> None:
    """Deliver messages of the sender."""
    for message in messages:
        machine.receive(message, "home", GROUP, now)


def said(ports: Recorder) -> list[Message]:
    """Return all messages sent so far."""
    return [packet.message for packet in ports.packets]


def test_a_acknowledges_every_packet_to_its_sender_duplicates_too() -> None:
    machine, ports = receiver(A)
    hear(machine, 0.0, unit(0), unit(2), unit(2))
    assert said(ports) == [Ack(1, 7, 0, number, 2) for number in (0, 2, 2)]
    assert {packet.to for packet in ports.packets} == {"home"}


def test_n1_sends_a_nack_for_each_missing_packet_at_once_and_again_after_the_timeout() -> None:
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


@pytest.mark.parametrize("fast", [False, True])
def test_requests_go_to_where_the_sender_is_now_those_of_other_receivers_to_where_they_heard_it(fast: bool) -> None:
    (one, ports), (other, others) = receiver(N1, fast=fast), receiver(N1, fast=fast)
    hear(one, 0.0, unit(0), unit(2))
    one.receive(unit(3), "elsewhere", GROUP, 0.1)
    run(one, 1.5)
    assert [packet.to for packet in ports.packets] == ["home", "elsewhere"]
    hear(other, 0.0, unit(1))
    assert [packet.to for packet in others.packets] == ["home"]


def test_n1_ignores_the_nack_of_another_receiver() -> None:
    machine, ports = receiver(N1)
    hear(machine, 0.0, unit(0), unit(1))
    machine.receive(Nack(1, 7, 0, 2, 3), "r3", GROUP, 0.0)
    assert not ports.packets
    assert machine.counts()["data_lost"] == 0


def test_a_receiver_with_the_base_policy_sends_no_feedback() -> None:
    ports = Recorder()
    session = Session(ports, A.config(segment=SEGMENT), 2, GROUP)
    machine = ArqReceiver(session, RepairPolicy())
    hear(machine, 0.0, unit(0), unit(2), unit(3), unit(1, repair=True))
    assert not ports.packets
    assert isinstance(ports.events[-1], ObjectReceived)
    assert machine.deadline > 1e6


def test_n2_multicasts_a_nack_after_a_back_off() -> None:
    machine, ports = receiver(N2)
    hear(machine, 0.0, unit(0), unit(2))
    assert not ports.packets
    run(machine, 0.5)
    assert said(ports) == [Nack(1, 7, 0, 1, 2)]
    assert ports.packets[0].to == GROUP


def test_n2_suppresses_its_nack_after_that_of_another_receiver_until_the_timeout() -> None:
    machine, ports = receiver(N2)
    hear(machine, 0.0, unit(0), unit(2))
    machine.receive(Nack(1, 7, 0, 1, 3), "r3", GROUP, 0.0)
    run(machine, 0.99)
    assert not ports.packets
    assert machine.counts()["nacks_suppressed"] == 1
    run(machine, 1.6)
    assert said(ports) == [Nack(1, 7, 0, 1, 2)]


def test_n2_finds_a_unit_missing_by_the_nack_of_another_receiver() -> None:
    machine, ports = receiver(N2)
    hear(machine, 0.0, unit(0), unit(1))
    machine.receive(Nack(1, 7, 0, 2, 3), "r3", GROUP, 0.0)
    assert machine.counts()["data_lost"] == 1
    run(machine, 1.6)
    assert said(ports) == [Nack(1, 7, 0, 2, 2)]


@pytest.mark.parametrize("kind", [N1, N2], ids=lambda kind: str(kind.name))
def test_an_end_message_reveals_losses_of_the_last_units(kind: ProtocolSpec) -> None:
    machine, ports = receiver(kind)
    hear(machine, 0.0, unit(0), unit(1), unit(2), End(1, 7, 0, UNITS, 0))
    run(machine, 0.6)
    assert said(ports) == [Nack(1, 7, 0, 3, 2)]


def test_of_an_object_lost_entirely_the_head_is_requested_first() -> None:
    machine, ports = receiver(N1)
    hear(machine, 0.0, End(1, 7, 0, UNITS, 0))
    assert said(ports) == [Nack(1, 7, 0, 0, 2)]
    hear(machine, 0.1, unit(0, repair=True))
    assert said(ports)[1:] == [Nack(1, 7, 0, number, 2) for number in (1, 2, 3)]


def test_an_object_is_aborted_after_robust_nacks_without_repair() -> None:
    machine, ports = receiver(N1, robust=3)
    hear(machine, 0.0, unit(0), unit(2))
    run(machine, 100.0)
    assert len(ports.packets) == 4
    assert [type(event) for event in ports.events[-1:]] == [ObjectAborted]
    assert machine.deadline > 1e6


def test_a_silent_sender_is_reported_and_its_incomplete_objects_aborted() -> None:
    machine, ports = receiver(A, robust=3)
    hear(machine, 0.0, unit(0))
    run(machine, 100.0)
    assert [type(event) for event in ports.events[-2:]] == [SenderSilent, ObjectAborted]


def test_objects_before_the_first_one_served_are_aborted() -> None:
    machine, ports = receiver(N1)
    hear(machine, 0.0, unit(0), unit(0, object_id=5, first=4))
    gone = [event.object_id for event in ports.events if isinstance(event, ObjectAborted)]
    assert gone == [0, 1, 2, 3]
    assert said(ports)[-1] == Nack(1, 7, 4, 0, 2)


def test_a_restarted_sender_has_a_new_state() -> None:
    machine, ports = receiver(N1)
    hear(machine, 0.0, unit(0), unit(0, instance=8))
    assert any(isinstance(event, SenderReset) for event in ports.events)
    hear(machine, 0.1, *(unit(number, instance=8) for number in (1, 2, 3)))
    assert sum(isinstance(event, ObjectReceived) for event in ports.events) == 1


@pytest.mark.parametrize("fast", [False, True])
def test_late_messages_of_an_instance_that_was_replaced_are_ignored(fast: bool) -> None:
    machine, ports = receiver(N1, fast=fast)
    hear(machine, 0.0, unit(0), *(unit(number, instance=8) for number in range(UNITS)))
    hear(
        machine,
        0.1,
        unit(1, repair=True),
        unit(2, repair=True),
        *(unit(number, instance=8, repair=True) for number in range(UNITS)),
    )
    assert sum(isinstance(event, SenderReset) for event in ports.events) == 1
    assert sum(isinstance(event, ObjectReceived) for event in ports.events) == 1
    # Another start of the sender is heard.
    hear(machine, 0.2, unit(0, instance=9))
    assert sum(isinstance(event, SenderReset) for event in ports.events) == 2


def test_nacks_within_the_gather_time_are_served_by_one_repair() -> None:
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


def test_a_nack_right_after_the_first_transmission_is_served() -> None:
    machine, _ = sender(N2)
    machine.receive(Nack(1, 7, 0, 2, 3), "r3", GROUP, 0.011)
    run(machine, 0.02)
    assert machine.counts()["repairs_sent"] == 1


def test_robust_end_messages_without_nack_finish_the_session() -> None:
    machine, ports = sender(N1)
    run(machine, 1e6)
    assert [message for message in said(ports) if isinstance(message, End)] == 3 * [End(1, 7, 0, UNITS, 0)]
    assert [event for event in ports.events if isinstance(event, FlushCompleted)] == [FlushCompleted(0)]


def test_a_repeats_units_until_all_known_receivers_have_acknowledged_them() -> None:
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


def test_a_forgets_receivers_without_acks() -> None:
    machine, ports = sender(A)
    for number in range(UNITS):
        machine.receive(Ack(1, 7, 0, number, 2), "r2", GROUP, 0.1)
    machine.receive(Ack(1, 7, 0, 0, 3), "r3", GROUP, 0.1)
    run(machine, 1e6)
    assert isinstance(ports.events[-1], FlushCompleted)
    assert machine.counts()["repairs_sent"] <= 3 * 4


class _Vanishing(Bytes):
    """A source that can be read as often as it has units, and then is gone."""

    left = UNITS - 1

    def read(self, offset: int, n: int) -> bytes:
        """Return `n` bytes from `offset`, or fail."""
        if not self.left:
            raise OSError("gone")
        self.left -= 1
        return super().read(offset, n)


@pytest.mark.parametrize("kind", [A, N1, N2], ids=lambda kind: kind.name)
@pytest.mark.parametrize("fast", [False, True])
def test_a_sender_finishes_though_a_source_fails_at_a_repair(kind: ProtocolSpec, fast: bool) -> None:
    ports = Recorder()
    config = kind.config(segment=SEGMENT, rate=1e9, robust=3, **TIMES[kind.name])
    machine = kind.makers(fast).make_sender(ports, config, 1, GROUP, 7)
    machine.start(0.0)
    machine.submit(Content(_Vanishing(pattern(SIZE)), b"name"), 0.0)
    run(machine, 0.01)
    machine.receive(Nack(1, 7, 0, 2, 9), "r9", GROUP, 0.02)
    run(machine, 100.0)
    assert [type(event) for event in ports.events] == [ObjectSent, ObjectAborted, FlushCompleted]
    assert machine.deadline == float("inf")
    machine.submit(Content(Bytes(pattern(SIZE)), b"name"), 200.0)
    run(machine, 300.0)
    assert [type(event) for event in ports.events[3:]] == [ObjectSent, FlushCompleted]
