"""Forged packets of the bus and FJM: what they make a machine keep is bounded."""

from functools import partial

import pytest

import protocols.nacked.subscriber
from experiments.contract.recorder import Recorder
from protocols.bus.config import BusConfig
from protocols.bus.publisher import BusPublisher
from protocols.bus.subscriber import BusSubscriber
from protocols.fjm.config import FjmConfig
from protocols.fjm.manager import FjmManager
from protocols.fjm.messages import MOST_TOPICS, Answer, Ask, Candidate, Guard, Register
from protocols.fjm.subscriber import FjmSubscriber
from protocols.machine import Group, Machine, Message
from protocols.messaging import MessageReceived, Publication, Subscription
from protocols.nacked.messages import Data, Nack, Status
from protocols.nacked.packet_receiver import PACKET_OVERHEAD
from protocols.nacked.packet_sender import PacketSender
from protocols.nacked.subscriber import MOST_PUBLISHERS
from protocols.roles import RoleContext
from tests.protocols.norm.test_hostile import lines

GROUP = Group("239.0.0.1:6003")
LAST = (1 << 64) - 1


def give(machine: Machine, messages: list[Message]) -> None:
    """Give a machine messages of a stranger."""
    for number, message in enumerate(messages):
        machine.receive(message, "stranger", GROUP, number * 1e-6)


def subscriber() -> tuple[Recorder, BusSubscriber]:
    """Return a subscriber of the bus and its ports."""
    ports = Recorder()
    machine = BusSubscriber(ports, RoleContext(BusConfig(), 2, GROUP))
    machine.start(0.0)
    machine.subscribe(Subscription(0, "topic:t"), 0.0)
    return ports, machine


def forged(publisher: int, sequence: int, size: int) -> Data:
    """Return a packet in front of which all others are missing."""
    return Data((publisher, 1), sequence, sequence, 0, 2, size, bytes(size))


def honest() -> list[Data]:
    """Return the packets of a publisher of three messages."""
    sender, found = PacketSender((7, 1), 1000, 10.0), list[Data]()
    for number in range(3):
        sender.push(Publication(7, number, "topic:t", 1500, bytes(1500)))
    while sender:
        packet = sender.take(0.0)[0]
        found.append(Data(*[getattr(packet, name) for name in Data.__slots__[:7]]))
    return found


def kept(machine: BusSubscriber) -> int:
    """Return the bytes that a subscriber keeps of all publishers."""
    return sum(receiver.octets for receiver in machine._receivers.values())


@pytest.mark.parametrize("size", [1, 1400])
def test_packets_that_wait_for_missing_ones_take_bounded_memory(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    most = 2_000_000
    monkeypatch.setattr(protocols.nacked.subscriber, "MOST_OCTETS", most)
    ports, machine = subscriber()
    ours = honest()
    give(machine, [ours[0], ours[2]])
    for round_ in range(100):
        give(machine, [forged(100 + publisher, 2 + 2 * round_, size) for publisher in range(100)])
        assert kept(machine) < most + size + PACKET_OVERHEAD
    # The honest publisher keeps little, so it is not the one that is forgotten.
    give(machine, [ours[1], *ours[3:]])
    assert len([event for event in ports.events if isinstance(event, MessageReceived)]) == 3


def test_a_packet_far_ahead_costs_what_it_passes_by_and_not_what_is_kept() -> None:
    _, machine = subscriber()
    ahead = machine.config.ahead
    give(machine, [forged(7, sequence, 10) for sequence in (1, *range(3, ahead, 2))])
    for sequence in range(ahead + 3, ahead + 103, 2):
        packet = forged(7, sequence, 10)
        assert lines(partial(give, machine, [packet])) < 200
    kept = machine.held()["packets"][0]
    assert lines(lambda: give(machine, [forged(7, 2 * ahead, 10)])) < 40 * kept
    # All that is left was received, or is requested.
    (receiver,) = machine._receivers.values()
    held = {number for low, high in receiver.missing for number in range(low, high + 1)} | set(receiver._kept)
    assert held == set(range(receiver._next, receiver.highest + 1))


def test_nacks_of_one_publisher_cost_little_while_packets_of_many_are_missing() -> None:
    _, machine = subscriber()
    give(machine, [forged(number, 5, 10) for number in range(1000)])
    deadlines = sorted(receiver.nack_at for receiver in machine._receivers.values())
    assert lines(lambda: machine.wake(deadlines[0])) < 8 * 1000


def test_a_million_publishers_are_forgotten_again() -> None:
    _, machine = subscriber()
    # A tenth of a million: none of what follows depends on how many came before.
    give(machine, [Status((number, 1), 0, LAST) for number in range(100_000)])
    assert len(machine._receivers) == MOST_PUBLISHERS
    give(machine, [forged(number, 5, 10) for number in range(20_000)])
    assert len(machine._receivers) == MOST_PUBLISHERS


def test_numbers_up_to_the_largest_are_ranges_and_no_work() -> None:
    _, machine = subscriber()
    forgeries = [Status((7, 1), 0, LAST), Status((7, 1), LAST // 2, LAST), forged(7, LAST, 10), Nack((7, 1), ((0, LAST),))]
    give(machine, [*forgeries, *reversed(forgeries)] * 10)
    machine.wake(1.0)
    assert machine.held()["packets"][0] <= 2
    publisher = BusPublisher(Recorder(), RoleContext(BusConfig(), 7, GROUP))
    publisher.start(0.0)
    publisher.publish(Publication(7, 0, "topic:t", 10, bytes(10)), 0.0)
    give(publisher, [Nack((7, 1), ((0, LAST),) * 64)] * 100)
    assert publisher.counts()["repairs_sent"] <= 100


def test_a_million_forged_names_fill_no_table_of_a_manager() -> None:
    manager = FjmManager(Recorder(), RoleContext(FjmConfig(), 1, GROUP))
    manager.start(0.0)
    manager.wake(1.0)
    count = 20_000
    give(manager, [Ask(number, f"topic:{number}") for number in range(count)])
    give(manager, [Register(number, 1, f"topic:x{number}") for number in range(count)])
    give(manager, [Candidate(0)] + [Answer(number, number, f"topic:y{number}") for number in range(count)])
    give(manager, [Guard(2 + number) for number in range(count)])
    assert len(manager._topics) == len(manager._members) == manager.held()["members"][0] == MOST_TOPICS
    assert len(manager._managers) <= 1000


def test_forged_topics_fill_no_table_of_a_client() -> None:
    client = FjmSubscriber(Recorder(), RoleContext(FjmConfig(address_fault=1), 2, GROUP))
    client.start(0.0)
    give(client, [Answer(1, number % 60_000, f"topic:{number}") for number in range(5000)])
    assert len(client._registration.others) == MOST_TOPICS
