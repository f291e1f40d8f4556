"""A tunnel by itself: what it carries, where it cuts loops, which one serves a site, how it reports congestion."""

import pytest

from experiments.contract.recorder import Recorder
from protocols.admin.node import Node
from protocols.machine import Group, Message
from protocols.tunnel import Tunnel, TunnelOptions
from protocols.tunnel.memory import LossMeter, Memory
from protocols.tunnel.messages import Brake, Carried, Opaque, Presence, Report
from protocols.tunnel.wire import HEADER, group_bytes

GROUP = Group("239.7.7.7:6003")
PEERS = [Node(2, "b", 0, "10.0.0.2", 7001, GROUP.name), Node(3, "c", 0, "10.0.0.3", 7001, GROUP.name)]
B, C, LOCAL = ("10.0.0.2", 40000), ("10.0.0.3", 40001), ("10.1.0.5", 999)
HOME = ("10.0.0.1", 7001)


def data(sequence: int, sender: int = 9) -> Opaque:
    """Return a DATA of NORM, as far as a tunnel reads it."""
    return Opaque(bytes([0x12, 4]) + sequence.to_bytes(2) + sender.to_bytes(4) + bytes([0, 1, 100, 0]) + b"content")


def nack(number: int = 0) -> Opaque:
    """Return a NACK of NORM, as far as a tunnel reads it."""
    return Opaque(bytes([0x14, 6, 0, 0]) + number.to_bytes(4) + bytes(16))


def from_peer(message: Message, site: int = 2, sequence: int = 1, hops: int = 1, reported: bool = False) -> Carried:
    """Return a datagram of a peer."""
    return Carried(site, sequence, hops, group_bytes(GROUP.name), message, reported)


class Scene:
    """One tunnel of node 1 with two peers."""

    def __init__(self, **options: object) -> None:
        self.ports = Recorder()
        self.tunnel = Tunnel(self.ports, 1, GROUP, TunnelOptions(**options))  # type: ignore[arg-type]
        self.tunnel.update_peers(PEERS)
        self.tunnel.start(0.0)
        self.tunnel.wake(0.0)
        self.ports.packets.clear()

    def multicast(self, message: Message, now: float = 0.001, source: object = LOCAL) -> None:
        """Give a multicast of the site."""
        self.tunnel.receive(message, source, GROUP, now)

    def unicast(self, message: Message, source: object = B, now: float = 0.001) -> None:
        """Give a datagram."""
        self.tunnel.receive(message, source, HOME, now)

    def sent(self) -> list[tuple[Message, object]]:
        """Return what was sent since the last call, and where to."""
        found = [(packet.message, packet.to) for packet in self.ports.packets]
        self.ports.packets.clear()
        return found

    def carried(self) -> list[object]:
        """Return where packets were carried since the last call."""
        return [to for message, to in self.sent() if isinstance(message, Carried)]


def test_a_multicast_goes_to_every_peer_with_at_most_16_bytes_more() -> None:
    scene = Scene()
    scene.multicast(data(1))
    sizes = [packet.size for packet in scene.ports.packets]
    assert sizes == [len(data(1).data) + HEADER] * 2
    assert HEADER <= 16
    sent = scene.sent()
    assert [to for _, to in sent] == [("10.0.0.2", 7001), ("10.0.0.3", 7001)]
    assert sent[0][0] == Carried(1, 1, 1, group_bytes(GROUP.name), data(1))


@pytest.mark.parametrize("message", [data(1), nack(), Opaque(b"something else"), Opaque(b"")])
def test_a_datagram_of_a_peer_is_multicast_at_home_as_it_was(message: Opaque) -> None:
    scene = Scene()
    scene.unicast(from_peer(message))
    assert scene.sent() == [(message, GROUP)]
    assert scene.tunnel.counts()["packets_returned"] == 1


def test_datagrams_of_others_than_peers_are_refused() -> None:
    scene = Scene()
    scene.unicast(from_peer(data(1)), source=("10.9.9.9", 7001))
    scene.unicast(data(2))
    scene.unicast(Carried(2, 1, 1, bytes(6), data(3)))
    assert scene.sent() == []
    assert scene.tunnel.counts()["datagrams_refused"] == 3


def test_a_paused_peer_gets_and_gives_nothing() -> None:
    scene = Scene()
    scene.tunnel.update_peers([Node(2, "b", 0, "10.0.0.2", 7001, GROUP.name, paused=True), PEERS[1]])
    scene.multicast(data(1))
    assert scene.carried() == [("10.0.0.3", 7001)]
    scene.unicast(from_peer(data(2)))
    assert scene.sent() == []


