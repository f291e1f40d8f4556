"""A receiver's part in congestion control: loss, round-trip time, receive rate, and when to report them (RFC 5740 5.5.2).

The current limiting receiver (CLR) answers each probe, and reports each loss event at once. A potential limiting one
(PLR) answers each probe, too. All others wait for a back-off, shorter for those that can receive less, and send nothing
if another one reports a rate that is lower than theirs or about the same.
"""

from math import inf
from typing import Final

from protocols.norm.backoff import NEVER, backoff
from protocols.norm.config import NormConfig
from protocols.norm.congestion.equation import EQUATIONS, loss_event_rate
from protocols.norm.congestion.loss_history import LossHistory
from protocols.norm.congestion.receive_rate import ReceiveRate
from protocols.norm.congestion.states import (
    FLAG_CLR,
    FLAG_LEAVE,
    FLAG_LIMIT,
    FLAG_PLR,
    FLAG_RTT,
    FLAG_START,
    FeedbackState,
    split_loss,
)
from protocols.norm.messages import CcFeedback, Probe
from protocols.norm.quantise import rate_code, rate_value, rtt_code, rtt_seconds
from protocols.norm.sender_profile import SenderProfile
from protocols.norm.session import Session
from protocols.rng import Rng

__all__ = ["ReceiverCongestion", "congestion_of"]

LEAST_FACTOR: Final = 8
"""Feedback is spread over at least so many GRTT, whatever the back-off of NACKs.

NRL NORM has 4: then a thousand receivers that overhear each other after a whole GRTT send 14 messages per round, and so 4.
"""
BIAS: Final = 0.25
"""The share of the back-off that depends on the rate and not on chance (RFC 4654 2.5.1)."""
SIMILAR: Final = 0.9
"""Feedback is suppressed by a reported rate that is less than the own divided by this (RFC 4654 2.5.2)."""
SIMILAR_START: Final = 0.7
"""The same without any loss: what arrives is measured over a few packets, and varies more."""
SMOOTHING: Final = 0.05
"""Weight of one packet in the average packet size."""
LEAST_INTERVAL: Final = 2.0
"""Packets before the first loss event, at the least."""


def congestion_of(session: Session) -> "ReceiverCongestion | None":
    """Make the state of congestion control for a new sender; None if the receiver reports nothing of it."""
    if session.config.congestion == "none" or session.is_silent:
        return None
    return ReceiverCongestion(session.node, session.config, session.ports.rng)


