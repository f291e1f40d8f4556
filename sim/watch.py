"""Watching a run: a network that reports every packet, decision and event to watchers, and is otherwise the same.

Nothing here exists in a run without watchers: hosts and links that report are other objects, put in place while the network is
built. A watched network is slower and leaves the same fingerprint.
"""

from collections.abc import Callable, Sequence
from dataclasses import fields
from math import inf
from types import new_class
from typing import Any, ClassVar, NamedTuple, TypeVar, cast

from protocols.connection import Connection
from protocols.events import Event
from protocols.machine import Packet
from sim.endpoint import Endpoint
from sim.flight import Arrivals, Carrier, Flight, Forwarding, Hop, Place, Postponed
from sim.host import SimHost
from sim.link import Part
from sim.network import Network
from sim.planned_arrival import PlannedArrival
from sim.stats import LinkCounts

__all__ = ["REASONS", "Fate", "Passage", "WatchedNetwork", "Watcher", "number_of"]

T = TypeVar("T")
REASONS = {"lost": "lost by the link", "dropped": "dropped by the queue", "corrupt": "damaged on the link"}
"""Why a packet did not arrive at the other end, by the name of the count of `LinkCounts`.

Where members of a group did not receive it for different reasons, each has all of these, joined by "or".
"""
_MOST_KEPT = 100_000
_MISSED = [field.name for field in fields(LinkCounts) if field.name in REASONS]
_REASONS = [REASONS.get(field.name, "") for field in fields(LinkCounts)[2:]]
"""Reasons in the order of the counts that `Hop.counts` returns; empty for a count of packets that arrived."""


class Fate(NamedTuple):
    """The outcome of one packet on one link: `when` (seconds) it arrives at `node`, or (`when` inf) the reason why it does not.

    An empty reason with `when` inf means that the outcome is not known yet; `Watcher.arrived` is called when it is. A packet
    dropped from the middle of a queue is reported with the packet offered at that time.
    """

    node: str
    when: float
    reason: str


class Passage:
    """One packet offered to one direction of a link, or to the links of a counted group, with its outcomes.

    `near` is a host or switch; `ends` are the graph nodes of the link, so links to a group's members share a passage. `fates`
    name hosts and switches, in the order of the topology. `number` is the packet's, the same on all links.
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
    """Return the number of a packet in the order of sending, from 1."""
    return flight.order >> 24 & (1 << 56) - 1


class Watcher:
    """Base of watchers. Calls come in order of `now` (seconds); a passage includes what will happen after `now`."""

    watches_rest: ClassVar[bool] = False
    """Whether calls go on after `end`, while the network comes to rest."""

    def begin(self, network: "WatchedNetwork") -> None:
        """Note that the network is built; nothing has happened yet."""

    def offered(self, now: float) -> None:
        """Note that a packet is about to be offered to a link; `passed` follows."""

    def sent(self, now: float, host: str, packet: Packet, number: int) -> None:
        """Note that a machine sends a packet; its passages over the host's links follow."""

    def passed(self, passage: Passage) -> None:
        """Note that a packet was offered to a link."""

    def arrived(self, now: float, passage: Passage, fate: Fate) -> None:
        """Note the arrival time of a packet that a link kept, which is known now."""

    def decided(self, now: float, host: str, name: str, detail: object) -> None:
        """Note that a machine reports a decision through `Ports.trace`."""

    def notified(self, now: float, host: str, event: Event) -> None:
        """Note that a machine gave an event to its application, which receives it when the present input is over."""

    def end(self, now: float) -> None:
        """Note that the run is over; arrivals after `now` do not happen."""


