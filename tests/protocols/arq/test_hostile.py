"""Forged packets of A, N1, N2 and SRM: what they make a receiver or a sender keep and do is bounded."""

from collections.abc import Iterator
from math import inf
from typing import Any

import pytest

import protocols.arq.acked_sender
import protocols.arq.nacked_sender
import protocols.arq.sender_state
import protocols.srm.repair_timers
from experiments.contract.content import Bytes, pattern
from experiments.contract.recorder import Recorder
from protocols.arq import N1, N2, A
from protocols.arq.messages import Ack, Data, End, Nack
from protocols.arq.receiver import MOST_SENDERS, ArqReceiver
from protocols.arq.sender_state import (
    FEW_MISSING,
    MORE_MISSING,
    MOST_LATER,
    MOST_MISSING,
    MOST_OBJECTS,
    MOST_UNITS_OPEN,
    SenderState,
)
from protocols.arq.wire import MOST_UNITS, ArqCodec
from protocols.events import ObjectReceived
from protocols.machine import Content, Group, Message
from protocols.spec import ProtocolSpec
from protocols.srm import PROTOCOL as SRM
from protocols.srm.messages import SessionMessage
from tests.protocols.norm.test_hostile import lines

GROUP = Group("all")
KINDS = [A, N1, N2, SRM]
SEGMENT = 100
LINES_PER_MISSING = 80
"""Lines of Python for a unit that is found missing: its entry, its timer and a request."""
LINES_PER_OBJECT = 60
"""Lines of Python for an object of which nothing is known: its entry, its first unit, and its end."""


def receiver(kind: ProtocolSpec, fast: bool = False, **settings: Any) -> tuple[ArqReceiver, Recorder]:
    ports = Recorder()
    machine = kind.makers(fast).make_receiver(ports, kind.config(segment=SEGMENT, **settings), 2, GROUP)
    assert isinstance(machine, ArqReceiver)
    machine.start(0.0)
    return machine, ports


def data(unit: int, units: int, object_id: int = 0, first: int = 0, sender: int = 1, instance: int = 7) -> Data:
    """A packet as the codec reads it, of an object whose segments are full."""
    size = (units - 1) * SEGMENT
    payload = b"" if unit == 0 else pattern(SEGMENT, seed=unit)
    message = Data(sender, instance, object_id, unit, first, size, SEGMENT, True, False, payload, len(payload))
    decoded = ArqCodec().decode(ArqCodec().encode(message))
    assert isinstance(decoded, Data)
    return decoded


def cost(machine: ArqReceiver, message: Message, now: float = 0.0) -> int:
    return lines(lambda: machine.receive(message, "forger", GROUP, now))


def states(machine: ArqReceiver) -> list[SenderState]:
    return list(machine._states())


def forgeries() -> Iterator[Data | End]:
    """Packets that each name as much as it can: the end of the largest object, of many objects, and later ones at once."""
    yield data(0, MOST_UNITS)
    yield data(MOST_UNITS - 1, MOST_UNITS)
    yield End(1, 7, MOST_OBJECTS, MOST_UNITS, 0)
    yield data(MOST_UNITS - 1, MOST_UNITS, MOST_OBJECTS)
    yield data(1, MOST_UNITS, 5)
    yield data(1, MOST_UNITS, 1 << 31, (1 << 31) - MOST_OBJECTS)
    yield data(1, MOST_UNITS, (1 << 31) + MOST_OBJECTS, 1 << 31)
    yield data(1, MOST_UNITS, (1 << 32) - 1, 0)
    yield data(1, MOST_UNITS, (1 << 32) - 1, (1 << 32) - 1)
    yield data(1, MOST_UNITS, instance=8)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_forged_packet_costs_little_whatever_it_names(kind: ProtocolSpec) -> None:
    machine, ports = receiver(kind)
    for message in forgeries():
        ports.accepting = lambda offer: Ignored()
        assert cost(machine, message) < LINES_PER_MISSING * (FEW_MISSING + MORE_MISSING) + LINES_PER_OBJECT * MOST_OBJECTS
        (state,) = states(machine)
        assert len(state._missing) <= FEW_MISSING + 10 * MORE_MISSING
        assert len(state._objects) <= MOST_OBJECTS + 1
        machine.wake(0.0)
    for _ in range(200):
        if machine.deadline < inf:
            machine.wake(machine.deadline)