def test_datagrams_of_the_own_site_or_without_hops_are_cut() -> None:
    scene = Scene()
    scene.unicast(from_peer(data(1), site=1))
    scene.unicast(from_peer(data(2), hops=0))
    assert scene.sent() == []
    assert scene.tunnel.counts()["loops_cut_site"] == 2


def test_multicasts_of_another_tunnel_of_the_site_are_cut() -> None:
    scene = Scene()
    scene.multicast(Presence(1, 7, 5_000_000), source=("10.1.0.9", 5))
    scene.multicast(data(1), source=("10.1.0.9", 5))
    assert scene.carried() == []
    assert scene.tunnel.counts()["loops_cut_tunnels"] == 1
    # A program on the same host sends from another port.
    scene.multicast(data(1), source=("10.1.0.9", 6))
    assert len(scene.carried()) == 2


def test_what_was_carried_already_is_cut_in_both_directions() -> None:
    scene = Scene()
    scene.multicast(data(1))
    scene.unicast(from_peer(data(1)))
    scene.unicast(from_peer(data(2)), source=C)
    scene.multicast(data(2))
    assert len(scene.sent()) == 3
    assert scene.tunnel.counts()["loops_cut_memory"] == 2


def test_feedback_is_remembered_for_a_grtt_only() -> None:
    scene = Scene()
    scene.multicast(data(1))
    grtt = 0.0066
    scene.sent()
    scene.multicast(nack(), 0.010)
    scene.multicast(nack(), 0.010 + grtt * 0.9)
    assert len(scene.carried()) == 2
    scene.multicast(nack(), 0.010 + grtt * 1.1)
    assert len(scene.carried()) == 2


@pytest.mark.parametrize("cut", ["site", "tunnels", "memory"])
def test_each_cut_can_be_switched_off(cut: str) -> None:
    scene = Scene(without=cut)
    scene.multicast(Presence(1, 7, 5_000_000), source=("10.1.0.9", 5))
    scene.multicast(data(1), source=("10.1.0.9", 5))
    assert bool(scene.carried()) == (cut == "tunnels")
    scene.unicast(from_peer(data(2), site=1))
    assert bool(scene.sent()) == (cut == "site")
    scene.multicast(data(3))
    scene.sent()
    scene.multicast(data(3))
    assert bool(scene.sent()) == (cut == "memory")


def test_a_packet_with_hops_left_is_passed_on_to_the_other_peers() -> None:
    scene = Scene(hops=3)
    scene.unicast(from_peer(data(1), hops=2))
    sent = scene.sent()
    assert sent[0] == (data(1), GROUP)
    assert [to for _, to in sent[1:]] == [("10.0.0.3", 7001)]
    passed = sent[1][0]
    assert isinstance(passed, Carried)
    assert (passed.site, passed.hops) == (2, 1)