class _WatchedHost(SimHost):
    """A host that reports what its machine does; subclasses belong to one `watched` network (`WatchedNetwork.kind`)."""

    __slots__ = ()
    watched: "ClassVar[WatchedNetwork]"

    @property
    def trace(self) -> Callable[[str, object], None]:  # type: ignore[override]
        """The machine's port for decisions."""
        return self._decide

    def _decide(self, name: str, detail: object) -> None:
        now = self.now
        for watcher in self.watched.watchers:
            watcher.decided(now, self.name, name, detail)

    def arrive(self, flight: Flight, lost_by: object, now: float) -> None:
        """Report a packet, then take it."""
        self.watched.arrived(flight, self.name, now)
        super().arrive(flight, lost_by, now)

    def send(self, packet: Packet, port: int = 0) -> bool:
        """Report a packet, then send it; a message on a connection is seen by its segments."""
        if isinstance(packet.to, Connection):
            return super().send(packet, port)
        now, number = self.now, self.watched.fabric.serial + 1
        for watcher in self.watched.watchers:
            watcher.sent(now, self.name, packet, number)
        return super().send(packet, port)

    def segment_sent(self, packet: Packet) -> None:
        """Report a segment."""
        now, number = self.now, self.watched.fabric.serial + 1
        for watcher in self.watched.watchers:
            watcher.sent(now, self.name, packet, number)

    def notify(self, event: Event) -> None:
        """Report an event, then keep it for the application."""
        now = self.now
        for watcher in self.watched.watchers:
            watcher.notified(now, self.name, event)
        super().notify(event)


class _WatchedEndpoint(Endpoint):
    """An endpoint that reports packets whose arrival time was not known when they were offered to the last link."""

    __slots__ = ()
    watched: "ClassVar[WatchedNetwork]"

    def arrive(self, flight: Flight, lost_by: Sequence[int], now: float) -> None:
        """Report a packet, then deliver it."""
        network = self.watched
        if network.kept and flight.route.target is None:
            left_out = frozenset(lost_by)
            for member in range(self.count):
                if member not in left_out:
                    network.arrived(flight, network.topology.member_name(self.name, member), now)
        super().arrive(flight, lost_by, now)


class _WatchedForwarding(Forwarding):
    """Forwards by another strategy, and reports arrivals of packets that a link kept."""

    def __init__(self, inner: Forwarding, network: "WatchedNetwork") -> None:
        self._inner = inner
        self._network = network

    def forward(self, flight: Flight, links: Sequence[Carrier], now: float) -> None:
        """See `Forwarding`."""
        for link in links:
            if isinstance(link, Postponed):
                self._network.arrived(flight, getattr(link.place, "name", ""), link.when)
        self._inner.forward(flight, links, now)


class _Tap:
    """A link that reports what another one, `link`, does."""

    def __init__(self, link: Hop, near: str, ends: tuple[str, str], network: "WatchedNetwork") -> None:
        self.link = link
        self.near = near
        self.ends = ends
        self.spec = network.topology.link(*ends)
        self._network = network

    @property
    def head(self) -> Place:
        """See `sim.flight.Hop`."""
        return self.link.head

    def queues(self) -> Sequence[Any]:
        """See `sim.flight.Hop`."""
        return self.link.queues()

    def left_at(self, place: int) -> float:
        """See `sim.flight.Hop`."""
        return self.link.left_at(place)

    def losses_of(self, member: int) -> int:
        """See `sim.flight.Hop`."""
        return self.link.losses_of(member)

    def counts(self) -> tuple[int, ...]:
        """See `sim.flight.Hop`."""
        return self.link.counts()

    def carry(self, flight: Flight, now: float, arrivals: Arrivals) -> None:
        """Take a packet at the near end."""
        network, own = self._network, Arrivals()
        for watcher in network.watchers:
            watcher.offered(now)
        before, members = self.link.counts(), self._members(flight)
        missed = [self.link.losses_of(member) for member in members]
        self.link.carry(flight, now, own)
        for when, places in own.items():
            arrivals.setdefault(when, []).extend(places)
        counts = zip(_REASONS, before, self.link.counts(), strict=True)
        reason = " or ".join([reason for reason, known, count in counts if reason and count > known])
        times = self._times(members, own)
        fates = []
        for member, known in zip(members, missed, strict=True):
            name, why = self._name(member), reason if self.link.losses_of(member) > known else ""
            fates += [Fate(name, when, "") for when in times[member]] or [Fate(name, inf, why)]
        passage = Passage(self, flight, now, fates)
        network.keep(passage)
        for watcher in network.watchers:
            watcher.passed(passage)

    def _group(self) -> Endpoint | None:
        """Return the counted group the link leads to, if it does."""
        head = self.link.head
        return head if isinstance(head, Endpoint) and head.counted else None

    def _members(self, flight: Flight) -> Sequence[int]:
        """Return the members of the group the packet is for; 0 where the link leads to a node alone."""
        group = self._group()
        if group is None:
            return (0,)
        if flight.route.target is not None:
            return (flight.route.member,)
        skip = flight.place - group.base if flight.route.home is group else None
        return [member for member in range(group.count) if member != skip]

    def _name(self, member: int) -> str:
        far = self.ends[1]
        return far if self._group() is None else self._network.topology.member_name(far, member)

    def _times(self, members: Sequence[int], own: Arrivals) -> dict[int, list[float]]:
        """Return when copies arrive at each member, as far as the link knows."""
        times: dict[int, list[float]] = {member: [] for member in members}
        grouped = self._group() is not None
        for when, places in sorted(own.items()):
            for place, lost_by in places:
                left_out = frozenset(lost_by)
                if isinstance(place, PlannedArrival):
                    # It may be planned for another time, and is reported when it arrives.
                    here: Sequence[int] = ()
                elif not grouped or isinstance(place, Endpoint):
                    here = members
                elif isinstance(place, Part):
                    here = place.reach()
                else:
                    # Other places report the packet when it arrives.
                    here = (place.member,) if isinstance(place, SimHost) else ()
                for member in here:
                    if member not in left_out:
                        times[member].append(when)
        return times


