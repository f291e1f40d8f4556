"""One end of a simulated TCP connection: its state machine (RFC 9293), windows and timers.

Differences to a kernel's: numbers do not wrap, a segment is repeated as it was sent, there is no urgent data, no simultaneous
open and no path MTU discovery, and both directions end together, as `ConnectionPorts.hang_up` says.
"""

from collections.abc import Callable, Sequence
from math import inf
from typing import Any, Final

from protocols.connection import Connection, Reason
from protocols.errors import ContractError, WireError
from protocols.machine import Address, Message
from protocols.tcp.congestion import CONTROLS, Control
from protocols.tcp.options import KEEP_IDLE, KEEP_INTERVAL, KEEP_PROBES, SILENCE, SYN_RETRIES
from protocols.tcp.rtt import LEAST, MOST, RttEstimator
from sim.flight import Hop, Route
from sim.tcp.idle_timers import Expiring
from sim.tcp.reassembly import NOTHING_EARLY
from sim.tcp.scoreboard import RECOVERING, RESTARTED, UNDISTURBED, Scoreboard, Sent
from sim.tcp.segment import FIN, RST, SYN, AckSegment, ControlSegment, Key, Segment, SynSegment
from sim.tcp.stack import Stack
from sim.tcp.states import ACCEPTING, CONNECTING, GONE, LEAVING, OPEN

__all__ = ["FIRST_WINDOW", "TcpEnd"]

FIRST_WINDOW: Final = 10.0
"""Segments that may be sent at first (RFC 6928)."""
DELAYED_ACK: Final = 0.04
"""Seconds for which an ACK may wait for data to go with, or for a second full segment."""


