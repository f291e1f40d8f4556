"""The sender's part in congestion control: it sends at the rate of the receiver that can receive least (RFC 5740 5.5.2).

That receiver is the current limiting receiver (CLR). It answers each probe; its rate is adopted at once when it is lower, and
approached by one segment per round trip when it is higher. The sender lists at most five receivers in its probes, so that
these learn their round-trip time: the CLR, a potential limiting one (PLR), and others that have given feedback.
"""

from math import inf, sqrt
from typing import Final

from protocols.machine import Ports
from protocols.norm.config import NormConfig
from protocols.norm.congestion.equation import EQUATIONS
from protocols.norm.congestion.states import (
    FLAG_CLR,
    FLAG_LEAVE,
    FLAG_LIMIT,
    FLAG_PLR,
    FLAG_RTT,
    FLAG_START,
    ControlState,
    join_loss,
)
from protocols.norm.messages import CcFeedback, CcNode, Data, DataRun, NormMessage
from protocols.norm.quantise import rate_code, rate_value, rtt_code, rtt_seconds

__all__ = ["CongestionControl", "ListedReceiver"]

MOST_LISTED: Final = 5
"""Receivers in the list of a probe."""
MOST_PLRS: Final = 1
"""Potential limiting receivers, each of which answers every probe."""
PLR_RANGE: Final = 2.0
"""A potential limiting receiver has seen losses, and has at most so many times the rate of the CLR."""
SIMILAR: Final = 1.1
"""Of rates that differ less, the longer round-trip time decides who is the CLR."""
RTT_KEPT: Final = 0.9
"""Weight of the known round-trip time when another is measured."""
ROOT_KEPT: Final = 0.9
"""Weight of the known mean of the square root of the round-trip time (RFC 5348 4.5)."""
DAMPING: Final = 1.1
"""The damper changes the rate by this factor at the most (NRL NORM: 2, which on short paths is an oscillation itself)."""
SEGMENT_KEPT: Final = 0.99
"""Weight of the known average packet size when another packet is sent."""
FLOOR_INTERVAL: Final = 1.0
"""Without a lower bound, a segment is sent at least so often (seconds), or once per GRTT if that is longer."""
SHORTEST_INTERVAL: Final = 0.01
"""Seconds between probes at the least."""
MOST_SILENT_PROBES: Final = 20
MOST_SILENT_TRIPS: Final = 20
LEAST_SILENCE: Final = 1.0
"""A receiver has gone when so many probes, round-trip times and seconds passed without feedback of it."""
HALVING_TRIPS: Final = 4.0
"""Round-trip times without any feedback after which the rate is halved (RFC 5348 4.4)."""


class ListedReceiver:
    """State of one receiver that sent feedback, at the sender."""

    __slots__ = ("flags", "heard", "heard_at_probe", "loss", "node", "rate", "rtt", "sequence")

    def __init__(self, node: int, rtt: float, sequence: int) -> None:
        self.node = node
        self.rtt = rtt
        """Smoothed round-trip time in seconds."""
        self.sequence = sequence
        """The cc_sequence of the last feedback."""
        self.rate = inf
        """Bytes per second it can receive."""
        self.loss = 0.0
        """Its loss event rate."""
        self.flags = 0
        """FLAG_START and FLAG_LIMIT of the last feedback."""
        self.heard = 0.0
        """When the last feedback came, seconds."""
        self.heard_at_probe = 0
        """The number of probes sent before that."""

    @property
    def is_starting(self) -> bool:
        """Whether it has seen no loss yet."""
        return bool(self.flags & FLAG_START)

    def limits_more_than(self, other: "ListedReceiver") -> bool:
        """Return whether this receiver should be the CLR instead of another: a lower rate, or a similar one and more delay."""
        return self.rate < other.rate or (self.rate < SIMILAR * other.rate and self.rtt > other.rtt)


