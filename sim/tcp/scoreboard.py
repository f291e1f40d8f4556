"""Scoreboard of a TCP sender: which segments arrived, which are lost, and which is repeated next (RFC 6675)."""

from heapq import heappop, heappush
from typing import Final

from sim.tcp.segment import Content

__all__ = ["RECOVERING", "RESTARTED", "UNDISTURBED", "Scoreboard", "Sent"]

FLYING: Final = 0
ARRIVED: Final = 1
LOST: Final = 2

# What a loss led to, until all that was sent before it is acknowledged.
UNDISTURBED: Final = 0
RECOVERING: Final = 1
"""Losses were found by later arrivals (fast recovery)."""
RESTARTED: Final = 2
"""The retransmission time-out expired."""


class Sent:
    """A segment that was sent and is not acknowledged up to its end. It is repeated as a whole."""

    left_at: float
    """When it leaves the host, in seconds; 0 where that is not known. Set when it is sent."""

    __slots__ = ("at", "begin", "content", "end", "flags", "left_at", "octets", "ordinal", "push", "repeated", "state", "turn")

    def __init__(
        self, begin: int, end: int, flags: int, octets: int, content: Content, ordinal: int, push: bool, turn: int, now: float
    ) -> None:
        self.begin = begin
        self.end = end
        self.flags = flags
        self.octets = octets
        self.content = content
        self.ordinal = ordinal
        """Number of the segment on the connection."""
        self.push = push
        self.turn = turn
        """Number of its latest transmission among all transmissions of the connection."""
        self.at = now
        """Time of its latest transmission, in seconds."""
        self.repeated = False
        self.state = FLYING


_NO_LOSSES: Final[list[int]] = []
_NO_RANGES: Final[dict[int, int]] = {}
"""Empty tables, shared by the connections that have lost nothing; never modified."""


