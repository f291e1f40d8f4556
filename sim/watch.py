"""Looking at a run: a network that tells watchers of every packet, decision and event, and is otherwise the same.

Nothing here exists in a run that nobody watches: hosts and links that tell are other objects, put in place while the network
is built. A watched network goes a slower way to the same fingerprint.
"""

from collections.abc import Callable, Sequence
from dataclasses import fields
from math import inf
from typing import Any, NamedTuple, TypeVar, cast

from protocols.events import Event
from protocols.machine import Packet
from sim.endpoint import Endpoint
from sim.flight import Flight
from sim.host import SimHost
from sim.link import Arrivals, Hop
from sim.network import Network
from sim.stats import LinkCounts

__all__ = ["REASONS", "Fate", "Passage", "WatchedNetwork", "Watcher", "number_of"]

T = TypeVar("T")
REASONS = {"lost": "lost by the link", "dropped": "dropped by the queue", "corrupt": "damaged on the link"}
"""Why a packet did not come to the other end, by the count of `LinkCounts` that says so.

Where members of a group missed it for different reasons, all of these stand for each, joined by "or".
"""
_MOST_KEPT = 100_000
_MISSED = [field.name for field in fields(LinkCounts) if field.name in REASONS]


class Fate(NamedTuple):
    """What became of one packet on one link: when it comes to `node`, or (`when` inf) why it does not.

    Without a reason it is not known yet: the link keeps the packet, and `Watcher.came` tells when it lets it go. A queue that
    drops what waits in it is told of with the packet that came at that time.
    """

    node: str
    when: float
    reason: str


class Passage:
    """One packet offered to one direction of a link, or to the links of a counted group, and what became of it.

    `near` is a host or switch, `ends` are the graph nodes the link joins, so that links to a group's members share a passage;
    `fates` name hosts and switches, in the order of the topology. `number` is the packet's own, the same on all its links.
    """

    __slots__ = ("ends", "fates", "flight", "near", "now", "number", "spec")

    def __init__(self, hop: "_Tap", flight: Flight, now: float, fates: list[Fate]) -> None:
        self.near = hop.near
        self.ends = hop.ends
        self.spec = hop.spec
        self.flight = flight
        self.number = number_of(flight)
        self.now = now
        self.fates = fates


def number_of(flight: Flight) -> int:
    """The number of a packet in the order of sending, from 1."""
    return flight.order >> 24 & (1 << 56) - 1


class Watcher:
    """Base of who looks on. Calls come in order of `now`; what a passage says of the time after `now` is known in advance."""

    def begin(self, network: "WatchedNetwork") -> None:
        """The network is there; nothing has happened yet."""

    def offered(self, now: float) -> None:
        """A packet is about to be offered to a link; `passed` follows."""

    def sent(self, now: float, host: str, packet: Packet, number: int) -> None:
        """A machine sends; the passages over the host's links follow."""

    def passed(self, passage: Passage) -> None:
        """A packet was offered to a link."""

    def came(self, now: float, passage: Passage, fate: Fate) -> None:
        """A packet whose fate was not known comes to a node after all."""

    def decided(self, now: float, host: str, name: str, detail: object) -> None:
        """A machine says what it decided, through `Ports.trace`."""

    def told(self, now: float, host: str, event: Event) -> None:
        """An application hears of this, as soon as the input under way is over."""

    def end(self, now: float) -> None:
        """The run is over; what would happen later does not happen."""


class _WatchedHost(SimHost):
    """A host that tells what its machine says; see `WatchedNetwork.kind`."""

    __slots__ = ()

    @property
    def trace(self) -> Callable[[str, object], None]:  # type: ignore[override]
        """The machine's port for decisions."""
        return self._decide

    def _decide(self, name: str, detail: object) -> None:
        now = self.now
        for watcher in cast(WatchedNetwork, self.leaf.network).watchers:
            watcher.decided(now, self.name, name, detail)

    def arrive(self, flight: Flight, out: object, now: float) -> None:
        """A packet for this host alone is there."""
        cast(WatchedNetwork, self.leaf.network).came(flight, self.name, now)
        super().arrive(flight, out, now)

    def send(self, packet: Packet) -> bool:
        """Tell, then send."""
        network = cast(WatchedNetwork, self.leaf.network)
        now = network.env.now
        for watcher in network.watchers:
            watcher.sent(now, self.name, packet, network.next_number)
        return super().send(packet)

    def notify(self, event: Event) -> None:
        """Tell, then keep it for the application."""
        network = cast(WatchedNetwork, self.leaf.network)
        now = network.env.now
        for watcher in network.watchers:
            watcher.told(now, self.name, event)
        super().notify(event)


class _WatchedEndpoint(Endpoint):
    """A leaf that tells of packets nobody knew when they would come."""

    __slots__ = ()

    def arrive(self, flight: Flight, out: Sequence[int], now: float) -> None:
        """A packet is there for all members but those of `out`."""
        network = cast(WatchedNetwork, self.network)
        if network.kept and flight.route.target is None:
            left_out = frozenset(out)
            for member in range(self.count):
                if member not in left_out:
                    network.came(flight, network.topology.member_name(self.name, member), now)
        super().arrive(flight, out, now)


_KINDS: dict[type, type] = {}
"""The watched kinds of hosts and leaves, made when first asked for."""