class CongestionControl:
    """The rate of one sender, from the feedback of its receivers. `rate` is bytes of UDP payload per second."""

    __slots__ = (
        "_changes",
        "_clr",
        "_equation",
        "_floor",
        "_grtt",
        "_halved",
        "_heard",
        "_highest",
        "_is_starting",
        "_listed",
        "_lowest",
        "_mean_root",
        "_ports",
        "_probes",
        "_proven",
        "_raised",
        "_segment",
        "_target",
        "feedback",
        "rate",
    )

    def __init__(self, ports: Ports, config: NormConfig, grtt: float) -> None:
        """Begin with a segment per `grtt` seconds, within the bounds of the configuration."""
        self._lowest, self._highest = config.rate_min, config.rate_max
        self._equation = EQUATIONS[config.fair_to]
        self._segment = float(config.segment)
        self._grtt = grtt
        self._ports = ports
        self._listed: dict[int, ListedReceiver] = {}
        self._clr: ListedReceiver | None = None
        self._is_starting = True
        self._target = 0.0
        """The rate without the damper."""
        self._mean_root = 0.0
        self._heard = self._raised = -inf
        """When the last feedback came, and when the rate was adapted to the CLR, seconds."""
        self._halved = -inf
        self._proven = 0.0
        """The rate before it was halved for silence: up to there it may be doubled again."""
        self._probes = self._changes = 0
        self.feedback = 0
        """Messages with feedback so far."""
        self.rate = 0.0
        self._set(self._segment / grtt)

    # -- inputs ----------------------------------------------------------------------------------------------------

    def heard(self, node: int, told: CcFeedback, sample: float | None, now: float, *, is_nack: bool = False) -> None:
        """Take feedback of a receiver; `sample` is the round-trip time that it shows, in seconds (None: it shows none)."""
        self.feedback += 1
        if told.flags & FLAG_LEAVE:
            self._remove(node, now)
            return
        receiver = self._listed.get(node)
        if receiver is None:
            receiver = ListedReceiver(node, rtt_seconds(told.rtt) if sample is None else sample, told.sequence)
        elif (told.sequence - receiver.sequence) & 0x8000:
            # It is older than what is known.
            return
        elif sample is not None:
            receiver.rtt = RTT_KEPT * receiver.rtt + (1.0 - RTT_KEPT) * sample
        receiver.sequence, receiver.heard, receiver.heard_at_probe = told.sequence, now, self._probes
        self._heard = now
        self._assess(receiver, told, is_nack)
        if self._clr is not receiver and (self._clr is None or receiver.limits_more_than(self._clr)):
            self._elect(receiver)
        if self._clr is receiver:
            self._adapt(receiver, sample, now)
        if node not in self._listed:
            self._make_room()
            self._listed[node] = receiver

    def sent(self, message: NormMessage | DataRun, octets: int) -> float:
        """Count a message of so many bytes, or a run of them; return the seconds until the next one is due.

        They are uniformly distributed from 0 to twice the mean, so that packets meet the queues of routers as they are on
        average. At even intervals they would lose less than the bursts of a TCP, and take up to five times its rate.
        """
        if isinstance(message, (Data, DataRun)):
            size = octets // message.packets if isinstance(message, DataRun) else octets
            self._segment = SEGMENT_KEPT * self._segment + (1.0 - SEGMENT_KEPT) * size
        return octets / self.rate * 2.0 * self._ports.rng.uniform()

    def probed(self, grtt: float, now: float) -> None:
        """Look for receivers that have fallen silent; called before each probe, with the measured GRTT (seconds).

        The advertised one is at least the packet interval, so a floor that depended on it would sink without end.
        """
        self._grtt = grtt
        self._probes += 1
        for receiver in list(self._listed.values()):
            if self._is_gone(receiver, now):
                self._remove(receiver.node, now)
        self._halve(now)

    # -- for probes ------------------------------------------------------------------------------------------------

    @property
    def nodes(self) -> tuple[CcNode, ...]:
        """The list of a probe, the CLR first."""
        order = sorted(self._listed.values(), key=lambda receiver: (receiver is not self._clr, receiver.rate, receiver.node))
        plrs = self._plrs()
        return tuple(
            CcNode(each.node, self._flags_of(each, plrs), rtt_code(each.rtt), rate_code(min(each.rate, 1e15))) for each in order
        )

    def interval(self) -> float:
        """Return the seconds to the next probe while content is sent: a round-trip time of the CLR."""
        clr = self._clr
        return max(self._grtt if clr is None else min(self._grtt, clr.rtt), SHORTEST_INTERVAL)

    # -- for people ------------------------------------------------------------------------------------------------

    @property
    def state(self) -> ControlState:
        """The present rate, RTT and loss fraction, for statistics."""
        clr, plrs = self._clr, tuple(receiver.node for receiver in self._plrs())
        if clr is None:
            return ControlState(self.rate, "no receiver", None, 0.0, 0.0, 0.0, plrs, self._changes)
        phase = "slow start" if self._is_starting else "steady"
        return ControlState(self.rate, phase, clr.node, clr.rtt, clr.loss, clr.rate, plrs, self._changes)

    # -- receivers -------------------------------------------------------------------------------------------------

    def _assess(self, receiver: ListedReceiver, told: CcFeedback, is_nack: bool) -> None:
        """Set the rate of a receiver: what it reports, or by the equation with the round-trip time measured here.

        NRL NORM has no high half of the loss in NACKs, so with none the rate it reports is taken.
        """
        rate, loss = rate_value(told.rate), join_loss(told.loss, told.loss_low)
        receiver.flags = told.flags & (FLAG_START | FLAG_LIMIT)
        if receiver.flags & FLAG_START:
            receiver.loss, receiver.rate = 0.0, rate
            return
        if is_nack and not told.loss:
            receiver.rate = rate
            return
        receiver.loss = loss
        fair = self._equation(self._segment, receiver.rtt, loss)
        receiver.rate = min(fair, rate) if receiver.flags & FLAG_LIMIT else fair

    def _elect(self, receiver: ListedReceiver) -> None:
        """Make a receiver the CLR."""
        self._clr = receiver
        self._changes += 1
        self._mean_root = 0.0
        if self._ports.trace is not None:
            self._ports.trace("cc_clr", {"node": receiver.node, "rate": receiver.rate, "rtt": receiver.rtt})

    def _remove(self, node: int, now: float) -> None:
        """Forget a receiver; if it was the CLR, the listed one with the lowest rate follows."""
        self._listed.pop(node, None)
        clr = self._clr
        if clr is None or clr.node != node:
            return
        self._clr = None
        if self._listed:
            self._elect(min(self._listed.values(), key=lambda receiver: (receiver.rate, receiver.node)))
            # From now on the rate may rise.
            self._raised = now

    def _make_room(self) -> None:
        """Forget the receiver heard least recently if the list is full, but neither the CLR nor a PLR."""
        if len(self._listed) >= MOST_LISTED:
            plrs = self._plrs()
            others = [each for each in self._listed.values() if each is not self._clr and each not in plrs]
            del self._listed[min(others, key=lambda each: (each.heard, each.node)).node]

    def _plrs(self) -> list[ListedReceiver]:
        """Return the potential limiting receivers: those next to the CLR."""
        clr = self._clr
        if clr is None:
            return []
        others = [each for each in self._listed.values() if each is not clr and not each.is_starting]
        near = [each for each in others if each.rate <= PLR_RANGE * clr.rate]
        return sorted(near, key=lambda receiver: (receiver.rate, receiver.node))[:MOST_PLRS]

    def _flags_of(self, receiver: ListedReceiver, plrs: list[ListedReceiver]) -> int:
        role = FLAG_CLR if receiver is self._clr else FLAG_PLR if receiver in plrs else 0
        return role | FLAG_RTT | (receiver.flags & FLAG_START)

    def _is_gone(self, receiver: ListedReceiver, now: float) -> bool:
        """Return whether a receiver has not been heard for too long: in time, in round-trip times and in probes."""
        longest = max(LEAST_SILENCE, MOST_SILENT_TRIPS * max(self._grtt, receiver.rtt))
        return now - receiver.heard > longest and self._probes - receiver.heard_at_probe > MOST_SILENT_PROBES

    # -- rate ------------------------------------------------------------------------------------------------------

    def _adapt(self, clr: ListedReceiver, sample: float | None, now: float) -> None:
        """Adapt the rate to that of the CLR."""
        if clr.is_starting and self._is_starting:
            self._set(min(clr.rate, 2.0 * self._target))
        else:
            self._is_starting = False
            elapsed = min(max(now - self._raised, 0.0), clr.rtt) if self._raised > -inf else 0.0
            risen = self._target + self._segment * elapsed / (clr.rtt * clr.rtt)
            self._set(min(clr.rate, max(risen, min(2.0 * self._target, self._proven))))
            self._proven = 0.0 if self._target >= self._proven else self._proven
        self._raised = now
        if sample is not None:
            self._damp(sample)
        if self._ports.trace is not None:
            self._ports.trace("cc_rate", {"rate": self.rate, "clr": clr.node, "rtt": clr.rtt, "loss": clr.loss})

    def _damp(self, sample: float) -> None:
        """Lower the rate a little while the queue grows, and raise it while it drains (RFC 5348 4.5)."""
        root = sqrt(max(sample, 1e-6))
        self._mean_root = ROOT_KEPT * self._mean_root + (1.0 - ROOT_KEPT) * root if self._mean_root else root
        if not self._is_starting:
            factor = min(max(self._mean_root / root, 1.0 / DAMPING), DAMPING)
            self.rate = self._bounded(self._target * factor)

    def _halve(self, now: float) -> None:
        """Halve the rate for each time of silence without feedback of any receiver."""
        if self._clr is None and self._heard == -inf:
            return
        rtt = self._grtt if self._clr is None else max(self._grtt, self._clr.rtt)
        silence = max(HALVING_TRIPS * rtt, 2.0 * self.interval(), 2.0 * self._segment / self._target)
        if now - max(self._heard, self._halved) > silence:
            self._halved = now
            self._proven = max(self._proven, self._target)
            self._set(self._target / 2.0)
            if self._ports.trace is not None:
                self._ports.trace("cc_halved", {"rate": self.rate})

    def _set(self, rate: float) -> None:
        self._target = self.rate = self._bounded(rate)

    def _bounded(self, rate: float) -> float:
        """Return a rate within the bounds; without a lower one, a segment per second or per GRTT."""
        lowest = self._lowest or self._segment / max(FLOOR_INTERVAL, self._grtt)
        return max(min(rate, self._highest), lowest)