@pytest.mark.parametrize("kind", [N1, N2, SRM], ids=lambda kind: kind.name)
def test_a_forged_packet_brings_few_requests_however_long_they_are_repeated(kind: ProtocolSpec) -> None:
    machine, ports = receiver(kind, robust=20)
    machine.receive(data(MOST_UNITS - 1, MOST_UNITS), "forger", GROUP, 0.0)
    while machine.deadline < inf and states(machine)[0]._objects:
        machine.wake(machine.deadline)
    requests = [packet for packet in ports.packets if isinstance(packet.message, Nack)]
    # Each is repeated `robust` times, and then the object is given up.
    assert 0 < len(requests) <= 21 * (FEW_MISSING + MORE_MISSING)


@pytest.mark.parametrize("kind", [N1, N2, SRM], ids=lambda kind: kind.name)
def test_packets_bring_requests_in_proportion_to_what_they_carry(kind: ProtocolSpec) -> None:
    machine, _ = receiver(kind)
    count = 200
    for number in range(1, count + 1):
        # Each says that a thousand units before it were sent.
        machine.receive(data(1000 * number, MOST_UNITS), "forger", GROUP, 0.0)
    assert len(states(machine)[0]._missing) <= FEW_MISSING + MORE_MISSING * count


@pytest.mark.parametrize("kind", [N1, N2, SRM], ids=lambda kind: kind.name)
def test_the_same_end_again_and_again_takes_no_memory(kind: ProtocolSpec) -> None:
    machine, _ = receiver(kind)
    machine.receive(data(MOST_UNITS - 1, MOST_UNITS), "home", GROUP, 0.0)
    for _ in range(3 * MOST_LATER):
        machine.receive(End(1, 7, 1, 5, 0), "forger", GROUP, 0.0)
    assert len(states(machine)[0]._later) < 5