class TcpEnd(Connection, Expiring):
    """One end of a connection, which is also its address for machines.

    `peer` is the address of the other end, `port` the port of the host whose machine has this end, `key` what segments to this
    end carry. Small while nothing is under way, because there may be many.
    """

    __slots__ = (
        *("_ack_at", "_ack_now", "_acked", "_acks", "_armed", "_control", "_data_at", "_duplicate", "_echo", "_edge"),
        *("_expected", "_fin_acked", "_finished", "_heard_at", "_held", "_interactive", "_limit", "_nxt"),
        *("_offered", "_options", "_ordinal", "_passive", "_probes", "_reader", "_reason", "_reassembly", "_retries"),
        *("_rtt", "_score", "_sent_at", "_stack", "_timer_at", "_told", "_una", "_unread", "_writer", "hops"),
        *("host", "identity", "idle_at", "is_full", "key", "name", "order", "postponed", "route", "state", "to"),
    )

    identity: int
    """The upper 32 bits of the identities of its segments."""
    name: str
    to: Key
    """The key of the other end."""
    route: Route
    hops: Sequence[Hop]
    """The first links of its route."""

    def __init__(self, stack: Stack, host: Any, port: int, key: Key, peer: object, now: float) -> None:
        super().__init__(peer, port)
        self._stack = stack
        self._options = stack.options
        self.host = host
        self.key = key
        stack.place(self)
        self.state = CONNECTING
        self._reason: Reason | None = None
        self._told = False
        """Whether `closed` of the machine was called, or is not to be called any more."""
        self._writer, self._reader = stack.streams(host, port)
        self._begin_sending(now)
        self._begin_receiving()
        self._armed = self._timer_at = self._ack_at = inf
        self._set_idle(now + KEEP_IDLE)
        self._heard_at, self._probes = now, 0

    def _begin_sending(self, now: float) -> None:
        # The first unacknowledged byte and the next new one (SND.UNA and SND.NXT).
        self._una = self._nxt = 0
        self._score: Scoreboard | None = None
        """The segments between the two, while there are any."""
        self._control = self._stack.first_control
        self._rtt = RttEstimator(LEAST)
        self._edge = 1
        """Number of the first byte that the peer has no room for."""
        # The numbers of the latest segment and ACK; the time-outs since the latest progress.
        self._ordinal = self._acks = self._retries = 0
        self.is_full = self._fin_acked = False
        self._sent_at = now

    def _begin_receiving(self) -> None:
        self._reassembly = NOTHING_EARLY
        # The number of the first byte that has not arrived, what was acknowledged last, the time stamp to be echoed.
        self._expected = self._acked = self._echo = 0
        self._limit = self._offered = 1 + self._options.buffer
        """Number of the first byte that there is no room for; and the one that was announced to the peer last."""
        self._unread = 0
        """Bytes of messages that the machine has not read."""
        self.postponed = False
        """Whether the message that was passed to the machine last waits before the machine."""
        self._held: list[int] | None = None
        """Bytes of each of these messages."""
        self._duplicate: tuple[int, int] | None = None
        """Range of a segment that arrived again, to be reported (RFC 2883)."""
        self._data_at = -inf
        """When data arrived last, in seconds."""
        self._ack_now = self._finished = self._interactive = self._passive = False

    @property
    def window(self) -> float:
        """Congestion window, in segments."""
        return self._control.window

    # What the machine does

    def connect(self, now: float) -> None:
        """Send the SYN."""
        self._send_new(0, SYN, now)
        self._arm()

    def accept(self, segment: Segment, now: float) -> None:
        """Answer a SYN."""
        self.state = ACCEPTING
        # Not yet established: the machine has no such connection so far.
        self._told = True
        self._expected = segment.end
        self._edge = 1 + segment.edge
        self._echo = segment.stamp
        self._send_new(0, SYN, now)
        self._arm()

    def write(self, message: Message, size: int, now: float) -> bool:
        """Send a message of `size` bytes; returns whether the buffer is full. ContractError when the connection is not open."""
        if self.state != OPEN:
            raise ContractError(f"{self.name} sends on a connection that is not open: {self!r}")
        writer = self._writer
        if self._una == self._nxt and now - self._sent_at > self._rtt.timeout:
            # Nothing changes in a control of all ends.
            self._control.restart(FIRST_WINDOW)
        writer.write(message, size)
        if self._stack.told is not self:
            unsent = writer.behind - self._nxt
            # Else it waits for the ACK of another small segment, which is under way.
            if unsent >= self._options.mss or self._may_be_small(unsent, unsent):
                self._output(now)
                self._arm()
        self.is_full = writer.behind - self._una >= self._options.buffer
        return self.is_full

    def hang_up(self, now: float) -> None:
        """Close when all that was written has arrived; nothing that arrives is given to the machine any more."""
        if self.state == OPEN:
            self.state = LEAVING
            self._held, self._unread = None, 0
            self._limit = max(self._limit, self._expected + self._options.buffer)
            if self._stack.told is not self:
                self._output(now)
                self._arm()
        elif self.state < OPEN:
            self._drop()
            self._reason = "ended"
            # Later, because a port does not re-enter the machine.
            self._stack.tell_later(self, now)

    def abort(self, now: float) -> None:
        """Reset the connection, because the process of the machine is gone."""
        if self.state != GONE:
            self._stack.reset(self.host, self.to, self._nxt, self._expected, now)
        self.vanish()

    def vanish(self) -> None:
        """Forget the connection without a segment to the peer."""
        self._told = True
        self._drop()

    # What stands between this end and the machine

    def hold(self, octets: int) -> None:
        """Count the bytes of the next message as unread, until `read` or `give`."""
        if self._held is None:
            self._held = []
        self._held.append(octets)
        self._unread += octets
        self.postponed = False

    def postpone(self) -> None:
        """Note that the message which the machine is being given waits before the machine; `give` follows."""
        self.postponed = True

    def read(self) -> None:
        """Note that the machine has read the first message that is counted as unread."""
        if self._held:
            self._unread -= self._held.pop(0)
            self._limit = max(self._limit, self._expected + self._options.buffer - self._unread)

    def give(self, receive: Callable[[Message, Address, Address, float], None], message: Message, now: float) -> None:
        """Pass a message that waited to `receive`, where it may wait again; nothing after `hang_up` and `closed`."""
        if not self._held:
            return
        self.postponed = False
        if not self._told:
            receive(message, self, self, now)
        if self.postponed:
            return
        self.read()
        if self._reason is not None:
            if not self._held:
                self.tell_closed(now)
        elif self.state != GONE:
            if self._limit - self._offered >= min(self._options.buffer // 2, 2 * self._options.mss):
                # The peer learns that there is room again.
                self._ack_now = True
            self._after(now)

    # Arrivals

    def arrive(self, segment: Segment, now: float) -> None:
        """Take a segment of the peer."""
        if self.state == GONE:
            if segment.end > segment.number:
                self._send_ack(now)
            return
        self._heard_at = now
        self._probes = 0
        if segment.flags & (SYN | RST) and not self._on_syn_or_reset(segment, now):
            return
        score = self._score
        ack = segment.ack
        if self.state < OPEN:
            if ack < 1:
                return
            self._establish(segment, now)
        if segment.number <= self._acked and segment.stamp > self._echo:
            # The time stamp to be echoed (RFC 7323, section 4.3).
            self._echo = segment.stamp
        if score is not None and (ack > self._una or segment.sack or score.probe_end):
            self._on_ack(segment, now)
        edge = segment.edge
        if edge > self._edge:  # noqa: PLR1730 (half the cost of a call, for every segment)
            self._edge = edge
        if segment.end > segment.number:
            self._on_data(segment, now)
        elif segment.number < self._expected:
            # A probe of an idle connection or of a closed window.
            self._ack_now = True
        self._after(now)

    def _on_syn_or_reset(self, segment: Segment, now: float) -> bool:
        """Handle these flags; returns whether the segment is to be handled further: the answer to a SYN."""
        if segment.flags & RST:
            if self.state == CONNECTING:
                self._end("refused", now)
            elif self.state != GONE:
                self._end("reset", now)
            return False
        if self.state == CONNECTING and segment.ack == 1:
            return True
        # The answer to what was received was lost.
        if self.state == ACCEPTING:
            self._repeat_latest(now)
        elif self.state != GONE:
            self._send_ack(now)
        return False

    def _establish(self, segment: Segment, now: float) -> None:
        """Open the connection: the answer to the SYN, or the answer to that, has arrived."""
        if self.state == CONNECTING:
            self._expected = segment.end
            self._ack_now = True
        self.state, self._told = OPEN, False
        self._edge = segment.edge
        self._on_ack(segment, now)
        self._stack.opened(self, now)

    def _on_data(self, segment: Segment, now: float) -> None:
        """Take data or a FIN: now if it is next, or when what is missing before it arrives."""
        reassembly = self._reassembly
        self._data_at = now
        if segment.number != self._expected or segment.end > self._limit + 1:
            if segment.number > self._expected:
                reassembly = self._reassembly = reassembly.own()
            if segment.number < self._expected or (segment.end <= self._limit + 1 and not reassembly.put(segment)):
                self._duplicate = segment.number, segment.end
            self._ack_now = True
            return
        self._take(segment, now)
        if reassembly.early:
            for part in reassembly.take(segment.end):
                self._take(part, now)
            # Without delay, so that the peer gets a report at once of how much of a gap is closed.
            self._ack_now = True
        limit = self._expected + self._options.buffer - self._unread
        if limit > self._limit:  # noqa: PLR1730 (half the cost of a call, for every segment)
            self._limit = limit
        self._plan_ack(segment, now)

    def _plan_ack(self, segment: Segment, now: float) -> None:
        """Decide when data that arrived in order is acknowledged (RFC 5681, section 4.2).

        As in Linux, the last segment of what the peer wrote is acknowledged as soon as the machine has read it, unless the
        connection is interactive: then the ACK is delayed, to go with data. It becomes interactive when data is sent within
        `DELAYED_ACK` seconds of an arrival, and ceases to be when a delayed ACK had to be sent alone.
        """
        mss, unacknowledged = self._options.mss, self._expected - self._acked
        if not unacknowledged:
            # What was sent meanwhile carried the ACK.
            return
        if unacknowledged > mss or (segment.push and segment.octets < mss and not self._interactive and not self._unread):
            self._ack_now = True
        elif self._ack_at == inf:
            self._ack_at = now + DELAYED_ACK

    def _take(self, segment: Segment, now: float) -> None:
        """Take the next segment: give the machine the messages that end in it; `reset` when they can't be decoded."""
        self._expected = segment.end
        if segment.flags:
            self._finished = self._ack_now = True
        if self.state != OPEN or not segment.octets:
            return
        try:
            messages = self._reader.read(segment.content)
        except WireError:
            self._stack.reset(self.host, self.to, self._nxt, self._expected, now)
            self._end("reset", now)
            return
        if messages:
            if self._writer.behind > self._nxt:
                # What the ACK of the segment releases leaves before the machine can add to it, as in Linux.
                self._output(now)
            self._stack.deliver(self, messages, now)

    def _after(self, now: float) -> None:
        """Send what the segment that arrived makes possible, after the inputs of the machine that it causes."""
        if self.state == GONE:
            return
        writer = self._writer
        if self.is_full and self.state == OPEN and 8 * (writer.behind - self._una) <= 7 * self._options.buffer:
            self.is_full = False
            self._stack.drained(self, now)
        if self._finished and self.state == OPEN and not self._held:
            # What the machine wrote and was not sent is not wanted any more.
            self.state, self._passive = LEAVING, True
            writer.drop(self._nxt)
            self._reason = "ended"
            self.tell_closed(now)
        self._output(now)
        if self._ack_now:
            self._send_ack(now)
        if self._fin_acked:
            self._conclude(now)
        self._arm()

    def _conclude(self, now: float) -> None:
        """Handle the state in which all that was sent, and the FIN, have arrived."""
        if self._reason is None:
            self._reason = "ended"
            self.tell_closed(now)
        if self._finished:
            # The FIN of the peer may come again where the ACK of it was lost, so the end that left first stays for a while.
            self._drop(keep=not self._passive)

    # Acknowledgements

    def _on_ack(self, segment: Segment, now: float) -> None:
        """Handle an acknowledgement: record what arrived, find losses, and adapt the window."""
        score, ack, before = self._score, segment.ack, self._una
        if score is None or ack > self._nxt:
            return
        arrived, repeated = 0, False
        if ack > before:
            arrived = score.acknowledge(before, ack, segment.echo, now)
            self._una = ack
            score.progress_at = now
            self._retries = 0
            if score.rtt >= 0.0:
                self._rtt.measure(score.rtt)
            elif segment.echo:
                # Time stamps tell which transmission arrived, to the millisecond.
                self._rtt.measure(max(0.0, now - 1e-3 * segment.echo))
        if segment.sack:
            repeated = segment.sack[0][1] <= ack
            score.select(segment.sack, self._una, segment.echo)
        if score.probe_end:
            self._on_probe_ack(score, ack, ack > before, repeated, now)
        if score.phase != UNDISTURBED and ack >= score.recovery_point:
            if score.phase == RECOVERING:
                self._own_control().recovered(score.in_flight)
            score.phase = UNDISTURBED
        if score.find_lost() and score.phase == UNDISTURBED:
            self._recover_from_loss(score, now)
            sent = score.next_lost()
            if sent is not None:
                self._repeat(sent, now)
        elif arrived and (score.phase == RESTARTED or (score.phase == UNDISTURBED and score.is_limiting)):
            control = self._control if self._control is not self._stack.first_control else self._own_control()
            control.acknowledged(arrived, now, self._rtt.smoothed or 0.0)
        if ack > before:
            if self.state == LEAVING and self._writer.behind < ack:
                self._fin_acked = True
            self._restart_timer(score, now)
        if ack == self._nxt and not score.probe_end:
            self._score = None

    def _on_probe_ack(self, score: Scoreboard, ack: int, is_new: bool, repeated: bool, now: float) -> None:
        """Decide whether a tail loss probe has repaired a loss (RFC 8985, section 7.4)."""
        if ack < score.probe_end:
            return
        if score.probe_again and not repeated and ack > score.probe_end and score.phase == UNDISTURBED:
            self._recover_from_loss(score, now)
        elif score.probe_again and not repeated and is_new:
            # Only an ACK beyond the probe, or the report of a repetition, tells whether both copies arrived.
            return
        score.probe_end = 0

    def _recover_from_loss(self, score: Scoreboard, now: float) -> None:
        score.disturb(RECOVERING, self._nxt)
        self._own_control().lost(now)

    def _own_control(self) -> Control:
        """Return the congestion control, to be changed: before its first change it is one object for all ends."""
        if self._control is self._stack.first_control:
            self._control = CONTROLS[self._options.control](FIRST_WINDOW)
        return self._control

    # Output

    def _output(self, now: float) -> None:
        """Send what the congestion window, the peer's window and Nagle's algorithm allow: first what is lost, then new data."""
        score, writer = self._score, self._writer
        window = int(self._control.window)
        mss = self._options.mss
        is_limiting = True
        while score is None or score.in_flight < window:
            sent = score.next_lost() if score is not None and score.lost else None
            if sent is not None:
                self._repeat(sent, now)
                continue
            unsent = writer.behind - self._nxt
            octets = self._edge - self._nxt
            if unsent >= mss <= octets:
                self._send_new(mss, 0, now)
            elif not self._send_rest(unsent, octets, now):
                is_limiting = False
                break
            score = self._score
        if score is not None:
            score.is_limiting = is_limiting
        if self._timer_at == inf and writer.behind > self._nxt and self.state >= OPEN:
            # The peer has no room; it announces room when it has some, and is probed in case that segment is lost.
            self._timer_at = now + self._rtt.timeout

    def _send_rest(self, unsent: int, room: int, now: float) -> bool:
        """Send a segment that is not full, or the FIN behind the last one; returns False when none may be sent."""
        if unsent > 0:
            octets = min(unsent, room, self._options.mss)
            if not self._may_be_small(octets, unsent):
                return False
            self._send_new(octets, 0, now)
            return True
        # The FIN is behind all that was written, and is sent once.
        if self.state != LEAVING or unsent < 0:
            return False
        self._send_new(0, FIN, now)
        return True

    def _may_be_small(self, octets: int, unsent: int) -> bool:
        """Return whether a segment may be sent that is not full (RFC 9293, section 3.8.6.2.1).

        Nagle's algorithm as in Linux: one segment that is not full may be unacknowledged.
        """
        if octets < unsent:
            return octets >= self._options.buffer // 2
        score = self._score
        return score is None or not self._options.nagle or score.small <= self._una or self.state == LEAVING

    def _send_new(self, octets: int, flags: int, now: float) -> None:
        """Send a new segment."""
        writer, score = self._writer, self._score
        if score is None:
            score = self._score = Scoreboard(now)
        begin = self._nxt
        behind = begin + octets
        score.turn += 1
        self._ordinal += 1
        content = writer.cut(behind) if octets else ()
        push = behind == writer.behind
        sent = Sent(begin, behind + 1 if flags else behind, flags, octets, content, self._ordinal, push, score.turn, now)
        score.add(sent)
        self._nxt = sent.end
        if octets:
            if now - self._data_at < DELAYED_ACK:
                self._interactive = True
            if octets < self._options.mss:
                score.small = behind
        self._put(sent, now)
        if begin == self._una:
            # Nothing was unacknowledged; time-outs before were those of probes of a closed window.
            score.progress_at, self._retries = now, 0
            self._restart_timer(score, now)

    def _repeat_latest(self, now: float) -> None:
        """Send the last segment again, if one is unacknowledged."""
        sent = None if self._score is None else self._score.latest()
        if sent is not None:
            self._repeat(sent, now)

    def _repeat(self, sent: Sent, now: float) -> None:
        """Send a segment again."""
        assert self._score is not None
        self._score.repeat(sent, now)
        self._stack.retransmissions += 1
        self._put(sent, now)

    def _put(self, sent: Sent, now: float) -> None:
        """Put a transmission of a segment on the network."""
        self._sent_at = now
        kind = (SynSegment if sent.flags & SYN else ControlSegment) if sent.flags else Segment
        answers = self.state != CONNECTING
        segment = kind(
            self.to,
            sent.flags,
            sent.begin,
            sent.end,
            sent.octets,
            sent.content,
            self.identity | sent.ordinal & 0x7FFFFFFF,
            self._expected if answers else 0,
            self._limit,
            (),
            int(now * 1000),
            self._echo,
            sent.push,
            sent.repeated,
        )
        if sent.flags and isinstance(segment, SynSegment):
            segment.mss = self._options.mss
        if answers:
            # As `_note_ack`, without a call.
            self._acked, self._offered, self._ack_at = self._expected, self._limit, inf
            if not self._reassembly.early:
                self._ack_now = False
        self._stack.send(self.host, self.name, self.route, self.hops, segment, now)
        sent.left_at = self.hops[0].left_at(self.host.place)

    def _send_ack(self, now: float, number: int = -1) -> None:
        """Send a segment without data: an ACK, or with an old `number` a probe that is answered by one."""
        ranges = self._reassembly.ranges() if self._reassembly.early else ()
        if self._duplicate is not None:
            ranges = (self._duplicate, *ranges)[:3]
            self._duplicate = None
        self._acks += 1
        begin = self._nxt if number < 0 else number
        identity = self.identity | 0x80000000 | self._acks & 0x7FFFFFFF
        segment = AckSegment(
            self.to, 0, begin, begin, 0, (), identity, self._expected, self._limit, ranges, int(now * 1000), self._echo
        )
        self._note_ack()
        self._ack_now = False
        self._stack.send(self.host, self.name, self.route, self.hops, segment, now)

    def _note_ack(self) -> None:
        self._acked = self._expected
        self._offered = self._limit
        self._ack_at = inf

    # Timers

    def _arm(self) -> None:
        """Post the call of `expire` for the first timer other than keep-alive."""
        due = self._timer_at
        if self._ack_at < due:  # noqa: PLR1730 (half the cost of a call, for every segment)
            due = self._ack_at
        if due < self._armed:
            self._armed = due
            self._stack.post(self, due)

    def expire(self, now: float) -> None:
        """Handle the timers that have expired; `now` may be earlier than all of them, or an outdated time."""
        if now == self._armed:
            self._armed = inf
            if self._ack_at <= now:
                self._interactive = False
                self._send_ack(now)
            if self._timer_at <= now:
                self._on_timer(now)
            self._arm()

    def _restart_timer(self, score: Scoreboard, now: float) -> None:
        """Start the timer of what is unacknowledged: for a tail loss probe where one is of use, or for a retransmission."""
        rtt = self._rtt
        score.awaits_probe = False
        if self._una == self._nxt:
            self._timer_at = inf
            return
        wait = rtt.timeout
        if rtt.smoothed is not None and score.phase == UNDISTURBED and not score.probe_end and self.state >= OPEN:
            # Twice the round-trip time, and for a single segment what its ACK may wait (RFC 8985, section 7.2).
            patience = 2.0 * rtt.smoothed + (LEAST if score.in_flight == 1 else 0.002)
            if patience < wait:
                score.awaits_probe = True
                wait = patience
        self._timer_at = now + wait

    def _on_timer(self, now: float) -> None:
        """Handle the timer of retransmission: probe, repeat, or give up."""
        score = self._score
        if self.state < OPEN and self._retries >= SYN_RETRIES:
            self._end("timeout", now)
        elif score is None or self._una == self._nxt:
            self._probe_window(now)
        elif score.awaits_probe:
            self._probe_tail(score, now)
        elif self.state >= OPEN and now >= score.progress_at + SILENCE:
            self._end("timeout", now)
        else:
            self._retransmit(score, now)

    def _retransmit(self, score: Scoreboard, now: float) -> None:
        """Handle the retransmission time-out: whatever is not known to have arrived is lost (RFC 6298, section 5).

        A kernel knows, too, that nothing is lost while the first segment waits to leave the host, and sends no second copy.
        """
        self._rtt.back_off()
        if score.first_left_at() <= now:
            control = self._own_control()
            self._retries += 1
            score.lose_all()
            if self._retries == 1:
                control.timed_out(now)
            else:
                control.restart(1.0)
            score.disturb(RESTARTED, self._nxt)
            self._output(now)
        self._timer_at = min(now + self._rtt.timeout, score.progress_at + SILENCE if self.state >= OPEN else inf)
        score.awaits_probe = False

    def _probe_tail(self, score: Scoreboard, now: float) -> None:
        """Send a tail loss probe (RFC 8985, section 7.3): a new segment, or the last one again."""
        score.awaits_probe = False
        score.probe_again = not self._send_rest(self._writer.behind - self._nxt, self._edge - self._nxt, now)
        self._timer_at = now + self._rtt.timeout
        if score.probe_again:
            latest = score.latest()
            if latest is None or latest.left_at > now:
                return
            self._repeat(latest, now)
        score.probe_end = self._nxt

    def _probe_window(self, now: float) -> None:
        """Probe a peer without room for its window; data that waits was written but not sent (RFC 9293, section 3.8.6.1)."""
        self._timer_at = inf
        if self._writer.behind <= self._nxt:
            return
        if now - self._heard_at >= SILENCE:
            self._end("timeout", now)
            return
        self._retries = min(self._retries + 1, 16)
        self._send_ack(now, self._nxt - 1)
        self._timer_at = now + min(self._rtt.timeout * 2**self._retries, MOST)

    def expire_idle(self, now: float) -> None:
        """Probe a peer that has been silent, and give up after some probes (keep-alive)."""
        if self.state == GONE:
            return
        quiet_until = self._heard_at + KEEP_IDLE
        if now < quiet_until or self._una != self._nxt:
            self._set_idle(max(quiet_until, now + KEEP_INTERVAL))
        elif self._probes >= KEEP_PROBES:
            self._end("timeout", now)
        else:
            self._probes += 1
            self._send_ack(now, self._nxt - 1)
            self._set_idle(now + KEEP_INTERVAL)

    def _set_idle(self, when: float) -> None:
        """Set the keep-alive timer, which is far ahead, and so kept apart from the timers that segments set."""
        self.idle_at = when
        self._stack.idle_timers.add(self)

    # The end

    def _end(self, reason: Reason, now: float) -> None:
        """End at once, and tell the machine, behind messages that are held back."""
        self._drop()
        if self._reason is None:
            self._reason = reason
            if not self._held:
                self.tell_closed(now)

    def tell_closed(self, now: float) -> None:
        """Tell the machine that the connection is closed, once."""
        if not self._told and self._reason is not None:
            self._told = True
            self._stack.closed(self, self._reason, now)

    def _drop(self, keep: bool = False) -> None:
        """Forget all that is under way; with `keep` late segments are still answered."""
        self.state = GONE
        self._timer_at = self._ack_at = inf
        self._stack.forget(self, keep)