class ReceiverCongestion:
    """The congestion on the way from one sender to this receiver. `due` is when feedback is to be sent, inf for never."""

    __slots__ = (
        "_equation",
        "_flags",
        "_history",
        "_hold",
        "_is_confirmed",
        "_is_leaving",
        "_is_marked",
        "_node",
        "_receive_rate",
        "_rng",
        "_rtt",
        "_segment",
        "_send_rate",
        "_sequence",
        "_uses_marks",
        "due",
    )

    def __init__(self, node: int, config: NormConfig, rng: Rng) -> None:
        """Begin with the first message of a sender."""
        kind = config.congestion
        self._equation = EQUATIONS[config.fair_to]
        self._node = node
        self._rng = rng
        self._history = LossHistory(kind == "loss-tolerant")
        self._uses_marks = kind == "ecn"
        self._is_marked = False
        self._receive_rate = ReceiveRate()
        self._segment = 0.0
        """Average bytes of a packet."""
        self._flags = 0
        """FLAG_CLR and FLAG_PLR, of the last probe."""
        self._rtt = 0.0
        self._is_confirmed = self._is_leaving = False
        self._send_rate = 0.0
        self._sequence = 0
        """The cc_sequence of the next feedback."""
        self._hold = NEVER
        """No feedback that waits for a back-off before this time."""
        self.due = inf

    # -- inputs ----------------------------------------------------------------------------------------------------

    def note_mark(self) -> None:
        """Note that the message that comes next has a congestion mark (ECN)."""
        self._is_marked = self._uses_marks

    def arrived(self, sequence: int, octets: int, sender: SenderProfile, now: float, *, is_content: bool = True) -> None:
        """Record a message of so many bytes, by its sequence number."""
        rtt = self._round_trip(sender)
        self._receive_rate.arrived(octets, now, rtt, is_content)
        if is_content or not self._segment:
            self._segment += (octets - self._segment) * SMOOTHING if self._segment else octets
        history, is_first = self._history, not self._history.events
        before = float(history.present)
        is_marked, self._is_marked = self._is_marked, False
        if not history.arrived(sequence, now, rtt, is_marked):
            return
        if is_first:
            history.initialise(self._first_interval(before, rtt))
        if self._flags & FLAG_CLR and self.due > now:
            self._sequence = (self._sequence + 1) & 0xFFFF
            self.due = now

    def probed(self, probe: Probe, sender: SenderProfile, now: float) -> None:
        """Take the values of a probe, and set the time of the answer. One without a rate asks for none."""
        if probe.rate is None:
            return
        self._flags, self._sequence = 0, probe.cc_sequence
        self._send_rate = rate_value(probe.rate)
        for node in probe.nodes:
            if node.node_id == self._node:
                self._flags = node.flags & (FLAG_CLR | FLAG_PLR)
                self._rtt, self._is_confirmed = rtt_seconds(node.rtt), True
        if self._flags:
            self.due = now
        elif self.due == inf and now >= self._hold:
            spread = sender.grtt * max(sender.backoff, LEAST_FACTOR)
            wait = backoff(self._rng.uniform(), spread, sender.group_size)
            self.due = now + BIAS * self._bias(sender) * spread + (1.0 - BIAS) * wait

    def overhear(self, feedback: CcFeedback, sender: SenderProfile, now: float) -> bool:
        """Cancel the own feedback if that of another receiver makes it needless; return whether it was.

        It does with a rate that is not much higher than the own. A round-trip time that is still to be measured, and a first
        loss event, are not suppressed by those of others.
        """
        if self.due == inf or self._flags or feedback.flags & FLAG_CLR:
            return False
        if not self._is_confirmed and feedback.flags & FLAG_RTT:
            return False
        rate, flags = self._rate(sender)
        is_first_loss = not flags & FLAG_START and bool(feedback.flags & FLAG_START)
        similar = SIMILAR_START if flags & FLAG_START else SIMILAR
        if is_first_loss or rate <= similar * rate_value(feedback.rate):
            return False
        self.due = inf
        if flags & FLAG_START:
            # The next round is soon enough: what it could report has just been reported.
            self._hold = now + sender.grtt * sender.backoff
        return True

    # -- feedback --------------------------------------------------------------------------------------------------

    @property
    def is_listed(self) -> bool:
        """Whether the sender has sent this receiver its round-trip time, and so may have it in its list."""
        return self._is_confirmed

    def leave(self, now: float) -> None:
        """Report at once that the receiver leaves."""
        self._is_leaving, self.due = True, now

    def feedback(self, sender: SenderProfile, now: float) -> CcFeedback:
        """Return the feedback for an ACK or NACK; a pending answer is no longer needed then."""
        self.due = inf
        self._hold = now + sender.grtt * sender.backoff
        rate, flags = self._rate(sender)
        flags |= self._flags | (FLAG_RTT if self._is_confirmed else 0) | (FLAG_LEAVE if self._is_leaving else 0)
        high, low = split_loss(self._history.loss)
        return CcFeedback(self._sequence, flags, rtt_code(self._round_trip(sender)), high, rate_code(rate), low)

    def state(self, sender: SenderProfile) -> FeedbackState:
        """Return the current state for statistics."""
        role = "CLR" if self._flags & FLAG_CLR else "PLR" if self._flags & FLAG_PLR else ""
        rate, history = self._rate(sender)[0], self._history
        rtt = self._round_trip(sender)
        return FeedbackState(rtt, self._is_confirmed, history.loss, rate, self._receive_rate.value, role, history.events)

    def _round_trip(self, sender: SenderProfile) -> float:
        """Return the round-trip time in seconds: the advertised GRTT until the sender has sent it."""
        return self._rtt if self._is_confirmed else sender.grtt

    def _rate(self, sender: SenderProfile) -> tuple[float, int]:
        """Return the rate this receiver can receive in bytes per second, with FLAG_START or FLAG_LIMIT or neither."""
        twice, loss = 2.0 * self._receive_rate.value, self._history.loss
        if not loss:
            # Before the rate is measured: what is sent arrives.
            return twice or 2.0 * self._send_rate, FLAG_START
        fair = self._equation(self._segment, self._round_trip(sender), loss)
        return (twice, FLAG_LIMIT) if 0.0 < twice < fair else (fair, 0)

    def _bias(self, sender: SenderProfile) -> float:
        """Return from 0 to 1 how late an answer may be: the more this receiver can receive of what is sent, the later."""
        if not self._send_rate:
            return 1.0
        rate, flags = self._rate(sender)
        if flags & FLAG_START:
            return min(self._receive_rate.value / self._send_rate, 1.0)
        return (min(max(rate / self._send_rate, 0.5), SIMILAR) - 0.5) / (SIMILAR - 0.5)

    def _first_interval(self, before: float, rtt: float) -> float:
        """Return the loss interval with which the equation gives the rate at which packets arrive, or the longer one seen.

        `before` is the number of packets before the first loss event (RFC 5348 6.3.1).
        """
        seen = max(before, LEAST_INTERVAL)
        highest = self._receive_rate.highest
        return max(1.0 / loss_event_rate(self._equation, self._segment, rtt, highest), seen) if highest else seen
