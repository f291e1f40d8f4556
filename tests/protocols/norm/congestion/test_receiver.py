"""A receiver's feedback: its content, its times, and its suppression."""

from math import inf
from typing import Any

import pytest

from protocols.norm.config import NormConfig
from protocols.norm.congestion.equation import tcp_rate
from protocols.norm.congestion.receiver import ReceiverCongestion
from protocols.norm.congestion.states import (
    FLAG_CLR,
    FLAG_LEAVE,
    FLAG_LIMIT,
    FLAG_PLR,
    FLAG_RTT,
    FLAG_START,
    join_loss,
)
from protocols.norm.messages import CcFeedback, CcNode, Origin, Probe
from protocols.norm.quantise import rate_code, rate_value, rtt_code, rtt_seconds
from protocols.norm.sender_profile import SenderProfile, unknown_sender
from protocols.rng import Rng

ORIGIN = Origin(1, 1, rtt_code(0.1), 4, 0)
SENDER: SenderProfile = unknown_sender().with_timing(ORIGIN)
GRTT = rtt_seconds(rtt_code(0.1))
NODE = 7


class Scene:
    """A receiver to which packets of 1000 bytes come at even intervals."""

    def __init__(self, gap: float = 0.01, **settings: Any) -> None:
        self.receiver = ReceiverCongestion(NODE, NormConfig(**{"congestion": "norm", **settings}), Rng(5))
        self.gap, self.now, self.sequence, self.probes = gap, 0.0, 0, 0

    def send(self, count: int, *lost: int, marked: tuple[int, ...] = ()) -> None:
        """Send packets; `lost` are counted from the first of these."""
        for index in range(count):
            self.now += self.gap
            if index in marked:
                self.receiver.note_mark()
            if index not in lost:
                self.receiver.arrived(self.sequence & 0xFFFF, 1000, SENDER, self.now)
            self.sequence += 1

    def probe(self, rate: float = 1e5, rtt: float | None = None, flags: int = 0) -> None:
        """Send a probe that lists this receiver with the round-trip time `rtt`; None: it does not list it."""
        self.probes += 1
        nodes = () if rtt is None else (CcNode(NODE, flags, rtt_code(rtt), rate_code(1e5)),)
        self.receiver.probed(Probe(ORIGIN, 0, self.probes, 0, 1, rate_code(rate), nodes), SENDER, self.now)

    def reported(self) -> CcFeedback:
        """Return what the receiver reports now."""
        return self.receiver.feedback(SENDER, self.now)


def other(rate: float, flags: int = 0) -> CcFeedback:
    """Return the feedback of another receiver."""
    return CcFeedback(1, flags, rtt_code(0.1), 0, rate_code(rate))


def test_before_any_loss_it_reports_twice_what_arrives() -> None:
    scene = Scene()
    scene.send(100)
    scene.probe()
    told = scene.reported()
    assert told.flags == FLAG_START
    assert rate_value(told.rate) == pytest.approx(2e5, rel=0.01)
    assert (told.sequence, told.loss, told.rtt) == (1, 0, rtt_code(GRTT))


def test_with_losses_it_reports_the_rate_of_the_equation() -> None:
    scene = Scene()
    scene.probe(rtt=0.1)
    scene.send(2001, *range(200, 2001, 100))
    told = scene.reported()
    assert told.flags == FLAG_RTT
    loss = join_loss(told.loss, told.loss_low)
    assert loss == pytest.approx(0.01, rel=0.01)
    assert rate_value(told.rate) == pytest.approx(tcp_rate(1000, GRTT, loss), rel=0.01)


def test_the_rate_of_the_equation_is_limited_by_what_arrives() -> None:
    scene = Scene()
    scene.probe(rtt=0.001)
    scene.send(2001, *range(200, 2001, 100))
    told = scene.reported()
    assert told.flags == FLAG_RTT | FLAG_LIMIT
    assert rate_value(told.rate) == pytest.approx(2e5, rel=0.03)


