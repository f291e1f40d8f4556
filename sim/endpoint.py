"""The network interface of hosts: a graph node that is one host, or a counted group of equal hosts."""

from array import array
from collections.abc import Callable, Container, Sequence
from typing import ClassVar

from mypy_extensions import mypyc_attr

from protocols.errors import UsageError
from protocols.machine import Address, ClassedPacket, Group, Packet
from protocols.rng import key_of
from sim.acceleration import Passing
from sim.addresses import HostPort
from sim.fabric import Fabric
from sim.flight import ClassedFlight, Flight, Hop, Postponed, Route, through_wire
from sim.group_members import GroupMembers
from sim.host import SimHost
from sim.noise import Noise
from sim.processor import HostProcessor
from topologies.draws import member_keys

__all__ = ["Endpoint"]


@mypyc_attr(allow_interpreted_subclasses=True)
class Endpoint:
    """A graph node of kind host. `base` is the place of its first member in `Topology.hosts`, `count` the number of members.

    Its hosts are of `host_class`, made when first needed.
    """

    __slots__ = (
        "_latest",
        "base",
        "common_first",
        "count",
        "counted",
        "fabric",
        "groups",
        "host_class",
        "make_uplink",
        "name",
        "processors",
        "route",
        "routes",
        "stream_keys",
        "ttl",
        "unconcerned",
        "uplinks",
    )
    has_processors: ClassVar[bool] = False
    """Whether packets take time of the processor of a member, so that each of them has an effect."""

    def __init__(
        self, fabric: Fabric, name: str, base: int, count: int, counted: bool, host_class: Callable[..., SimHost]
    ) -> None:
        self.fabric = fabric
        self.name = name
        self.base = base
        self.count = count
        self.counted = counted
        self.host_class = host_class
        key = key_of(fabric.seed, "node", name)
        self.stream_keys: Sequence[int] = array("Q", member_keys(key, count).tobytes()) if counted else (key,)
        """The keys of the members' random numbers, `topologies.keys.stream_key`."""
        self.groups: dict[Address, GroupMembers] = {}
        self.processors: dict[int, HostProcessor] | None = None
        """The processors of hosts whose machines stated work, by place; None before the first."""
        self.unconcerned: dict[Address, set[int]] = {}
        """By group, the members that take nothing but feedback (`Accelerator.takes_feedback_only`)."""
        # The address and members, and below the route, of the packet before: hashing an address costs more than comparing.
        self._latest: tuple[Address, GroupMembers | None] = (None, None)
        self.route: Route | None = None
        self.routes: dict[Address, Route] = {}
        self.ttl: int | None = None
        """Of what its hosts send to groups; None: no limit."""
        self.uplinks: dict[str | int, Hop] = {}
        """By neighbour; of a counted group by member, made when the member first sends."""
        self.common_first: Sequence[Hop] = ()
        """The first links of whatever the members of a counted group send, where their links are one object."""
        self.make_uplink: Callable[[int], Hop] | None = None
        """Makes the uplink of a member; only of a counted group."""

    def host(self, member: int) -> SimHost:
        """Return the host of a member."""
        place = self.base + member
        host = self.fabric.hosts[place]
        if host is None:
            host = self.fabric.hosts[place] = self.host_class(self, place)
        assert isinstance(host, SimHost)
        return host

    # Groups

    def join(self, member: int, group: Group) -> None:
        """Join a member to a group, after the latency of the network."""
        self.fabric.membership.join(self, member, group)

    def leave(self, member: int, group: Group) -> None:
        """Take a member out of a group."""
        self.fabric.membership.leave(self, member, group)

    def groups_of(self, member: int) -> list[Group]:
        """Return the groups a host listens to."""
        found = ((group, members) for group, members in self.groups.items() if isinstance(group, Group))
        return [group for group, members in found if members.listens(member)]

    def begin(self, member: int, group: Group) -> None:
        """Make a member a listener of a group, from now on."""
        members = self.groups.get(group)
        if members is None:
            members = self.groups[group] = GroupMembers(self.count)
            self._latest = group, members
        if not members.present:
            self.fabric.routes.forget(group)
        host = self.host(member)
        self._note_change(host, group)
        members.put(member, host.machine)
        if not self.has_processors and self.fabric.accelerator.takes_feedback_only(host.machine):
            self.unconcerned.setdefault(group, set()).add(member)

    def end(self, member: int, group: Group) -> None:
        """Make a member no listener of a group any more."""
        members = self.groups.get(group)
        if members is not None:
            self._note_change(self.host(member), group)
            members.put(member, None)
            if not members.present:
                self.fabric.routes.forget(group)

    def _note_change(self, host: SimHost, group: Group) -> None:
        """Bring the accelerator up to date before a host joins or leaves a group."""
        known = self.unconcerned.get(group)
        if known is not None and host.member in known:
            self.fabric.accelerator.listeners_change(host)
            known.discard(host.member)

    def unconcerned_by(self, flight: Flight) -> Container[int]:
        """Return the members on which a packet has no effect, given that there are `unconcerned` ones."""
        return () if flight.message.is_feedback else self.unconcerned.get(flight.route.to, ())

    def pass_unnoticed(self, passing: list[Passing]) -> None:
        """Add packets on their way to `unconcerned` members to those whose deliveries are counted later."""
        accelerator = self.fabric.accelerator
        is_first = not accelerator.unnoticed
        accelerator.unnoticed += passing
        if is_first:
            accelerator.unnoticed_begin(self.fabric)

    def listens(self, group: Address, member: int) -> bool:
        """Return whether a member listens to the group."""
        members = self._members_of(group)
        return members is not None and members.listens(member)

    def _members_of(self, group: Address) -> GroupMembers | None:
        """Return the members that ever listened to a group; None if there is none."""
        latest, members = self._latest
        if latest is not group:
            members = self.groups.get(group)
            self._latest = group, members
        return members

    # Packets

    def member_uplink(self, member: int) -> Hop:
        """Return the link of one member of a counted group to its switch."""
        link = self.common_first[0] if self.common_first else self.uplinks.get(member)
        if link is None:
            assert self.make_uplink is not None, f"{self.name} is no counted group"
            link = self.uplinks[member] = self.make_uplink(member)
        return link

    def first_links(self, host: SimHost, route: Route) -> Sequence[Hop]:
        """Return the first links of what a host sends on a route."""
        if not self.counted or route.target is host:
            return route.first
        return self.common_first or (self.member_uplink(host.member),)

    def transmit(self, host: SimHost, packet: Packet, port: int) -> None:
        """Send a packet of a host's port onto its first links, and to its other ports that it is for.

        UsageError for a packet to the port itself or to an unknown host.
        """
        fabric = self.fabric
        if fabric.observers:
            fabric.accelerator.catch_up()
        message, size, to = packet.message, packet.size, packet.to
        identity, now = message.identity, fabric.kernel.env._now
        packets, kind = fabric.packets, message.kind
        if kind in packets:
            # As `Traffic.count`, without a call.
            packets[kind] += 1
            fabric.octets[kind] += size
        else:
            fabric.traffic.count(message, size)
        if identity is None:
            fabric.fingerprinter.control(now, host.place, kind, size)
        for observer in fabric.observers:
            observer.sent(now, host, message, size)
        place = host.place
        if fabric.codec is not None and type(message) is not Noise:
            message = through_wire(fabric.ports.codec(place, port, fabric.codec), message, size)
        route = self.route
        if route is None or route.to is not to:
            route = self.route = self.route_to(to)
        source = host.name if not port else HostPort(host.name, port)
        fabric.serial = serial = fabric.serial + 1
        order = (place + 1) << 80 | serial << 24
        if isinstance(packet, ClassedPacket):
            flight: Flight = ClassedFlight(message, identity, size, place, source, route, order, packet.dscp)
        else:
            flight = Flight(message, identity, size, place, source, route, order)
        flight.note_sent(now, fabric.kernel.key)
        if route.target is host or (fabric.ports.members and fabric.ports.has_neighbours(place, port, route.to)):
            self._loop_back(host, flight, now)
            if route.target is host:
                return
        first = self.common_first or (self.member_uplink(place - self.base),) if self.counted else route.first
        fabric.forwarding.forward(flight, first, now)

    def _loop_back(self, host: SimHost, flight: Flight, now: float) -> None:
        """Deliver a packet to other ports of the host that sent it, without a link, after the present input."""
        if flight.source == flight.route.to:
            raise UsageError(f"{flight.source} sends to itself")
        self.fabric.forwarding.forward(flight, (Postponed(host, now),), now)

    def route_to(self, to: Address) -> Route:
        """Return the route to an address; UsageError when there is no such host."""
        route = self.routes.get(to)
        if route is None:
            route = self.routes[to] = self.fabric.routes.find(self, to)
        return route

    def arrive(self, flight: Flight, lost_by: Sequence[int], now: float) -> None:
        """Deliver a packet to all members but those of `lost_by`, which ascend."""
        route = flight.route
        if route.target is not None:
            route.target.arrive(flight, lost_by, now)
            return
        latest, members = self._latest
        if latest is not route.to:
            members = self._members_of(route.to)
        if members is None:
            return
        machines = members.machines
        if machines is None:
            machines = members.pack()
        if lost_by and members.members is not None:
            lost_by = members.positions(lost_by)
        fabric = self.fabric
        fabric.delivered += len(machines) - len(lost_by)
        fabric.accelerator.deliver(members, flight, lost_by, now)
