"""The repair policy of a receiver in a lockstep group: what the group received is applied when it is needed first."""

from math import inf
from typing import Any, Final, TypeAlias

from protocols.arq.messages import Data, Nack
from protocols.arq.repair_policy import MissingUnit
from protocols.arq.session import Session
from protocols.srm.config import SrmConfig
from protocols.srm.fast.peers import LAST_BITS, SharedPeers
from protocols.srm.fast.repair_timers import FastRepairTimers
from protocols.srm.fast.unit_cache import FastUnitCache
from protocols.srm.intervals import Interval, request_interval
from protocols.srm.member import SIZE_GAIN
from protocols.srm.messages import SessionMessage
from protocols.srm.peers import CLOCK, GAIN, LONGEST, NEAREST, Peer
from protocols.srm.receiver import SrmPolicy, _identity_of
from protocols.srm.repair_timers import NOT_HELD, Key

__all__ = ["REPAIR", "REPORT", "REQUEST", "SIGHTING", "SOURCE", "FastSrmPolicy", "Heard"]

Heard: TypeAlias = "tuple[int, Any, float, Any, Any]"
"""A kind, the message, when it came (seconds), and two values by kind.

REPORT and SOURCE: a session message of a receiver or a source; when it came in microseconds, its size in bytes. SIGHTING: one
in a large group; its number, the slot of its node (`SharedPeers`), when it came in microseconds, and its hashed ids (`Sample`);
its size in bytes. REPAIR: the key of the unit, and the distance that the repair reports in seconds. REQUEST: none.
"""
REPORT: Final = 0
SOURCE: Final = 1
SIGHTING: Final = 2
REPAIR: Final = 3
REQUEST: Final = 4
_NO_LOSSES: Final = Interval(0.0, 0.0)
"""Shared by the members that have lost nothing, as their request interval; never used."""


class FastSrmPolicy(SrmPolicy):
    """An `SrmPolicy` that applies messages from the log of its group."""

    __slots__ = ("replayed",)

    def __init__(self, session: Session, config: SrmConfig) -> None:
        super().__init__(session, config)
        self.cache = FastUnitCache(config.cache)
        self._repairs = FastRepairTimers(self._repair_interval, session.ports.rng)
        self._request_interval = _NO_LOSSES
        self.replayed = 0
        """How many entries of the group's log are applied."""

    def on_missing(self, missing: MissingUnit, now: float) -> float:
        """Start the request timer, whose interval nothing uses before the first loss."""
        if self._request_interval is _NO_LOSSES:
            self._request_interval = request_interval(self._config, self.member)
        return super().on_missing(missing, now)

    def replay(self, log: list[Heard], end: int) -> None:
        """Apply the entries of the log before number `end`: session messages, requests, and repairs of units received."""
        member, own, peers = self.member, self._session.node, self.member.peers
        if isinstance(peers, SharedPeers):
            self._replay_large(log, end, peers)
            return
        begin, self.replayed = self.replayed, end
        heard, mean = member.heard, member._size
        known: dict[int, Peer] = peers._peers
        for kind, message, now, first, second in log[begin:end]:
            if kind < SIGHTING:
                heard += 1
                mean += SIZE_GAIN * (second - mean)
                report: SessionMessage = message
                peer = known.get(report.node)
                if peer is None and not kind and not peers._bits and len(known) < peers._most:
                    peer = known[report.node] = Peer()
                    peers._count = 0
                elif peer is None or peer.is_source is not (kind == SOURCE):
                    peers.heard(report, now)
                    continue
                peer.clock, peer.heard_at = report.clock, now
                echo = report.echoes.get(own)
                if echo is not None:
                    rtt = (first - echo[0] - echo[1]) & CLOCK
                    if rtt <= LONGEST:
                        sample = rtt * 0.5e-6
                        if sample < NEAREST:  # noqa: PLR1730 (half the cost of max)
                            sample = NEAREST
                        peer.distance += GAIN * (sample - peer.distance) if peer.distance else sample
                    else:
                        peers.rejected += 1
            else:
                self._replay_feedback(kind, message, now, first, second)
        member.heard, member._size = heard, mean

    def _replay_large(self, log: list[Heard], end: int, peers: SharedPeers) -> None:
        """As `replay` in a large group: most session messages are of members that are not remembered."""
        begin, self.replayed = self.replayed, end
        member, place, recent = self.member, peers.place, peers.recent
        # The bits that are 0 in the hashed ids of the sample.
        sampled = (1 << peers._bits) - 1
        heard, mean = member.heard, member._size
        for kind, message, now, first, second in log[begin:end]:
            if kind == SIGHTING:
                heard += 1
                mean += SIZE_GAIN * (second - mean)
                number, slot, arrived, hashed = first
                if hashed[place] & sampled:
                    if slot not in peers.known and not (recent and message.node in recent):
                        continue
                elif sampled > LAST_BITS and not peers.is_wanted(message.node, number, slot):
                    continue
                peers.take(message, number, slot, arrived)
                sampled = (1 << peers._bits) - 1
            else:
                self._replay_feedback(kind, message, now, first, second)
                recent = peers.recent
        member.heard, member._size = heard, mean

    def _replay_feedback(self, kind: int, message: Any, now: float, first: Any, second: Any) -> None:
        """Apply an entry of the log that is a request, or a repair of a unit that was received."""
        if kind == REPAIR:
            self._on_useless_repair(message, first, second, now)
            return
        request: Nack = message
        self._nacks_heard += 1
        self.member.peers.requested(request.node)

    def _on_useless_repair(self, message: Data, key: Key, reported: float, now: float) -> None:
        """Handle a repair of a unit that was received; as `on_repair`."""
        self._session.data_received += 1
        self._session.duplicates += 1
        repairs = self._repairs
        if key in repairs._timers:
            repairs.on_repair(key, reported, now)
            self.set_deadline()
            return
        until, own = repairs._held.get(key, NOT_HELD)
        if now < until:
            self._repair_interval.on_duplicate(own, reported)
        else:
            repairs.hold(key, self.member.distance(message.sender), now)

    def on_request(self, nack: Nack, key: Key, is_held: bool, now: float) -> bool:
        """Handle another member's request for a unit that is not missing, as `on_overheard`; False: no timer starts.

        `is_held` says that the unit is in the cache as the group received it; else it is looked for among the others.
        """
        self._nacks_heard += 1
        member = self.member
        member.peers.requested(nack.node)
        if not is_held:
            cached = self.cache.get(_identity_of(nack.sender, nack.object_id, nack.unit))
            if cached is None or cached.instance != nack.instance or cached.object_id != nack.object_id:
                return False
        repairs = self._repairs
        repairs.on_request(key, member.distance_to_requester(nack.node, nack.sender), now)
        self.deadline = repairs.due if repairs.due < member.due else member.due
        return True

    def answers(self, key: Key) -> bool:
        """Return whether a repair timer of a unit runs."""
        return key in self._repairs._timers

    @property
    def is_paused(self) -> bool:
        """Whether content and requests let session messages begin again."""
        return self.member.due == inf and self._config.session_share > 0.0
