"""Session messages: when members send them, within which share of the rate, what they reveal, and what is ignored of them."""

from itertools import pairwise
from typing import Any

import pytest

from experiments.contract.recorder import Recorder
from protocols.arq.messages import Data, Nack, identity_of
from protocols.machine import Group, Machine
from protocols.srm import PROTOCOL
from protocols.srm.config import SrmConfig
from protocols.srm.member import Member
from protocols.srm.messages import Request, SessionMessage
from protocols.srm.receiver import SrmReceiver
from protocols.srm.wire import size_of
from tests.protocols.srm.networks import HOP, run, segments, star, totals

GROUP = Group("all")


def member(**settings: Any) -> tuple[Member, Recorder]:
    """Return member 1, not a source, and its ports."""
    ports = Recorder()
    return Member(ports, SrmConfig(**settings), 1, GROUP, is_source=False), ports


def times(one: Member, until: float, active: float) -> list[float]:
    """Let a member be active up to `active` seconds; returns when it sends session messages up to `until` seconds."""
    found = []
    one.on_activity(0.0)
    while one.due <= until:
        now, before = one.due, one.sent
        if now <= active:
            one.on_activity(now)
        one.wake([], now)
        found += [now] * (one.sent - before)
    return found


def receiver() -> tuple[Machine, Recorder]:
    """Return a started receiver, node 2, that has received units 0 and 1 of 5 of object 0."""
    ports = Recorder()
    machine = PROTOCOL.make_receiver(ports, PROTOCOL.config(segment=100, distance=0.01, timers="fixed", keep=8), 2, GROUP)
    machine.start(0.0)
    for number in (0, 1):
        length = 100 if number else 0
        message = Data(1, 7, 0, number, 0, 400, 100, True, False, bytes(length), length, identity_of(1, 0, number))
        machine.receive(message, "home", GROUP, 0.0)
    return machine, ports


def requests(machine: Machine, ports: Recorder, until: float) -> list[tuple[int, int]]:
    """Run up to `until` seconds; returns (object, unit) of the requests sent."""
    while machine.deadline <= until:
        machine.wake(machine.deadline)
    sent = [packet.message for packet in ports.packets]
    return sorted({(message.object_id, message.unit) for message in sent if isinstance(message, Request)})


def test_intervals_are_random_and_on_average_shorter_than_configured_by_the_factor_of_reconsideration() -> None:
    one, _ = member(session_interval=0.1, rate=1e9)
    found = times(one, 100.0, 100.0)
    gaps = [after - before for before, after in pairwise(found)]
    # Uniform from 0.5 to 1.5 of the interval, divided by e - 1.5: a mean of 0.082 s.
    assert 0.041 - 1e-9 <= min(gaps) < 0.05
    assert 0.11 < max(gaps) <= 0.124
    assert sum(gaps) / len(gaps) == pytest.approx(0.0821, abs=4 * 0.0237 / len(gaps) ** 0.5)


@pytest.mark.parametrize("receivers", [5, 40])
def test_all_session_messages_together_keep_to_their_share_of_the_rate(receivers: int) -> None:
    """The mean interval is that of the share; what is sent before members know of each other comes on top."""
    session = run(star(receivers, segments(), everywhere=False), 2000, session_interval=1e-3)
    took = 2000 * 531 / 125_000
    sent = session.network.traffic.octets["session"]
    assert 0.6 * 0.05 < sent / 125_000 / took < 1.3 * 0.05


def test_no_session_messages_are_sent_without_a_share_of_the_rate_and_after_the_activity_ended() -> None:
    one, ports = member(session_share=0.0)
    assert not times(one, 100.0, 100.0)
    one, ports = member(timeout=1.0)
    found = times(one, 1e6, 5.0)
    assert found[-1] < 7.0 + 0.2
    assert one.due == float("inf")
    one.on_activity(100.0)
    assert 100.0 < one.due < 100.2
    assert all(packet.to == GROUP and packet.size == size_of(packet.message) for packet in ports.packets)


@pytest.mark.parametrize("seed", [1, 2])
def test_all_members_of_a_star_measure_their_distances(seed: int) -> None:
    session = run(star(12, segments(), everywhere=False), 300, seed=seed, distance=5.0)
    for number in range(1, 13):
        machine = session.network.host(f"h{number}").machine
        assert isinstance(machine, SrmReceiver)
        peers = machine._srm.member.peers
        assert peers.count() == 13
        distances = [peers.distance(node) for node in range(1, 14) if node != number + 1]
        assert distances == [pytest.approx(2 * HOP, abs=1e-5)] * 12
    assert totals(session)["sessions_heard"] > 12 * 13


def test_a_report_of_another_member_reveals_the_loss_of_the_last_units() -> None:
    machine, ports = receiver()
    machine.receive(SessionMessage(9, 0, ((1, 7, 0, 5),)), "r9", GROUP, 0.01)
    assert requests(machine, ports, 0.2) == [(0, 2), (0, 3), (0, 4)]
    machine.receive(SessionMessage(9, 0, ((1, 7, 1, 1),)), "r9", GROUP, 0.3)
    assert requests(machine, ports, 0.5)[-1] == (1, 0)


@pytest.mark.parametrize("position", [(1, 6, 0, 5), (3, 7, 0, 5), (1, 7, 0, 1), (1, 7, 9, 1), (1, 7, 0xFFFFFFFF, 1)])
def test_reports_of_other_instances_unknown_sources_the_past_and_the_far_future_reveal_nothing(
    position: tuple[int, int, int, int],
) -> None:
    machine, ports = receiver()
    machine.receive(SessionMessage(9, 0, (position,)), "r9", GROUP, 0.01)
    assert not requests(machine, ports, 0.5)
    assert machine.counts()["ignored"] == (position[2] > 8)


def test_a_machine_keeps_no_more_members_than_its_limit() -> None:
    ports, config = Recorder(), PROTOCOL.config(peers=16)
    for machine in (PROTOCOL.make_receiver(ports, config, 2, GROUP), PROTOCOL.make_sender(ports, config, 2, GROUP, 7)):
        machine.start(0.0)
        for node in range(3, 2000):
            machine.receive(SessionMessage(node, 0, ((node, 0, 0, 1),) * (node % 2)), f"r{node}", GROUP, 0.001 * node)
            machine.receive(Nack(1, 7, 0, 0, node), f"r{node}", GROUP, 0.001 * node)
        kept, limit = machine.held()["members"]
        assert 0 < kept <= limit == 16