def test_a_pace_fills_the_ring_whose_overflow_is_counted() -> None:
    scene = Scene(ring=4, pace=1000.0)
    for number in range(10):
        scene.multicast(data(number))
    assert len(scene.carried()) == 2
    assert scene.tunnel.counts()["ring_dropped"] == 5
    assert scene.tunnel.held()["packets in the ring"] == (4, 4)
    assert scene.tunnel.counters()["ring_used"] == 4
    now = 0.0
    times = []
    while scene.tunnel.held()["packets in the ring"][0]:
        now = scene.tunnel.deadline
        scene.tunnel.wake(now)
        times += [now] * (len(scene.carried()) // 2)
    gap = (len(data(0).data) + HEADER) / 1000
    assert times == pytest.approx([0.001 + gap * n for n in range(1, 5)])


def test_the_network_takes_no_more_until_it_resumes() -> None:
    scene = Scene()
    scene.ports.room = 2
    for number in range(3):
        scene.multicast(data(number))
    assert len(scene.carried()) == 2
    scene.ports.room = 100
    scene.tunnel.resume(0.5)
    assert len(scene.carried()) == 4


def test_each_packet_costs_processor_time_in_both_directions() -> None:
    scene = Scene(work=0.001)
    scene.multicast(data(1))
    scene.multicast(data(2))
    scene.unicast(from_peer(data(3)))
    assert scene.tunnel.deadline == 0.001
    scene.tunnel.wake(0.001)
    assert scene.ports.works == [0.001]
    scene.tunnel.wake(0.002)
    assert scene.ports.works == [0.001] * 2
    scene.tunnel.wake(0.003)
    assert len(scene.ports.works) == 3


def test_the_tunnel_that_serves_longest_keeps_the_others_quiet() -> None:
    scene = Scene(hello=1.0)
    elder = ("10.1.0.9", 5)
    scene.ports.epoch = 0.0
    scene.multicast(Presence(77, 7, -0), 0.1, elder)
    # Node 1 is older by its id, since both serve from the same instant.
    scene.multicast(data(1), 0.2)
    assert len(scene.carried()) == 2
    younger = Scene(hello=1.0)
    younger.tunnel.start(5.0)
    younger.multicast(Presence(77, 7, 1), 5.1, elder)
    younger.multicast(data(1), 5.2)
    younger.unicast(from_peer(data(2)), now=5.2)
    assert younger.sent() == []
    assert younger.tunnel.counts()["packets_left"] == 2
    # It has taken over the number of the site.
    younger.tunnel.wake(8.2)
    assert [message for message, _ in younger.sent()] == [Presence(77, 1, 5_000_000)]
    younger.multicast(data(3), 8.3)
    assert len(younger.carried()) == 2


def test_a_younger_tunnel_is_answered_at_once() -> None:
    scene = Scene(hello=1.0)
    scene.multicast(Presence(8, 8, 10), 0.3)
    scene.tunnel.wake(scene.tunnel.deadline)
    assert scene.tunnel.deadline > 1
    assert [message for message, _ in scene.sent()] == [Presence(1, 1, 0)]


def test_losses_are_reported_to_peers_that_ask_and_to_publishers() -> None:
    peer, scene = Scene(), Scene(brake=True)
    for number in (1, 2, 4, 5):
        peer.unicast(from_peer(data(number), sequence=number, reported=True))
    peer.sent()
    peer.tunnel.wake(0.11)
    reports = [(message, to) for message, to in peer.sent() if isinstance(message, Report)]
    assert reports == [(Report(1, 4, 1), ("10.0.0.2", 7001))]
    for number in (1, 2, 4):
        scene.multicast(data(number))
    assert all(isinstance(message, Carried) and message.requests_reports for message, _ in scene.sent())
    scene.unicast(reports[0][0])
    scene.tunnel.wake(0.2)
    brakes = [message for message, to in scene.sent() if isinstance(message, Brake)]
    assert len(brakes) == 1
    assert brakes[0].lost / 65535 == pytest.approx(1 - (1 - 1 / 4) * (1 - 1 / 5), abs=1e-4)
    assert brakes[0].ring / 65535 == pytest.approx(1 / 256, abs=1e-4)


def test_a_queue_on_the_way_is_reported_before_anything_is_lost() -> None:
    scene, told = Scene(brake=True), []
    for step in range(1, 9):
        for number in range(10):
            scene.multicast(data(step * 10 + number), step / 10)
        # A report has totals, so that one that is lost does no harm.
        if step != 3:
            scene.unicast(Report(2, 6 * step, 0), now=step / 10)
        scene.tunnel.wake(step / 10 + 0.01)
        told += [message for message, to in scene.sent() if isinstance(message, Brake)]
    assert told[0].lost == 0
    # 6 of 10 get through, and 28 have come to wait for half a second.
    assert told[-1].lost / 65535 == pytest.approx(0.4, abs=0.01)
    assert told[-1].ring == 65535


def test_brakes_are_at_most_ten_per_second() -> None:
    scene = Scene(brake=True)
    now = 0.0
    while now < 2.0:
        now = scene.tunnel.deadline
        scene.tunnel.wake(now)
    assert sum(isinstance(message, Brake) for message, _ in scene.sent()) <= 21


def test_a_packet_too_long_for_a_datagram_is_counted() -> None:
    scene = Scene()
    scene.multicast(Opaque(bytes(1472 - HEADER + 1)))
    scene.multicast(Opaque(bytes(1472 - HEADER)))
    assert scene.tunnel.counts()["packets_oversized"] == 1
    assert len(scene.carried()) == 2


def test_a_memory_is_bounded_and_forgets() -> None:
    memory = Memory(3)
    assert [memory.add(key, 0.0, 1.0) for key in (1, 2, 1, 3, 4)] == [True, True, False, True, True]
    assert len(memory) == 3
    assert memory.add(1, 0.5, 1.0)
    assert memory.add(4, 1.0, 1.0)
    assert len(memory) == 2


def test_a_meter_counts_gaps_late_numbers_and_restarts() -> None:
    meter = LossMeter(16)
    for number in (65_534, 65_535, 1, 0, 4):
        meter.take("a", number)
    assert (meter.received, meter.lost) == (5, 2)
    meter.take("b", 30_000)
    meter.take("a", 30_000)
    meter.take("a", 30_001)
    assert (meter.received, meter.lost) == (8, 2)
    assert meter.since() == (8, 2)
    assert meter.since() == (0, 0)
