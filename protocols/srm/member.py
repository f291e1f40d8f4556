"""A member of a session: it multicasts session messages, by which all members estimate their distances and the group size.

The interval between two session messages of a member is that of RTCP (RFC 3550 6.2 and 6.3): proportional to the number of
members, so that all together keep to a share of the rate, of which sources have a quarter; half as long before the first; times
a random number between 0.5 and 1.5; and computed anew when it is over, because more members may have become known (timer
reconsideration). The random number stays the same then, other than in RFC 3550, so that intervals are shorter by
`COMPENSATION`.
"""

from math import e, inf
from typing import Final

from protocols.machine import Group, Packet, Ports
from protocols.srm.config import SrmConfig
from protocols.srm.messages import Position, SessionMessage
from protocols.srm.peers import CLOCK, Peers
from protocols.srm.wire import MOST_POSITIONS, echoes_that_fit, size_of

__all__ = ["Member"]

SOURCES_SHARE: Final = 0.25
COMPENSATION: Final = e - 1.5
"""Reconsideration with another random number makes intervals longer by this factor (RFC 3550 6.3.1)."""
FIRST_SIZE: Final = 64.0
"""Bytes of a session message, before the first."""
SIZE_GAIN: Final = 1.0 / 16.0
PATIENCE: Final = 5.0
"""Members not heard for this many intervals are forgotten (RFC 3550 6.3.5)."""
QUIET: Final = 2.0
"""A member pauses its session messages when there was no content and no request for this many `timeout`s."""
CERTAIN: Final = 2
"""Session messages a member has sent when it has heard most of the others, because its intervals grow with their number."""


class Member:
    """Sends the session messages of member `node`, and keeps the content of those of others. `due` is when the next is due."""

    __slots__ = (
        "_config",
        "_group",
        "_is_source",
        "_node",
        "_ports",
        "_resumed_at",
        "_sent_at",
        "_size",
        "_spread",
        "active_at",
        "due",
        "heard",
        "peers",
        "sent",
    )

    def __init__(self, ports: Ports, config: SrmConfig, node: int, group: Group, is_source: bool) -> None:
        self._ports = ports
        self._config = config
        self._node = node
        self._group = group
        self._is_source = is_source
        self.active_at = -inf
        """When there was content or a request last, in seconds."""
        self._resumed_at = 0.0
        self._sent_at = -inf
        """When the last session message was sent, or the session messages began."""
        self._size = FIRST_SIZE
        """Mean size of session messages in bytes."""
        self._spread = 1.0
        self.peers = Peers(node, config.peers)
        self.due = inf
        self.sent = self.heard = 0

    # -- distances -------------------------------------------------------------------------------------------------

    def distance(self, node: int) -> float:
        """Return the distance to a source in seconds; the configured one before the first estimate."""
        return self.peers.distance(node) or self._config.distance

    def distance_to_requester(self, node: int, source: int) -> float:
        """Return the distance to a requester in seconds; while it is not known, that to the source of what it requests."""
        return self.peers.distance(node) or self.distance(source)

    def group_size(self) -> int:
        """Return the estimated number of members; before the second session message at least the assumed one."""
        known = self.peers.count()
        return known if self.sent >= CERTAIN else max(known, self._config.members)

    # -- session messages ------------------------------------------------------------------------------------------

    def on_activity(self, now: float) -> None:
        """Note content or a request: session messages begin, or go on after a pause."""
        self.active_at = now
        if self.due == inf and self._config.session_share:
            self._resumed_at = self._sent_at = now
            self._spread = 0.5 + self._ports.rng.uniform()
            self.due = now + self._drawn(self._mean_interval())

    def on_session(self, message: SessionMessage, now: float) -> None:
        """Take the clock and the distance from a session message of another member."""
        self.heard += 1
        self._size += SIZE_GAIN * (size_of(message) - self._size)
        self.peers.heard(message, now)

    def wake(self, positions: list[Position], now: float) -> bool:
        """Send a session message with these positions if one is due; returns whether the network is full."""
        if now < self.due:
            return False
        if now - self.active_at > QUIET * self._config.timeout:
            self.due = inf
            return False
        mean = self._mean_interval()
        self.due = self._sent_at + self._drawn(mean)
        if self.due > now:
            return False
        self._forget(now - PATIENCE * mean)
        full = self._send(tuple(positions[:MOST_POSITIONS]), now)
        self._sent_at = now
        self._spread = 0.5 + self._ports.rng.uniform()
        self.due = now + self._drawn(self._mean_interval())
        return full

    def _send(self, positions: tuple[Position, ...], now: float) -> bool:
        echoes = self.peers.echoes(echoes_that_fit(self._config.segment, len(positions)), now)
        message = SessionMessage(self._node, round(now * 1e6) & CLOCK, positions, echoes)
        size = size_of(message)
        self._size += SIZE_GAIN * (size - self._size)
        self.sent += 1
        return bool(self._ports.send(Packet(message, size, self._group)))

    def _drawn(self, mean: float) -> float:
        """Return the seconds between two session messages, given their mean."""
        return mean * self._spread / COMPENSATION

    def _mean_interval(self) -> float:
        members, config = self.peers.count(), self._config
        share = config.session_share * config.rate
        sources = self.peers.sources() + self._is_source
        if 4 * sources <= members:
            members = sources if self._is_source else members - sources
            share *= SOURCES_SHARE if self._is_source else 1.0 - SOURCES_SHARE
        shortest = config.session_interval if self.sent else config.session_interval / 2.0
        return max(shortest, self._size * members / share)

    def _forget(self, before: float) -> None:
        """Forget members that were not heard since `before`, but not because the session paused."""
        if before > self._resumed_at:
            self.peers.forget_before(before)
