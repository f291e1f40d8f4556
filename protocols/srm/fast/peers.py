"""Tables of the other members in a large group, with what all of its members received stored once.

All members of a group receive the same session messages. The content of each, and when it came, is stored once
(`Sightings`); a member remembers its number. Only measured distances are a member's own. A table of its own for each member
(`Peers`) takes fifty times as much memory, and is searched and changed twice as fast.
"""

from array import array
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

import numpy as np

from protocols.rng import GOLDEN, MASK, mix
from protocols.rng_arrays import Words, mix_all
from protocols.srm.member import Member
from protocols.srm.messages import Echo, SessionMessage
from protocols.srm.peers import CLOCK, GAIN, LONGEST, MOST_BITS, MOST_REQUESTERS, NEAREST, Peers

__all__ = ["LAST_BITS", "Sample", "SharedPeers", "Sightings", "share_sightings"]

FEWEST: Final = 8192
"""Sightings below which none are forgotten."""
LAST_BITS: Final = 0xFF
"""The bits of a hashed id that are computed for all members of a group at once."""


class Sightings:
    """The session messages that members received: of whom, its clock, when, and whether it is a source.

    Numbers are characters, because a string takes one or two bytes for each and is searched in nanoseconds. Nodes have numbers,
    too (`slot_of`), and keep them.
    """

    __slots__ = ("_latest", "_most", "_slots", "clocks", "log", "nodes", "sharers", "slots", "sources", "times")

    def __init__(self) -> None:
        self._slots: dict[int, str] = {}
        self._latest: dict[int, str] = {}
        """The last sighting of each node."""
        self._most = FEWEST
        """Sightings from which on those that nobody remembers are forgotten."""
        self.slots: list[int] = []
        """Nodes by slot."""
        self.nodes: list[int] = []
        self.clocks: list[int] = []
        self.times: list[float] = []
        self.sources: list[bool] = []
        self.log: list[Any] | None = None
        """The log of the group that has the numbers, too; they do not change while it has entries."""
        self.sharers: list[SharedPeers] = []
        """The members that may remember sightings by their numbers."""

    def slot_of(self, node: int) -> str:
        """Return the number of a node."""
        slot = self._slots.get(node)
        if slot is None:
            slot = self._slots[node] = chr(len(self.slots))
            self.slots.append(node)
        return slot

    def note(self, message: SessionMessage, now: float) -> str:
        """Return the number of a session message that came at `now` seconds."""
        if len(self.nodes) >= self._most and not self.log:
            self._forget()
        positions = message.positions
        return self.number(message.node, message.clock, now, bool(positions) and positions[0][0] == message.node)

    def number(self, node: int, clock: int, when: float, is_source: bool) -> str:
        """Return the number of a sighting, the same for all who have it at the same time."""
        latest = self._latest.get(node)
        if latest is not None:
            at = ord(latest)
            if self.times[at] == when and self.clocks[at] == clock and self.sources[at] is is_source:
                return latest
        found = self._latest[node] = chr(len(self.nodes))
        self.nodes.append(node)
        self.clocks.append(clock)
        self.times.append(when)
        self.sources.append(is_source)
        return found

    def _forget(self) -> None:
        """Forget the sightings that no member remembers, and number the others anew."""
        self.sharers = [each for each in self.sharers if each.sightings is self]
        used = sorted(set().union(*[each.seen for each in self.sharers]))
        anew = {ord(old): new for new, old in enumerate(used)}
        for each in self.sharers:
            each.seen = each.seen.translate(anew)
        kept = [ord(old) for old in used]
        self.nodes, self.clocks = [self.nodes[at] for at in kept], [self.clocks[at] for at in kept]
        self.times, self.sources = [self.times[at] for at in kept], [self.sources[at] for at in kept]
        self._latest = {}
        self._most = max(2 * len(kept), FEWEST)


class Sample:
    """Which members of a group have a node in their sample (`Peers`)."""

    __slots__ = ("_everyone", "_salts")

    def __init__(self, members: Sequence["SharedPeers"]) -> None:
        self._salts: Words = np.array([each.salt() for each in members], np.uint64)
        self._everyone = bytes(len(members))

    def of(self, node: int, *, is_source: bool) -> bytes:
        """Return for each member the last bits of the hashed id of a node; 0 for sources, which all members remember."""
        return self._everyone if is_source else mix_all(self._salts ^ np.uint64(node)).astype(np.uint8).tobytes()


@lru_cache(maxsize=64)
def _after_request(requesters: tuple[int, ...], node: int) -> tuple[int, ...]:
    """Return the recent requesters after another request: one object for all members that heard the same."""
    return (*[each for each in requesters if each != node], node)[-MOST_REQUESTERS:]