class WatchedNetwork(Network):
    """A `Network` with watchers: the same machines, packets and fingerprint. Its user calls `end` after the run."""

    shares_uplinks = False

    def __init__(self, *args: Any, watchers: Sequence[Watcher], **options: Any) -> None:
        self.watchers = watchers
        self.kept: dict[tuple[int, str], Passage] = {}
        """Passages whose outcome was not known when the packet was offered, by its number and the node it may arrive at."""
        self._kinds: dict[type, type] = {}
        super().__init__(*args, **options)
        self.fabric.tcp.is_watched = True
        self.fabric.forwarding = _WatchedForwarding(self.fabric.forwarding, self)
        for watcher in watchers:
            watcher.begin(self)

    def make_link(self, near: str, far: str) -> Hop:
        """Make one direction of a link that reports."""
        return _Tap(super().make_link(near, far), near, (near, far), self)

    def make_member_uplink(self, endpoint: Endpoint, member: int) -> Hop:
        """Make the link from one member of a counted group to its switch."""
        link = super().make_member_uplink(endpoint, member)
        (far,) = self.topology.graph.successors(endpoint.name)
        return _Tap(link, self.topology.member_name(endpoint.name, member), (endpoint.name, far), self)

    def kind(self, plain: type[T]) -> type[T]:
        """Return the watched subclass of a class of hosts or endpoints."""
        if plain not in self._kinds:
            mixin: type = _WatchedHost if issubclass(plain, SimHost) else _WatchedEndpoint
            bases = (mixin,) if issubclass(mixin, plain) else (mixin, plain)
            self._kinds[plain] = new_class(f"Watched{plain.__name__}", bases, exec_body=self._fill)
        return cast("type[T]", self._kinds[plain])

    def _fill(self, namespace: dict[str, Any]) -> None:
        namespace |= {"__slots__": (), "watched": self}

    def missed(self, ends: tuple[str, str]) -> dict[str, int]:
        """Return how many packets one direction of a link has not carried to its end so far, by the names of REASONS."""
        counts = self.link_counts(*ends)
        return {name: getattr(counts, name) for name in _MISSED}

    def keep(self, passage: Passage) -> None:
        """Remember the nodes a packet may still arrive at: a queue may also drop another packet than the one offered."""
        for fate in passage.fates:
            if fate.when == inf:
                self.kept[passage.number, fate.node] = passage
        while len(self.kept) > _MOST_KEPT:
            del self.kept[next(iter(self.kept))]

    def arrived(self, flight: Flight, node: str, when: float) -> None:
        """Report that a packet arrives at a node at `when` (seconds), if that was not known before."""
        passage = self.kept.pop((number_of(flight), node), None) if self.kept else None
        if passage is not None:
            for watcher in self.watchers:
                watcher.arrived(self.env.now, passage, Fate(node, when, ""))

    def end(self) -> None:
        """Report the end of the run; the network may go on with those that watch it come to rest."""
        for watcher in self.watchers:
            watcher.end(self.env.now)
        self.watchers = [watcher for watcher in self.watchers if watcher.watches_rest]