class _Tap:
    """Stands where a link or bundle stood, lets it do its work, and tells what it did; all else is the link's."""

    def __init__(self, link: Any, near: str, ends: tuple[str, str], network: "WatchedNetwork") -> None:
        self.link = link
        self.near = near
        self.ends = ends
        self.spec = network.topology.link(*ends)
        self._network = network

    def __getattr__(self, name: str) -> Any:
        return getattr(self.link, name)

    def carry(self, flight: Flight, now: float, landings: Arrivals) -> None:
        """Take a packet at the near end."""
        network, mine = self._network, cast(Arrivals, {})
        for watcher in network.watchers:
            watcher.offered(now)
        before, members = network.missed(self.ends), self._members(flight)
        missed = [self.link.lost_by(member) for member in members]
        self.link.carry(flight, now, mine)
        for when, places in mine.items():
            landings.setdefault(when, []).extend(places)
        reason = " or ".join(REASONS[name] for name, count in network.missed(self.ends).items() if count > before[name])
        came = self._arrivals(members, mine)
        fates = []
        for member, known in zip(members, missed, strict=True):
            name, why = self._name(member), reason if self.link.lost_by(member) > known else ""
            fates += [Fate(name, when, "") for when in came[member]] or [Fate(name, inf, why)]
        passage = Passage(self, flight, now, fates)
        network.keep(passage)
        for watcher in network.watchers:
            watcher.passed(passage)

    def _members(self, flight: Flight) -> Sequence[int]:
        """Whom the packet is for, by the places in the group the link leads to; 0 where it leads to a node alone."""
        head = self.link.head
        if not isinstance(head, Endpoint) or not head.counted:
            return (0,)
        if flight.route.target is not None:
            return (flight.route.target.member,)
        skip = flight.host.member if flight.route.home is head else -1
        return [member for member in range(head.count) if member != skip]

    def _name(self, member: int) -> str:
        head, far = self.link.head, self.ends[1]
        return head.network.topology.member_name(far, member) if isinstance(head, Endpoint) else far

    def _arrivals(self, members: Sequence[int], mine: Arrivals) -> dict[int, list[float]]:
        """When copies come to each member, as far as the link says."""
        came: dict[int, list[float]] = {member: [] for member in members}
        grouped = isinstance(self.link.head, Endpoint) and self.link.head.counted
        for when, places in sorted(mine.items()):
            for place, out in places:
                left_out = frozenset(out)
                if not grouped or isinstance(place, Endpoint):
                    here: Sequence[int] = members
                else:
                    # Other places tell when the packet is there.
                    here = (place.member,) if isinstance(place, SimHost) else ()
                for member in here:
                    if member not in left_out:
                        came[member].append(when)
        return came


class WatchedNetwork(Network):
    """A `Network` with watchers: the same machines, packets and fingerprint. Whoever runs it calls `end`."""

    def __init__(self, *args: Any, watchers: Sequence[Watcher], **options: Any) -> None:
        self.watchers = watchers
        self.kept: dict[tuple[int, str], Passage] = {}
        """Passages that were not over when the packet was offered, by its number and the node it may come to."""
        super().__init__(*args, **options)
        for watcher in watchers:
            watcher.begin(self)

    def _build_link(self, near: str, far: str) -> None:
        super()._build_link(near, far)
        links: Any = self._switches[near].links if near in self._switches else self._leaves[near].uplinks
        if far in links:
            links[far] = _Tap(links[far], near, (near, far), self)

    def make_member_uplink(self, leaf: Endpoint, member: int) -> Hop:
        """The link from one member of a counted group to its switch."""
        link = super().make_member_uplink(leaf, member)
        (far,) = self.topology.graph.successors(leaf.name)
        return cast(Hop, _Tap(link, self.topology.member_name(leaf.name, member), (leaf.name, far), self))

    def kind(self, plain: type[T]) -> type[T]:
        """The watched kind of a host or leaf."""
        if plain not in _KINDS:
            mixin = _WatchedHost if issubclass(plain, SimHost) else _WatchedEndpoint
            bases = (mixin,) if issubclass(mixin, plain) else (mixin, plain)
            _KINDS[plain] = type(f"Watched{plain.__name__}", bases, {"__slots__": ()})
        return cast("type[T]", _KINDS[plain])

    def missed(self, ends: tuple[str, str]) -> dict[str, int]:
        """How many packets one direction of a link has not carried to its end so far, by the counts of REASONS it has."""
        counts = self._counts(*ends)
        return {name: getattr(counts, name) for name in _MISSED}

    def keep(self, passage: Passage) -> None:
        """Remember to whom a packet may yet come: a queue may also drop another packet than the one that came."""
        for fate in passage.fates:
            if fate.when == inf:
                self.kept[passage.number, fate.node] = passage
        while len(self.kept) > _MOST_KEPT:
            del self.kept[next(iter(self.kept))]

    def land(self, flight: Flight, when: float, place: Any) -> None:
        """A link lets a packet go that it had kept."""
        self.came(flight, getattr(place, "name", ""), when)
        super().land(flight, when, place)

    def came(self, flight: Flight, node: str, when: float) -> None:
        """A packet comes to a node at `when`: tell if that was not known before."""
        passage = self.kept.pop((number_of(flight), node), None) if self.kept else None
        if passage is not None:
            for watcher in self.watchers:
                watcher.came(self.env.now, passage, Fate(node, when, ""))

    def end(self) -> None:
        """Nobody watches any more, though the network may go on."""
        for watcher in self.watchers:
            watcher.end(self.env.now)
        self.watchers = ()

    @property
    def next_number(self) -> int:
        """The number of the next packet."""
        return self._serial + 1
