"""Looking at a run: a network that tells watchers of every packet, decision and event, and is otherwise the same.

Nothing here exists in a run that nobody watches: hosts and links that tell are other objects, put in place while the network
is built. A watched network goes a slower way to the same fingerprint.
"""

from collections.abc import Callable, Sequence
from math import inf
from typing import Any, NamedTuple, cast

from protocols.events import Event
from protocols.machine import Packet
from sim.host import SimHost
from sim.leaf import Leaf
from sim.link import Bundle, Landings, Link
from sim.network import Flight, Network
from topologies.spec import LinkSpec

__all__ = ["EITHER", "LOSS", "QUEUE", "Fate", "Passage", "WatchedNetwork", "Watcher", "number_of"]

LOSS, QUEUE, EITHER = "lost by the link", "dropped by a full queue", "lost by the link or dropped by its queue"
"""Why a packet did not come to the other end. EITHER: members of a group may have missed it for different reasons."""


class Fate(NamedTuple):
    """What became of one packet on one link: when it comes to `node`, or (`when` inf) why it does not."""

    node: str
    when: float
    reason: str


class Passage:
    """One packet offered to one direction of a link, or to the links of a counted group, and what became of it.

    `near` is a host or switch; `far` the graph node the link leads to, so that links of a group's members share a passage;
    `fates` name hosts and switches, in the order of the topology. `number` is the packet's own, the same on all its links.
    """

    __slots__ = ("far", "fates", "flight", "near", "now", "number", "spec")

    def __init__(self, hop: "_Tap", flight: Flight, now: float, fates: list[Fate]) -> None:
        self.near = hop.near
        self.far = hop.far
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

    def sent(self, now: float, host: str, packet: Packet, number: int) -> None:
        """A machine sends; the passages over the host's links follow."""

    def passed(self, passage: Passage) -> None:
        """A packet was offered to a link."""

    def decided(self, now: float, host: str, name: str, detail: object) -> None:
        """A machine says what it decided, through `Ports.trace`."""

    def told(self, now: float, host: str, event: Event) -> None:
        """An application hears of this, as soon as the input under way is over."""

    def end(self, now: float) -> None:
        """The run is over; what would happen later does not happen."""


class _WatchedHost(SimHost):
    """A host that tells what its machine says; see `_watched`."""

    __slots__ = ()

    @property
    def trace(self) -> Callable[[str, object], None]:  # type: ignore[override]
        """The machine's port for decisions."""
        return self._decide

    def _decide(self, name: str, detail: object) -> None:
        now = self.now
        for watcher in cast(WatchedNetwork, self.leaf.network).watchers:
            watcher.decided(now, self.name, name, detail)

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


_KINDS: dict[type[SimHost], type[SimHost]] = {}


def _watched(kind: type[SimHost]) -> type[SimHost]:
    """This kind of host, watched: of the same layout, so that a host made in the usual way can become one."""
    if kind not in _KINDS:
        bases = (_WatchedHost,) if kind is SimHost else (_WatchedHost, kind)
        _KINDS[kind] = type(f"Watched{kind.__name__}", bases, {"__slots__": ()})
    return _KINDS[kind]


class _Tap:
    """Stands where a link or bundle stood, lets it do its work, and tells what it did; all else is the link's."""

    def __init__(self, link: Link | Bundle, near: str, far: str, spec: LinkSpec, watchers: Sequence[Watcher]) -> None:
        self.link = link
        self.near = near
        self.far = far
        self.spec = spec
        self._watchers = watchers

    def __getattr__(self, name: str) -> Any:
        return getattr(self.link, name)

    def carry(self, flight: Flight, now: float, landings: Landings) -> None:
        """Take a packet at the near end."""
        link, mine = self.link, cast(Landings, {})
        lost, dropped = link.lost, link.dropped
        link.carry(flight, now, mine)
        for when, places in mine.items():
            landings.setdefault(when, []).extend(places)
        reason = LOSS if link.dropped == dropped else QUEUE if link.lost == lost else EITHER
        passage = Passage(self, flight, now, self._fates(flight, mine, reason))
        for watcher in self._watchers:
            watcher.passed(passage)

    def _fates(self, flight: Flight, mine: Landings, reason: str) -> list[Fate]:
        head = self.link.head
        if not isinstance(head, Leaf) or not head.counted:
            return [Fate(self.far, when, "") for when in sorted(mine)] or [Fate(self.far, inf, reason)]
        target, home = flight.route.target, flight.route.home
        wanted = range(head.count) if target is None else range(target.member, target.member + 1)
        skip = flight.host.member if target is None and home is head else -1
        came: dict[int, list[float]] = {member: [] for member in wanted if member != skip}
        for when, places in sorted(mine.items()):
            for place, out in places:
                left_out = set(out)
                here = came if isinstance(place, Leaf) else (place.member,)
                for member in here:
                    if member not in left_out:
                        came[member].append(when)
        name = head.network.topology.member_name
        return [
            Fate(name(head.name, member), when, reason if when == inf else "")
            for member, times in came.items()
            for when in times or (inf,)
        ]


class WatchedNetwork(Network):
    """A `Network` with watchers: the same machines, packets and fingerprint. Whoever runs it calls their `end`."""

    def __init__(self, *args: Any, watchers: Sequence[Watcher], **options: Any) -> None:
        self.watchers = watchers
        super().__init__(*args, **options)

    def _build_link(self, near: str, far: str) -> None:
        super()._build_link(near, far)
        links = cast("dict[str, Link]", self._switches[near].links if near in self._switches else self._leaves[near].uplinks)
        if far in links:
            links[far] = self._tapped(links[far], near, far, self.topology.link(near, far))

    def make_member_uplink(self, leaf: Leaf, member: int) -> Link:
        """The link from one member of a counted group to its switch."""
        link = super().make_member_uplink(leaf, member)
        (far,) = self.topology.graph.successors(leaf.name)
        return self._tapped(link, self.topology.member_name(leaf.name, member), far, self.topology.link(leaf.name, far))

    def _tapped(self, link: Link, near: str, far: str, spec: LinkSpec) -> Link:
        return cast(Link, _Tap(link, near, far, spec, self.watchers))

    def host_at(self, place: int, leaf: Leaf) -> SimHost:
        """The host at a place in `Topology.hosts`, made when first asked for."""
        host = self._hosts[place]
        if host is None:
            host = super().host_at(place, leaf)
            host.__class__ = _watched(type(host))
        return host

    @property
    def next_number(self) -> int:
        """The number of the next packet."""
        return self._serial + 1
