"""The sender's congestion control: the current limiting receiver, and the rate that follows from it."""

from typing import Any

import pytest

from experiments.contract.recorder import Recorder
from protocols.norm.config import NormConfig
from protocols.norm.congestion.controller import MOST_LISTED, CongestionControl
from protocols.norm.congestion.equation import tcp_rate
from protocols.norm.congestion.states import FLAG_CLR, FLAG_LEAVE, FLAG_LIMIT, FLAG_PLR, FLAG_RTT, FLAG_START, split_loss
from protocols.norm.messages import Ack, CcFeedback, Nack
from protocols.norm.quantise import rate_code, rtt_code
from protocols.norm.wire.codec import NormCodec
from tests.support.captures import udp_payloads

RTT = 0.1


class Scene:
    """A controller, a clock and receivers that give feedback."""

    def __init__(self, **settings: Any) -> None:
        self.config = NormConfig(congestion="norm", segment=1000, **settings)
        self.control = CongestionControl(Recorder(), self.config, RTT)
        self.now, self.probes = 0.0, 0

    def probe(self, after: float = RTT) -> None:
        """Let time pass, and make a probe."""
        self.now += after
        self.probes += 1
        self.control.probed(RTT, self.now)

    def start(self, node: int, rate: float, rtt: float = RTT, flags: int = 0) -> None:
        """Tell of a receiver that has seen no loss and could receive `rate`."""
        self._tell(node, CcFeedback(self.probes, FLAG_START | flags, rtt_code(rtt), 0, rate_code(rate)), rtt)

    def lose(self, node: int, loss: float, rtt: float = RTT, flags: int = 0, rate: float = 1e9) -> None:
        """Tell of a receiver with a loss event rate."""
        self._tell(node, CcFeedback(self.probes, flags, rtt_code(rtt), *_middle(loss, rate)), rtt)

    def _tell(self, node: int, told: CcFeedback, rtt: float) -> None:
        self.control.heard(node, told, rtt, self.now)

    def settle(self, node: int, loss: float, rtt: float = RTT, rounds: int = 300) -> None:
        """Let a receiver be the CLR with constant loss until the rate has risen to what that allows."""
        for _ in range(rounds):
            self.probe()
            self.lose(node, loss, rtt)


def _middle(loss: float, rate: float) -> tuple[int, int, int]:
    high, low = split_loss(loss)
    return high, rate_code(rate), low


def test_a_sender_begins_with_a_segment_per_round_trip_and_keeps_to_its_bounds() -> None:
    assert Scene().control.rate == pytest.approx(1000 / RTT)
    assert Scene(rate_min=50e3).control.rate == 50e3
    assert Scene(rate_max=5e3).control.rate == 5e3


def test_in_slow_start_the_rate_is_that_of_the_receiver_that_receives_least_and_doubles_at_most() -> None:
    scene = Scene()
    scene.start(7, 15e3)
    assert scene.control.state.phase == "slow start"
    assert scene.control.rate == pytest.approx(15e3, rel=1e-3)
    scene.probe()
    scene.start(7, 1e6)
    assert scene.control.rate == pytest.approx(30e3, rel=1e-3)
    scene.start(8, 25e3)
    assert scene.control.state.clr == 8
    assert scene.control.rate == pytest.approx(25e3, rel=1e-3)


def test_the_first_loss_ends_slow_start_with_the_rate_of_the_equation() -> None:
    scene = Scene(rate_min=1e6)
    scene.start(7, 2e6)
    scene.probe()
    scene.lose(7, 0.01)
    assert scene.control.state.phase == "steady"
    scene = Scene()
    for _ in range(10):
        scene.probe()
        scene.start(7, 1e6)
    assert scene.control.rate == pytest.approx(1e6, rel=1e-3)
    scene.probe()
    scene.lose(7, 0.01)
    assert scene.control.rate == pytest.approx(tcp_rate(1000, RTT, 0.01), rel=1e-3)


def test_a_higher_rate_is_approached_by_a_segment_per_round_trip() -> None:
    scene = Scene()
    scene.settle(7, 0.1)
    before = scene.control.rate
    assert before == pytest.approx(tcp_rate(1000, RTT, 0.1), rel=1e-3)
    for _ in range(5):
        scene.probe()
        scene.lose(7, 0.001)
    assert scene.control.rate == pytest.approx(before + 5 * 1000 / RTT, rel=1e-3)


def test_a_lower_rate_is_adopted_at_once_and_its_receiver_becomes_the_clr() -> None:
    scene = Scene()
    scene.settle(7, 0.001)
    scene.lose(8, 0.02)
    state = scene.control.state
    assert state.clr == 8
    assert state.clr_loss == pytest.approx(0.02)
    assert state.rate == pytest.approx(tcp_rate(1000, RTT, 0.02), rel=1e-3)
    first, second = scene.control.nodes
    assert (first.node_id, first.flags & (FLAG_CLR | FLAG_PLR)) == (8, FLAG_CLR)
    assert second.node_id == 7