class Scoreboard:
    """The segments that are not acknowledged, with the state of loss detection and recovery (RFC 6675).

    An end has one while there are such segments: most connections are idle most of the time.

    A segment is lost when three others that were transmitted later have arrived: RFC 6675's rule, counted in transmissions
    instead of numbers (as by RFC 9002, section 6.1.1), so that lost retransmissions are found too. An ACK costs
    the segments that it changes, whatever the window.
    """

    __slots__ = (
        "_first",
        "_flying",
        "_known",
        "_records",
        "_second",
        "_third",
        "awaits_probe",
        "in_flight",
        "is_limiting",
        "lost",
        "phase",
        "probe_again",
        "probe_end",
        "progress_at",
        "recovery_point",
        "rtt",
        "small",
        "turn",
    )

    def __init__(self, now: float) -> None:
        self.in_flight = 0
        """Segments that were sent, and neither arrived nor are lost."""
        self.turn = 0
        """Number of the latest transmission."""
        self.rtt = -1.0
        """Round-trip time (seconds) measured by the latest ACK; negative: none."""
        self._records: dict[int, Sent] = {}
        """By first byte, in order."""
        # Those in flight by number of transmission, in order; None while they are all, each sent once.
        self._flying: dict[int, Sent] | None = None
        self.lost = _NO_LOSSES
        """First bytes of segments that are lost, a heap; entries whose segment is not lost any more are ignored."""
        # The three latest transmissions that arrived.
        self._first = self._second = self._third = 0
        # By first byte of each range reported by SACK, the number up to which the range was processed.
        self._known = _NO_RANGES
        self.phase = UNDISTURBED
        self.recovery_point = 0
        """The end of what was sent when the latest loss was found (RecoveryPoint)."""
        # The tail loss probe under way: the end of what was sent before (0: none), and whether it was a retransmission.
        self.probe_end, self.probe_again = 0, False
        self.awaits_probe = False
        """Whether the timer is that of a tail loss probe, and not that of retransmission."""
        self.is_limiting = False
        """Whether the congestion window kept the end from sending more."""
        self.small = 0
        """The end of the latest segment that is not full."""
        self.progress_at = now
        """When something was acknowledged last, or sent for the first time since all was, in seconds."""

    def add(self, sent: Sent) -> None:
        """Enter a new segment, which is sent now."""
        self._records[sent.begin] = sent
        if self._flying is not None:
            self._flying[sent.turn] = sent
        self.in_flight += 1

    def _by_turn(self) -> dict[int, Sent]:
        """Return the segments in flight by number of transmission."""
        if self._flying is None:
            self._flying = {sent.turn: sent for sent in self._records.values()}
        return self._flying

    def repeat(self, sent: Sent, now: float) -> None:
        """Enter a retransmission."""
        flying = self._by_turn()
        if sent.state == FLYING:
            # A probe repeats a segment that may still arrive.
            del flying[sent.turn]
        else:
            self.in_flight += 1
        self.turn += 1
        sent.turn, sent.at, sent.repeated, sent.state = self.turn, now, True, FLYING
        flying[sent.turn] = sent

    def disturb(self, phase: int, end: int) -> None:
        """Begin a phase of recovery, which ends when all before byte `end` is acknowledged, and the tail loss probe."""
        self.phase, self.recovery_point, self.probe_end = phase, end, 0

    def acknowledge(self, una: int, ack: int, echo: int, now: float) -> int:
        """Remove the segments from byte `una` up to `ack`; returns how many arrived that were not known to."""
        records, arrived = self._records, 0
        self.rtt = -1.0
        while una < ack:
            sent = records.pop(una)
            una = sent.end
            if sent.state != ARRIVED:
                arrived += 1
                if not sent.repeated and self.rtt < 0.0:
                    self.rtt = now - sent.at
                self._arrive(sent, echo)
        assert una == ack, "segments are acknowledged as wholes"
        return arrived

    def _arrive(self, sent: Sent, echo: int) -> None:
        if sent.state == FLYING:
            if self._flying is not None:
                del self._flying[sent.turn]
            self.in_flight -= 1
        turn = sent.turn
        if sent.repeated and echo < int(sent.at * 1000):
            # An earlier transmission arrived: it says nothing about those after it.
            return
        if turn > self._first:
            self._third, self._second, self._first = self._second, self._first, turn
        elif turn > self._second:
            self._third, self._second = self._second, turn
        elif turn > self._third:
            self._third = turn

    def select(self, ranges: tuple[tuple[int, int], ...], una: int, echo: int) -> None:
        """Mark the segments from byte `una` in ranges reported by SACK as arrived."""
        self._by_turn()
        records, known = self._records, self._known
        for first, behind in ranges:
            if behind <= una:
                continue
            at = max(known.get(first, first), una)
            while at < behind:
                sent = records.get(at)
                if sent is None:
                    break
                at = sent.end
                if sent.state != ARRIVED:
                    self._arrive(sent, echo)
                    sent.state = ARRIVED
                    # Nothing of it is sent again.
                    sent.content = ()
            if not known:
                known = self._known = {}
            known[first] = at

    def find_lost(self) -> bool:
        """Mark segments that are lost by what arrived; returns whether there are any new ones."""
        flying, third, found = self._flying, self._third, False
        if flying is None:
            # All that arrived were sent before.
            return False
        while flying:
            turn = next(iter(flying))
            if turn >= third:
                break
            self._lose(flying.pop(turn))
            self.in_flight -= 1
            found = True
        return found

    def _lose(self, sent: Sent) -> None:
        sent.state = LOST
        if not self.lost:
            self.lost = []
        heappush(self.lost, sent.begin)

    def lose_all(self) -> None:
        """Mark all segments as lost that are not known to have arrived."""
        self._flying = {}
        self.in_flight = 0
        self.lost = _NO_LOSSES
        for sent in self._records.values():
            if sent.state != ARRIVED:
                self._lose(sent)

    def next_lost(self) -> Sent | None:
        """Return the first segment that is lost and not yet repeated; None if there is none."""
        lost = self.lost
        while lost:
            sent = self._records.get(lost[0])
            if sent is not None and sent.state == LOST:
                return sent
            heappop(lost)
        return None

    def first_left_at(self) -> float:
        """Return when the first unacknowledged segment leaves the host, in seconds; 0 where that is not known."""
        return next(iter(self._records.values())).left_at

    def latest(self) -> Sent | None:
        """Return the unacknowledged segment with the highest numbers that is not known to have arrived."""
        for sent in reversed(self._records.values()):
            if sent.state != ARRIVED:
                return sent
        return None