class Ignored:
    """A sink that drops what is written."""

    def write(self, offset: int, data: bytes | memoryview) -> None:
        """Drop a segment."""

    def read(self, offset: int, n: int) -> bytes:
        """Return zeros."""
        return bytes(n)

    def commit(self, info: bytes) -> None:
        """Accept the end."""

    def abort(self) -> None:
        """Accept the end."""


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize("kind", [N1, N2, SRM], ids=lambda kind: kind.name)
def test_more_missing_units_than_are_requested_at_a_time_are_requested_in_turn(
    kind: ProtocolSpec, fast: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(protocols.arq.sender_state, "MOST_MISSING", 8)
    machine, ports = receiver(kind, fast)
    # All of objects 0 and 1 was lost but a unit each; of object 2 the end comes.
    for message in (data(20, 40), data(5, 30, 1), data(0, 3, 2), End(1, 7, 2, 3, 0)):
        machine.receive(message, "home", GROUP, 0.0)
    sent, now = 0, 0.0
    units = {0: 40, 1: 30, 2: 3}
    while len(ports.events) < 200 and now < 60.0:
        now = max(machine.deadline, now)
        machine.wake(now)
        asked = [packet.message for packet in ports.packets[sent:] if isinstance(packet.message, Nack)]
        sent = len(ports.packets)
        for nack in asked:
            assert len(states(machine)[0]._missing) <= 8
            machine.receive(data(nack.unit, units[nack.object_id], nack.object_id), "home", GROUP, now)
        if not states(machine)[0]._objects:
            break
    received = [event.object_id for event in ports.events if isinstance(event, ObjectReceived)]
    assert sorted(received) == [0, 1, 2]
    assert not states(machine)[0]._missing


def test_ranges_that_are_put_off_are_bounded_and_repairs_make_room_for_more() -> None:
    machine, _ = receiver(N1)
    machine.receive(data(0, MOST_UNITS), "home", GROUP, 0.0)
    state = states(machine)[0]
    for unit in range(MOST_MISSING + 2, MOST_MISSING + 3 * MOST_LATER, 2):
        machine.receive(data(unit, MOST_UNITS), "home", GROUP, 0.0)
    assert len(state._later) <= MOST_LATER
    assert machine.counts()["ignored"] > 0
    reached = state.reached
    for unit in range(1, MOST_MISSING + MOST_LATER):
        machine.receive(data(unit, MOST_UNITS), "home", GROUP, 0.1)
    assert len(state._missing) < MOST_MISSING
    machine.receive(data(MOST_UNITS - 1, MOST_UNITS), "home", GROUP, 0.1)
    assert state.reached > reached


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_objects_of_announced_sizes_take_no_memory_for_more_units_than_are_allowed(kind: ProtocolSpec) -> None:
    machine, ports = receiver(kind)
    ports.accepting = lambda offer: Ignored()
    for object_id in range(500):
        machine.receive(data(0, MOST_UNITS, object_id), "forger", GROUP, 0.0)
    (state,) = states(machine)
    assert sum(item.units for item in state._objects.values() if item is not None) <= MOST_UNITS_OPEN
    assert machine.counts()["ignored"] > 0


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_forged_senders_are_forgotten_again(kind: ProtocolSpec) -> None:
    machine, _ = receiver(kind)
    for sender in range(10, 10 + 2 * MOST_SENDERS):
        machine.receive(End(sender, 1, 0, 1, 1), "forger", GROUP, 0.0)
    assert len(states(machine)) == MOST_SENDERS
    machine.receive(data(0, 2), "home", GROUP, 0.1)
    for sender in range(10_000, 10_000 + 2 * MOST_SENDERS):
        machine.receive(End(sender, 1, 0, 1, 1), "forger", GROUP, 0.1)
        machine.receive(data(0, 2, sender=sender), "forger", GROUP, 0.1)
    assert len(states(machine)) == MOST_SENDERS
    assert machine.counts()["ignored"] > 0
    machine.receive(data(1, 2), "home", GROUP, 0.2)
    assert machine.counts()["objects_received"] == 1


def test_missing_units_of_all_senders_are_bounded() -> None:
    machine, ports = receiver(N2)
    ports.accepting = lambda offer: Ignored()
    for sender in range(100):
        machine.receive(data(0, 1 << 14, sender=sender), "forger", GROUP, 0.0)
        machine.receive(data((1 << 14) - 1, 1 << 14, sender=sender), "forger", GROUP, 0.0)
    kept = sum(len(state._missing) for state in states(machine))
    assert kept <= 100 * (FEW_MISSING + MORE_MISSING)


def test_a_session_message_about_many_senders_finds_no_more_missing_than_a_packet() -> None:
    machine, ports = receiver(SRM)
    ports.accepting = lambda offer: Ignored()
    for sender in range(200):
        machine.receive(data(0, 1 << 14, sender=sender), "forger", GROUP, 0.0)
    message = SessionMessage(9, 0, tuple((sender, 7, 0, 1 << 14) for sender in range(200)), {})
    assert cost(machine, message) < 2 * LINES_PER_MISSING * MOST_MISSING


def sending(kind: ProtocolSpec) -> Any:
    ports = Recorder()
    machine = kind.make_sender(ports, kind.config(segment=SEGMENT, rate=1e9), 1, GROUP, 7)
    machine.start(0.0)
    machine.submit(Content(Bytes(pattern(2000))), 0.0)
    machine.wake(0.001)
    return machine


def test_forged_receivers_fill_no_table_of_a_sender(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocols.arq.acked_sender, "MOST_RECEIVERS", 100)
    machine = sending(A)
    for node in range(1000):
        machine.receive(Ack(1, 7, 0, 0, node), "forger", GROUP, 0.001)
    assert len(machine._heard_at) == len(machine._outstanding[0, 0].acked) == 100


@pytest.mark.parametrize("kind", [N1, N2, SRM], ids=lambda kind: kind.name)
def test_forged_requests_fill_no_table_of_a_sender(kind: ProtocolSpec, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocols.arq.nacked_sender, "MOST_REQUESTED", 5)
    monkeypatch.setattr(protocols.srm.repair_timers, "MOST_TIMERS", 5)
    machine = sending(kind)
    for _ in range(3):
        for unit in range(21):
            machine.receive(Nack(1, 7, 0, unit, 9), "forger", GROUP, 0.001)
    waiting = machine._repair_timers._timers if kind is SRM else machine._requested
    assert len(waiting) == 5


def test_forged_repairs_fill_no_table_of_an_srm_member(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocols.srm.repair_timers, "MOST_HELD", 50)
    machine: Any = receiver(SRM)[0]
    repairs = machine._srm._repairs
    for unit in range(1000):
        repairs.hold((1, 0, unit), 50.0, 0.0)
    assert len(repairs._held) == 50
    assert (1, 0, 999) in repairs._held
