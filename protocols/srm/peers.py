"""The other members of a group at one member: when it heard each last, and its distance.

The memory is bounded. While the group has more members than fit, a member remembers a random part of them, those whose hashed
ids end in a number of zero bits, and estimates the group size from it (RFC 2762). It remembers sources and recent requesters
in any case, because the timers depend on their distances.
"""

from protocols.rng import GOLDEN, MASK, mix
from protocols.srm.messages import Echo, SessionMessage

__all__ = ["CLOCK", "GAIN", "LONGEST", "NEAREST", "Peer", "Peers"]

GAIN = 0.25
"""Weight of a new sample in the mean distance."""
LONGEST = 100_000_000
"""Round-trip times above this many microseconds are taken for nonsense."""
NEAREST = 1e-6
"""Least distance in seconds."""
MOST_REQUESTERS = 16
MOST_BITS = 32
CLOCK = 0xFFFFFFFF


class Peer:
    """State of another member: its clock in its last session message, when that came (seconds), and its distance."""

    __slots__ = ("clock", "distance", "heard_at", "is_source")

    def __init__(self) -> None:
        self.clock = 0
        self.heard_at = 0.0
        self.distance = 0.0
        """Mean of the measured one-way delays in seconds; 0 before the first."""
        self.is_source = False


class Peers:
    """The `most` members that member `node` remembers."""

    __slots__ = ("_bits", "_count", "_most", "_node", "_peers", "_requesters", "_salt", "_sources", "rejected")

    def __init__(self, node: int, most: int) -> None:
        self._node = node
        self._most = most
        self._salt = (node * GOLDEN) & MASK
        self._bits = 0
        """Zero bits at the end of the hashed id of each member that is remembered for the sample."""
        self._count = 1
        """The group size; 0 when it has to be estimated anew."""
        self._sources = 0
        """How many of the remembered members are sources."""
        self._peers: dict[int, Peer] = {}
        """Members by node id, those to be echoed next first."""
        self._requesters: dict[int, None] = {}
        """Recent requesters, the latest last."""
        self.rejected = 0
        """Echoes that were no possible round-trip time."""

    def __len__(self) -> int:
        return len(self._peers)

    def heard(self, message: SessionMessage, now: float) -> None:
        """Take from a session message the clock to echo, and the distance if it has an echo for this member."""
        node = message.node
        peer = self._peers.get(node)
        is_source = bool(message.positions) and message.positions[0][0] == node
        if peer is None:
            if node == self._node or not (is_source or node in self._requesters or self._is_sampled(node)):
                return
            if len(self._peers) >= self._most:
                self._make_room()
            peer = self._peers[node] = Peer()
            self._count = 0
        if peer.is_source is not is_source:
            peer.is_source = is_source
            self._sources += 1 if is_source else -1
        peer.clock, peer.heard_at = message.clock, now
        echo = message.echoes.get(self._node)
        if echo is not None:
            self._measure(peer, echo, now)

    def requested(self, node: int) -> None:
        """Remember that a member sent a request, so that its next session message is kept and echoed early."""
        requesters = self._requesters
        requesters.pop(node, None)
        requesters[node] = None
        if len(requesters) > MOST_REQUESTERS:
            del requesters[next(iter(requesters))]

    def distance(self, node: int) -> float | None:
        """Return the estimated one-way delay to a member in seconds; None before the first estimate."""
        peer = self._peers.get(node)
        return peer.distance if peer is not None and peer.distance else None

    def farthest(self) -> float:
        """Return the longest distance estimated in seconds; 0 before the first estimate."""
        return max((peer.distance for peer in self._peers.values()), default=0.0)

    def count(self) -> int:
        """Return the estimated number of members, this one included."""
        if not self._count:
            remembered = len(self._peers)
            sampled = sum(map(self._is_sampled, self._peers)) << self._bits if self._bits else 0
            self._count = 1 + max(remembered, sampled)
        return self._count

    def sources(self) -> int:
        """Return how many of the remembered members are sources."""
        return self._sources

    def echoes(self, most: int, now: float) -> dict[int, Echo]:
        """Return at most `most` echoes: for sources, then for recent requesters, then for the others in turn."""
        chosen = self._choose(most) if len(self._peers) > most else self._peers
        return {
            node: (peer.clock, since) for node, peer in chosen.items() if (since := round((now - peer.heard_at) * 1e6)) <= CLOCK
        }

    def _choose(self, most: int) -> dict[int, Peer]:
        """Return the members to be echoed now, and put them behind all others."""
        peers = self._peers
        taken = dict.fromkeys([node for node, peer in peers.items() if peer.is_source][:most])
        wanted = [node for node in reversed(self._requesters) if node in peers and node not in taken]
        taken.update(dict.fromkeys(wanted[: most - len(taken)]))
        for node in peers:
            if len(taken) >= most:
                break
            taken[node] = None
        for node in taken:
            peers[node] = peers.pop(node)
        return {node: peers[node] for node in taken}

    def forget_before(self, when: float) -> None:
        """Forget the members not heard since `when`, and sample more of the others if few are left."""
        for node in [node for node, peer in self._peers.items() if peer.heard_at < when]:
            self._forget(node)
        self._count = 0
        if self._bits and len(self._peers) < self._most // 4:
            self._bits -= 1

    def _is_sampled(self, node: int) -> bool:
        return not self._bits or not mix(node ^ self._salt) & ((1 << self._bits) - 1)

    def _make_room(self) -> None:
        """Forget members until there is room for one: halve the sample, or forget who was heard longest ago."""
        peers = self._peers
        while len(peers) >= self._most and self._bits < MOST_BITS:
            self._bits += 1
            for node in [node for node, peer in peers.items() if not self._stays(node, peer)]:
                del peers[node]
        if len(peers) >= self._most:
            self._forget(min(peers, key=lambda node: peers[node].heard_at))

    def _forget(self, node: int) -> None:
        self._sources -= self._peers.pop(node).is_source

    def _stays(self, node: int, peer: Peer) -> bool:
        return peer.is_source or node in self._requesters or self._is_sampled(node)

    def _measure(self, peer: Peer, echo: Echo, now: float) -> None:
        clock, held = echo
        rtt = (round(now * 1e6) - clock - held) & CLOCK
        if rtt > LONGEST:
            self.rejected += 1
            return
        sample = max(rtt * 0.5e-6, NEAREST)
        peer.distance += GAIN * (sample - peer.distance) if peer.distance else sample