def test_the_first_interval_is_that_of_the_rate_at_which_packets_came() -> None:
    scene = Scene(gap=0.001)
    scene.probe(rtt=0.1)
    scene.send(500, 450)
    state = scene.receiver.state(SENDER)
    assert state.loss_events == 1
    # 1 MB/s were received, and that is what the equation gives.
    assert tcp_rate(1000, state.rtt, state.loss) == pytest.approx(1e6, rel=0.02)


def test_a_receiver_that_is_not_listed_reports_after_a_back_off() -> None:
    scene = Scene()
    scene.send(50)
    scene.probe()
    assert scene.now < scene.receiver.due < scene.now + 8 * GRTT
    scene.probe()
    due = scene.receiver.due
    scene.probe()
    assert scene.receiver.due == due, "a probe does not begin a back-off again"
    scene.reported()
    assert scene.receiver.due == inf
    scene.probe()
    assert scene.receiver.due == inf, "the hold-off is not over"


@pytest.mark.parametrize("role", [FLAG_CLR, FLAG_PLR])
def test_a_limiting_receiver_answers_each_probe_at_once(role: int) -> None:
    scene = Scene()
    scene.send(50)
    for _ in range(3):
        scene.probe(rtt=0.1, flags=role)
        assert scene.receiver.due == scene.now
        assert not scene.receiver.overhear(other(1.0), SENDER, scene.now)
        assert scene.reported().flags & role
    scene.probe()
    assert not scene.reported().flags & role


def test_the_clr_reports_each_loss_event_at_once_and_others_do_not() -> None:
    for flags, due in ((FLAG_CLR, True), (FLAG_PLR, False), (0, False)):
        scene = Scene()
        scene.probe(rtt=0.1, flags=flags)
        scene.send(100)
        before = scene.reported().sequence
        scene.send(10, 5)
        assert (scene.receiver.due <= scene.now) == due
        assert scene.reported().sequence == before + due


def test_feedback_is_suppressed_by_that_of_others_with_a_rate_as_low() -> None:
    for rate, silent in ((2e5, True), (1e5, True), (1e6, False)):
        scene = Scene()
        scene.send(100)
        scene.probe()
        assert scene.receiver.overhear(other(rate, FLAG_START), SENDER, scene.now) is silent
        assert (scene.receiver.due == inf) is silent


def test_feedback_is_not_suppressed_by_the_clr_nor_while_its_round_trip_time_is_to_be_measured() -> None:
    scene = Scene()
    scene.send(100)
    scene.probe()
    assert not scene.receiver.overhear(other(1e3, FLAG_CLR | FLAG_START), SENDER, scene.now)
    assert not scene.receiver.overhear(other(1e3, FLAG_RTT | FLAG_START), SENDER, scene.now)
    scene.probe(rtt=0.1)
    assert scene.receiver.overhear(other(1e3, FLAG_RTT | FLAG_START), SENDER, scene.now)


def test_a_first_loss_is_reported_although_others_receive_less() -> None:
    scene = Scene()
    scene.send(100, 90)
    scene.probe()
    assert not scene.receiver.overhear(other(1e3, FLAG_START), SENDER, scene.now)


def test_the_less_it_receives_of_what_is_sent_the_earlier_it_reports() -> None:
    waits = []
    for rate in (1e5, 4e5):
        scene = Scene()
        scene.send(100)
        scene.probe(rate=rate)
        waits.append(scene.receiver.due - scene.now)
    assert waits[0] - waits[1] == pytest.approx(0.25 * 8 * GRTT * 0.75, rel=0.05)


def test_marks_count_with_the_setting_for_them_only() -> None:
    for kind, events in (("ecn", 2), ("norm", 0)):
        scene = Scene(congestion=kind)
        scene.send(100, marked=(20, 22, 60))
        assert scene.receiver.state(SENDER).loss_events == events


def test_a_receiver_that_leaves_reports_it() -> None:
    scene = Scene()
    scene.probe(rtt=0.1)
    assert scene.receiver.is_listed
    scene.receiver.leave(scene.now)
    assert scene.receiver.due == scene.now
    assert scene.reported().flags & FLAG_LEAVE