class SharedPeers(Peers):
    """As `Peers`. Members are in the order of `Peers._peers`: by slot in `known`, by last sighting in `seen`."""

    __slots__ = ("distances", "known", "measured", "place", "recent", "seen", "sightings")

    def __init__(self, former: Peers, sightings: Sightings) -> None:
        # Not that of `Peers`: its tables are not used.
        self._node = former._node
        self._most = former._most
        self._bits = former._bits
        self._count = former._count
        self._sources = former._sources
        self.rejected = former.rejected
        self.sightings = sightings
        sightings.sharers.append(self)
        peers = former._peers
        self.seen = "".join([sightings.number(node, peer.clock, peer.heard_at, peer.is_source) for node, peer in peers.items()])
        self.known = "".join([sightings.slot_of(node) for node in peers])
        self.recent: tuple[int, ...] = ()
        """Recent requesters, the latest last."""
        self.place = 0
        """The index of this member in its group."""
        for node in former._requesters:
            self.requested(node)
        measured = [(node, peer.distance) for node, peer in peers.items() if peer.distance]
        self.measured = "".join([sightings.slot_of(node) for node, _ in measured])
        """The slots of the members whose distance was measured."""
        self.distances: array[float] | None = array("d", [distance for _, distance in measured]) if measured else None
        """Their distances in seconds."""

    def __len__(self) -> int:
        return len(self.known)

    def share(self, sightings: Sightings) -> None:
        """Use the numbers of these sightings from now on."""
        old = self.sightings
        if old is sightings:
            return
        numbers = [ord(each) for each in self.seen]
        self.seen = "".join([sightings.number(old.nodes[at], old.clocks[at], old.times[at], old.sources[at]) for at in numbers])
        self.known = "".join([sightings.slot_of(old.nodes[at]) for at in numbers])
        self.measured = "".join([sightings.slot_of(old.slots[ord(each)]) for each in self.measured])
        self.sightings = sightings
        sightings.sharers.append(self)

    def heard(self, message: SessionMessage, now: float) -> None:
        """Take from a session message the clock to echo, and the distance if it has an echo for this member."""
        sightings = self.sightings
        number, slot = sightings.note(message, now), sightings.slot_of(message.node)
        if self.is_wanted(message.node, number, slot):
            self.take(message, number, slot, round(now * 1e6))

    def is_wanted(self, node: int, number: str, slot: str) -> bool:
        """Return whether a sighting of this number, of the node in this slot, is of a member to be remembered."""
        if slot in self.known:
            return True
        return node != self._node and (self.sightings.sources[ord(number)] or node in self.recent or self._is_sampled(node))

    def take(self, message: SessionMessage, number: str, slot: str, now: int) -> None:
        """As `heard` at `now` microseconds, for a sighting that is wanted."""
        at, sources = self.known.find(slot), self.sightings.sources
        if at >= 0:
            seen = self.seen
            if self._sources or sources[ord(number)]:
                self._sources += sources[ord(number)] - sources[ord(seen[at])]
            self.seen = seen[:at] + number + seen[at + 1 :]
        else:
            if len(self.known) >= self._most:
                self._make_room()
            self.known += slot
            self.seen += number
            self._count = 0
            self._sources += sources[ord(number)]
        echo = message.echoes.get(self._node)
        if echo is not None:
            self._take_rtt(slot, (now - echo[0] - echo[1]) & CLOCK)

    def requested(self, node: int) -> None:
        """Remember that a member sent a request, so that its next session message is kept and echoed early."""
        recent = self.recent
        if not recent or recent[-1] != node:
            self.recent = _after_request(recent, node)

    def distance(self, node: int) -> float | None:
        """Return the estimated one-way delay to a member in seconds; None before the first estimate."""
        distances = self.distances
        if distances is None:
            return None
        at = self.measured.find(self.sightings.slot_of(node))
        return distances[at] if at >= 0 else None

    def farthest(self) -> float:
        """Return the longest distance estimated in seconds; 0 before the first estimate."""
        return max(self.distances or (), default=0.0)

    def count(self) -> int:
        """Return the estimated number of members, this one included."""
        if not self._count:
            sampled = 0
            if self._bits:
                sampled = sum(self._sampled(self._nodes())) << self._bits
            self._count = 1 + max(len(self.known), sampled)
        return self._count

    def echoes(self, most: int, now: float) -> dict[int, Echo]:
        """Return at most `most` echoes: for sources, then for recent requesters, then for the others in turn."""
        seen = self.seen
        if len(seen) > most:
            self._put_behind(most)
            seen = self.seen[-most:]
        sightings = self.sightings
        nodes, clocks, times = sightings.nodes, sightings.clocks, sightings.times
        found: dict[int, Echo] = {}
        for each in seen:
            at = ord(each)
            since = round((now - times[at]) * 1e6)
            if since <= CLOCK:
                found[nodes[at]] = (clocks[at], since)
        return found

    def _put_behind(self, most: int) -> None:
        """Put the members to be echoed now behind all others."""
        seen, sightings = self.seen, self.sightings
        sources = [at for at, each in enumerate(seen) if sightings.sources[ord(each)]] if self._sources else []
        taken = dict.fromkeys(sources[:most])
        recent = [self.known.find(sightings.slot_of(node)) for node in reversed(self.recent)]
        wanted = [at for at in recent if at >= 0 and at not in taken]
        taken.update(dict.fromkeys(wanted[: most - len(taken)]))
        for at in range(len(seen)):
            if len(taken) >= most:
                break
            taken[at] = None
        self._keep([at for at in range(len(seen)) if at not in taken] + list(taken))

    def forget_before(self, when: float) -> None:
        """Forget the members not heard since `when`, and sample more of the others if few are left."""
        times = self.sightings.times
        kept = [at for at, each in enumerate(self.seen) if times[ord(each)] >= when]
        if len(kept) < len(self.seen):
            self._keep(kept)
        self._count = 0
        if self._bits and len(self.known) < self._most // 4:
            self._bits -= 1

    def salt(self) -> int:
        """Return what node ids are combined with before they are hashed, so that members have different samples."""
        return self._node * GOLDEN & MASK

    def _is_sampled(self, node: int) -> bool:
        return not self._bits or not mix(node ^ self.salt()) & ((1 << self._bits) - 1)

    def _nodes(self) -> list[int]:
        """Return the members that are remembered."""
        slots = self.sightings.slots
        return [slots[ord(each)] for each in self.known]

    def _sampled(self, nodes: list[int]) -> list[bool]:
        """Return whether each of these members belongs to the sample."""
        hashed = mix_all(np.array(nodes, np.uint64) ^ np.uint64(self.salt()))
        sampled: list[bool] = (hashed & np.uint64((1 << self._bits) - 1) == 0).tolist()
        return sampled

    def _make_room(self) -> None:
        """Forget members until there is room for one: halve the sample, or forget who was heard longest ago."""
        while len(self.known) >= self._most and self._bits < MOST_BITS:
            self._bits += 1
            nodes = self._nodes()
            stay, seen, recent = self._sampled(nodes), self.seen, self.recent
            if recent:
                stay = [each or node in recent for each, node in zip(stay, nodes, strict=True)]
            if self._sources:
                sources = self.sightings.sources
                stay = [each or sources[ord(number)] for each, number in zip(stay, seen, strict=True)]
            self._keep([at for at, each in enumerate(stay) if each])
        if len(self.known) >= self._most:
            times = [self.sightings.times[ord(each)] for each in self.seen]
            oldest = times.index(min(times))
            self._keep([at for at in range(len(times)) if at != oldest])

    def _keep(self, places: list[int]) -> None:
        """Remember only the members at these places, in this order."""
        known, seen, distances, sources = self.known, self.seen, self.distances, self.sightings.sources
        self.known = "".join([known[at] for at in places])
        self.seen = "".join([seen[at] for at in places])
        if self._sources:
            self._sources = sum([sources[ord(each)] for each in self.seen])
        if distances is not None and len(places) < len(known):
            left = [at for at, slot in enumerate(self.measured) if slot in self.known]
            self.measured = "".join([self.measured[at] for at in left])
            self.distances = array("d", [distances[at] for at in left]) if left else None

    def _take_rtt(self, slot: str, rtt: int) -> None:
        """Take a round-trip time of `rtt` microseconds to the member in a slot."""
        if rtt > LONGEST:
            self.rejected += 1
            return
        sample = max(rtt * 0.5e-6, NEAREST)
        distances = self.distances
        if distances is None:
            self.measured, self.distances = slot, array("d", (sample,))
            return
        at = self.measured.find(slot)
        if at < 0:
            self.measured += slot
            distances.append(sample)
        else:
            distances[at] += GAIN * (sample - distances[at])


def share_sightings(members: Sequence[Member], log: list[Any]) -> tuple[Sightings, Sample]:
    """Return the sightings that these members share from now on, with a group that has this log, and their samples."""
    first = members[0].peers
    shared = first.sightings if isinstance(first, SharedPeers) and first.sightings.log is None else Sightings()
    shared.log = log
    everyone = []
    for place, each in enumerate(members):
        peers = each.peers
        if isinstance(peers, SharedPeers):
            peers.share(shared)
        else:
            peers = each.peers = SharedPeers(peers, shared)
        peers.place = place
        everyone.append(peers)
    return shared, Sample(everyone)