def test_of_similar_rates_the_longer_round_trip_time_decides() -> None:
    scene = Scene()
    scene.start(7, 100e3)
    scene.start(8, 103e3)
    assert scene.control.state.clr == 7
    scene.start(9, 103e3, rtt=0.2)
    assert scene.control.state.clr == 9


def test_a_receiver_with_a_similar_rate_is_a_potential_limiting_one() -> None:
    scene = Scene()
    scene.lose(7, 0.02)
    scene.lose(8, 0.015)
    scene.lose(9, 0.001)
    scene.start(10, 100e3)
    flags = {node.node_id: node.flags & (FLAG_CLR | FLAG_PLR) for node in scene.control.nodes}
    assert flags == {7: FLAG_CLR, 8: FLAG_PLR, 9: 0, 10: 0}
    assert all(node.flags & FLAG_RTT for node in scene.control.nodes)


def test_at_most_five_receivers_are_listed_and_the_limiting_ones_stay() -> None:
    scene = Scene()
    scene.lose(1, 0.02)
    scene.lose(2, 0.015)
    for node in range(3, 40):
        scene.probe()
        scene.start(node, 1e6 + node)
        scene.lose(1, 0.02)
        scene.lose(2, 0.015)
    nodes = [node.node_id for node in scene.control.nodes]
    assert len(nodes) == MOST_LISTED
    assert nodes[:2] == [1, 2]
    assert 39 in nodes


def test_a_clr_that_leaves_is_followed_by_the_next_and_the_rate_rises_slowly() -> None:
    scene = Scene()
    scene.settle(7, 0.05)
    scene.lose(8, 0.01)
    before = scene.control.rate
    scene.lose(7, 0.05, flags=FLAG_LEAVE)
    assert scene.control.state.clr == 8
    scene.probe()
    scene.lose(8, 0.01)
    assert before < scene.control.rate <= before + 1000 / RTT


def test_a_clr_that_falls_silent_is_followed_by_one_that_is_heard() -> None:
    scene = Scene()
    scene.settle(7, 0.05)
    before = scene.control.rate
    for _ in range(25):
        scene.probe()
        scene.lose(8, 0.01)
        rate = scene.control.rate
        assert rate >= before / 1.01, "others are heard: there is no reason to slow down"
    assert scene.control.state.clr == 8


def test_the_rate_is_halved_again_and_again_while_nobody_is_heard_and_doubled_when_somebody_is() -> None:
    scene = Scene()
    scene.settle(7, 0.001)
    before = scene.control.rate
    for _ in range(15):
        scene.probe()
    low = scene.control.rate
    assert before / 10 < low < before / 4
    scene.lose(7, 0.001)
    scene.probe()
    scene.lose(7, 0.001)
    assert scene.control.rate >= 3 * low
    for _ in range(3):
        scene.probe()
        scene.lose(7, 0.001)
    assert scene.control.rate == pytest.approx(before, rel=0.05)


def test_the_floor_is_a_segment_per_second_or_the_lower_bound() -> None:
    for settings, floor in (({}, 1000.0), ({"rate_min": 4e3}, 4e3)):
        scene = Scene(**settings)
        scene.lose(7, 0.01)
        for _ in range(4000):
            scene.probe()
        assert scene.control.rate == floor


def test_feedback_that_is_older_than_what_is_known_is_ignored() -> None:
    scene = Scene()
    scene.probes = 10
    scene.lose(7, 0.01)
    scene.probes = 9
    scene.lose(7, 0.2)
    assert scene.control.state.clr_loss == pytest.approx(0.01)


def test_a_rate_that_is_limited_by_what_arrives_is_adopted() -> None:
    scene = Scene()
    scene.settle(7, 0.001)
    scene.lose(7, 0.001, flags=FLAG_LIMIT, rate=20e3)
    assert scene.control.rate == pytest.approx(20e3, rel=1e-2)


def test_a_nack_without_the_high_half_of_the_loss_gives_its_rate_only() -> None:
    scene = Scene()
    scene.control.heard(7, CcFeedback(0, 0, rtt_code(RTT), 0, rate_code(33e3), 46220), RTT, 0.0, is_nack=True)
    assert scene.control.state.clr_rate == pytest.approx(33e3, rel=1e-2)


def test_the_lossy_receiver_of_a_recorded_session_is_the_clr() -> None:
    codec = NormCodec()
    control = CongestionControl(Recorder(), NormConfig(congestion="norm", segment=800, rate_max=75e3), 0.05)
    now = 0.0
    for payload in udp_payloads("cc_two_receivers"):
        message = codec.decode(payload)
        if isinstance(message, (Ack, Nack)) and message.cc is not None:
            now += 0.05
            control.probed(0.05, now)
            control.heard(message.source_id, message.cc, 0.001, now, is_nack=isinstance(message, Nack))
    state = control.state
    assert (state.clr, state.phase) == (3, "steady")
    # It lost 3 % of the packets.
    assert 0.005 < state.clr_loss < 0.04
    assert {node.node_id for node in control.nodes} == {2, 3}
