"""The places packets get to: leaves (a host, or a counted group of equal hosts) and switches."""

from bisect import bisect_left
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mypy_extensions import mypyc_attr

from protocols.fast.contract import FastMessage, fan_out
from protocols.fast.lockstep import LockstepGroup, has_fast_machines
from protocols.machine import Address, Group, Machine
from protocols.rng import key_of
from sim.host import SimHost
from sim.link import Hop

if TYPE_CHECKING:
    from sim.flight import Flight, Route
    from sim.network import Network

LOCKSTEP_MINIMUM = 4
"""So many machines are worth being moved together."""

__all__ = ["GroupMembers", "Endpoint", "Switch"]


class GroupMembers:
    """The machines of one leaf that listen to one group.

    `machines` is indexed by member while all members listen, as they usually do; else it is packed and `members` names them.
    """

    __slots__ = ("_slots", "has_fast", "lockstep", "machines", "members", "present")

    def __init__(self, count: int) -> None:
        self._slots: list[Machine | None] = [None] * count
        self.present = 0
        self.machines: list[Machine] | None = None
        self.members: list[int] | None = None
        self.lockstep: LockstepGroup | None = None
        self.has_fast = False

    def put(self, member: int, machine: Machine | None) -> None:
        """The member's machine, or None when it does not listen any more.

        Safe while a message is being fanned out: a machine changes only its own entry, and packed lists are made anew.
        """
        if self.lockstep is not None:
            self.lockstep.dissolve()
            self.lockstep = None
        self.present += (machine is not None) - (self._slots[member] is not None)
        self._slots[member] = machine
        self.machines = self.members = None

    def listens(self, member: int) -> bool:
        """Does the member listen?"""
        return self._slots[member] is not None

    def settle(self) -> list[Machine]:
        """Make `machines` and `members` after a change."""
        if self.present == len(self._slots):
            self.machines, self.members = self._slots, None  # type: ignore[assignment]
        else:
            self.members = [member for member, machine in enumerate(self._slots) if machine is not None]
            self.machines = [machine for machine in self._slots if machine is not None]
        assert self.machines is not None
        self.has_fast = len(self.machines) >= LOCKSTEP_MINIMUM and has_fast_machines(self.machines)
        return self.machines

    def positions(self, out: Sequence[int]) -> list[int]:
        """Where the members `out` stand in the packed `machines`; those that do not listen are left away."""
        members = self.members
        assert members is not None
        found = ((bisect_left(members, member), member) for member in out)
        return [at for at, member in found if at < len(members) and members[at] == member]


@mypyc_attr(allow_interpreted_subclasses=True)
class Endpoint:
    """A graph node of kind host."""

    __slots__ = (
        "_latest",
        "audiences",
        "base",
        "count",
        "counted",
        "name",
        "network",
        "route",
        "routes",
        "stream_key",
        "ttl",
        "uplinks",
    )

    def __init__(self, network: "Network", name: str, base: int, count: int, counted: bool) -> None:
        self.network = network
        self.name = name
        self.base = base
        """Place in `Topology.hosts` of the first member."""
        self.count = count
        self.counted = counted
        self.stream_key = key_of(network.seed, "node", name)
        """See `topologies.keys.stream_key`, which extends it for a member of a group."""
        self.audiences: dict[Address, GroupMembers] = {}
        # The address and audience, and below the route, of the packet before: hashing an address costs more than comparing.
        self._latest: tuple[Address, GroupMembers | None] = (None, None)
        self.route: Route | None = None
        self.routes: dict[Address, Route] = {}
        self.ttl: int | None = None
        """Of what its hosts send to groups; None: as far as it goes."""
        self.uplinks: dict[str | int, Hop] = {}
        """By neighbour; of a counted group by member, made when the member first sends."""

    def host(self, member: int) -> SimHost:
        """The host of a member."""
        return self.network.host_at(self.base + member, self)

    def make_host(self, place: int) -> SimHost:
        """The host at a place in `Topology.hosts`, anew."""
        return self.network.kind(SimHost)(self, place)

    def join(self, host: SimHost, group: Group) -> None:
        """The host wants to listen."""
        self.network.membership.join(self, host, group)

    def leave(self, host: SimHost, group: Group) -> None:
        """The host does not want to listen any more."""
        self.network.membership.leave(self, host, group)

    def groups_of(self, host: SimHost) -> list[Group]:
        """The groups a host listens to."""
        found = ((group, audience) for group, audience in self.audiences.items() if isinstance(group, Group))
        return [group for group, audience in found if audience.listens(host.member)]

    def begin(self, host: SimHost, group: Group) -> None:
        """The host listens from now on."""
        audience = self.audiences.get(group)
        if audience is None:
            audience = self.audiences[group] = GroupMembers(self.count)
            self._latest = group, audience
        if not audience.present:
            self.network.routes.forget(group)
        audience.put(host.member, host.machine)

    def end(self, host: SimHost, group: Group) -> None:
        """The host listens no more."""
        audience = self.audiences.get(group)
        if audience is not None:
            audience.put(host.member, None)
            if not audience.present:
                self.network.routes.forget(group)

    def listens(self, group: Address, place: int) -> bool:
        """Does the host at this place listen to the group?"""
        audience = self.audiences.get(group)
        return audience is not None and audience.listens(place - self.base)

    def member_uplink(self, member: int) -> Hop:
        """The link of one member of a counted group to its switch."""
        link = self.uplinks.get(member)
        if link is None:
            link = self.uplinks[member] = self.network.make_member_uplink(self, member)
        return link

    def arrive(self, flight: "Flight", out: Sequence[int], now: float) -> None:
        """A packet is there for all members but those of `out`, which ascend."""
        route = flight.route
        if route.target is not None:
            route.target.arrive(flight, out, now)
            return
        to = route.to
        latest, audience = self._latest
        if latest is not to:
            audience = self.audiences.get(to)
            self._latest = to, audience
        if audience is None:
            return
        machines = audience.machines
        if machines is None:
            machines = audience.settle()
        if out and audience.members is not None:
            out = audience.positions(out)
        self.network.delivered += len(machines) - len(out)
        message, source = flight.message, flight.source
        lockstep = audience.lockstep
        if lockstep is None and audience.has_fast and isinstance(message, FastMessage) and message.next_state is not None:
            lockstep = audience.lockstep = LockstepGroup(machines)
        if lockstep is not None:
            lockstep.tell(message, source, to, now, out)
            return
        begin = 0
        for position in out:
            if position > begin:
                fan_out(machines[begin:position], message, source, to, now)
            begin = position + 1
        fan_out(machines[begin:] if begin else machines, message, source, to, now)


@mypyc_attr(allow_interpreted_subclasses=True)
class Switch:
    """A graph node that forwards: offers what arrives to the next links at once."""

    __slots__ = ("links", "name", "network")

    def __init__(self, network: "Network", name: str) -> None:
        self.network = network
        self.name = name
        self.links: dict[str, Hop] = {}
        """By neighbour."""

    def arrive(self, flight: "Flight", out: Sequence[int], now: float) -> None:
        """A packet is there; `out` is empty."""
        del out
        links = flight.route.links.get(self.name)
        if links is None:
            links = self.network.routes.next_links(flight.route, self)
        if links:
            self.network.forward(flight, links, now)

    def inlet(self, near: str) -> Any:
        """Where links from `near` end."""
        del near
        return self

    def next_links(self, flight: "Flight") -> "Sequence[Hop]":
        """The links a packet goes on to from here."""
        links = flight.route.links.get(self.name)
        return self.network.routes.next_links(flight.route, self) if links is None else links
