"""Packets in flight: what all copies of one share, where copies arrive, over which links and routes, and how it is forwarded.

A node offers a packet to its next links, and each link says when and where copies arrive; a `Forwarding` strategy posts these
arrivals as events.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from heapq import heappush
from typing import Any, Protocol, TypeAlias

from mypy_extensions import mypyc_attr

from protocols.errors import ContractError
from protocols.machine import Address, Codec, Group, Message
from sim.group_members import GroupMembers
from sim.kernel import Kernel
from sim.queue_entry import ARRIVAL, QueueEntry, next_delta
from sim.timers import KernelHost
from topologies.drop_tail import DropTailQueue

__all__ = [
    "Arrival",
    "Arrivals",
    "Backlog",
    "ClassedFlight",
    "Carrier",
    "Faulty",
    "Flight",
    "Forwarding",
    "Grouped",
    "Hop",
    "HostNode",
    "MarkedFlight",
    "dscp_of",
    "Place",
    "Places",
    "Postponed",
    "Route",
    "Single",
    "mark",
    "through_wire",
    "to_member",
]

ROUNDING = 1e-9
"""Seconds by which a wake-up may be late in the strict engine: clocks that were set or drift round to later times."""


class Place(Protocol):
    """Anything a packet can get to: a host, a node of hosts, a switch, or a stage within a node or link."""

    def arrive(self, flight: "Flight", lost_by: Sequence[int], now: float) -> None:
        """Take the copies of a packet for all members of a group but those of `lost_by`, which ascend.

        For a place that is no group `lost_by` is empty.
        """


Places: TypeAlias = list[tuple[Place, Sequence[int]]]
"""Where copies of a packet arrive at one time: pairs of a place and the members of it that lost the packet."""
Arrivals: TypeAlias = dict[float, Places]
"""The arrivals of the copies of one packet by time (seconds)."""


class Carrier(Protocol):
    """Anything that takes a packet at once and computes when and where its copies arrive."""

    def carry(self, flight: "Flight", now: float, arrivals: Arrivals) -> None:
        """Take a packet, and add the copies that arrive to `arrivals`."""


class Backlog(Protocol):
    """An output queue that can say when it has room (`sim.pause`)."""

    def ready(self, expected: int, now: float) -> float:
        """Return the time at which `expected` packets and one more have room; inf when only later arrivals decide that."""


class Hop(Carrier, Protocol):
    """One direction of a link, or of the links to all members of a counted group."""

    @property
    def head(self) -> Place:
        """The place at the far end."""

    def queues(self) -> "Sequence[DropTailQueue | Backlog]":
        """Return the output queues."""

    def left_at(self, place: int) -> float:
        """Return when what the host at a place offered last leaves its queue, in seconds; 0 where that is not known.

        It is known of queues without a limit and of a constant rate, which drop nothing.
        """

    def losses_of(self, member: int) -> int:
        """Return how many packets one member did not receive over this hop; member 0 names the only one."""

    def counts(self) -> tuple[int, ...]:
        """Return the packets offered, dropped by the queue, lost, corrupt, marked, and duplicated."""


class Flight:
    """One packet in flight: what all its copies share."""

    __slots__ = ("delta", "identity", "message", "order", "place", "route", "sent_at", "size", "source")

    def __init__(
        self, message: Message, identity: int | None, size: int, place: int, source: Address, route: "Route", order: int
    ) -> None:
        self.message = message
        self.identity = identity
        self.size = size
        """Bytes of UDP payload."""
        self.place = place
        """Of the host that sent it, in `Topology.hosts`."""
        self.source = source
        """Address of its machine that sent it: the name of the host, or a `sim.addresses.HostPort`."""
        self.route = route
        self.order = order
        """Orders arrivals of one instant; incremented for each arrival that is posted."""
        self.delta = 0
        """Added to the order of arrivals at `sent_at` (seconds), the time of sending (`sim.queue_entry.next_delta`)."""
        self.sent_at = 0.0

    def note_sent(self, now: float, key: tuple[Any, ...]) -> None:
        """Note that it is sent at `now` (seconds), in the event with this key."""
        if key[1] == ARRIVAL and key[0] == now:
            self.delta, self.sent_at = next_delta(key[2]), now

    def order_at(self, when: float) -> int:
        """Return the order of an arrival at `when` (seconds)."""
        return self.order + self.delta if self.delta and when == self.sent_at else self.order


class ClassedFlight(Flight):
    """A packet with a class of service (`ClassedPacket`)."""

    __slots__ = ("dscp",)

    def __init__(
        self,
        message: Message,
        identity: int | None,
        size: int,
        place: int,
        source: Address,
        route: "Route",
        order: int,
        dscp: int,
    ) -> None:
        super().__init__(message, identity, size, place, source, route, order)
        self.dscp = dscp


class MarkedFlight(ClassedFlight):
    """A copy of a packet that a queue has marked with congestion experienced (ECN); copies on other links are not marked."""

    __slots__ = ()


def dscp_of(flight: Flight) -> int:
    """Return the class of service of a packet; 0, the default, for one without."""
    return flight.dscp if isinstance(flight, ClassedFlight) else 0


def mark(flight: Flight, serial: int) -> Flight:
    """Return a marked copy of a packet; `serial` is the network's next number of a packet, which orders its arrivals."""
    order = (flight.place + 1) << 80 | serial << 24
    fields = flight.message, flight.identity, flight.size, flight.place, flight.source, flight.route
    return _sent_as(flight, MarkedFlight(*fields, order, dscp_of(flight)))


def to_member(flight: Flight, endpoint: "HostNode", member: int) -> Flight:
    """Return a copy of a multicast that goes to one member of a counted group (`endpoint`), with the number of the packet."""
    common = flight.route
    route = Route(common.home, common.to, common.root, common.first)
    route.target, route.member = endpoint.host(member), member
    order = flight.order >> 24 << 24
    fields = flight.message, flight.identity, flight.size, flight.place, flight.source, route, order
    if isinstance(flight, MarkedFlight):
        return _sent_as(flight, MarkedFlight(*fields, flight.dscp))
    return _sent_as(flight, ClassedFlight(*fields, flight.dscp) if isinstance(flight, ClassedFlight) else Flight(*fields))


def _sent_as(flight: Flight, copy: Flight) -> Flight:
    """Return the copy of a packet, sent when that was."""
    copy.delta, copy.sent_at = flight.delta, flight.sent_at
    return copy


class Arrival(QueueEntry):
    """The arrival of copies of a packet at one time; `content` is the flight."""

    __slots__ = ("places",)

    def __init__(self, callbacks: "tuple[Callable[[Arrival], None], ...]", flight: Flight, places: Places) -> None:
        self.callbacks = callbacks
        self.content = flight
        self.places = places


class Postponed:
    """Carries a packet to one place at a given time: for links that compute the time only after they took the packet."""

    __slots__ = ("lost_by", "place", "when")

    def __init__(self, place: Place, when: float, lost_by: Sequence[int] = ()) -> None:
        self.place = place
        self.when = when
        self.lost_by = lost_by

    def carry(self, flight: Flight, now: float, arrivals: Arrivals) -> None:
        """See `Carrier`."""
        del flight, now
        arrivals[self.when] = [(self.place, self.lost_by)]


class HostNode(Protocol):
    """A graph node of kind host, as routes and group membership use it (`sim.endpoint.Endpoint`)."""

    name: str
    counted: bool
    ttl: int | None
    uplinks: dict[str | int, Hop]
    groups: dict[Address, GroupMembers]

    def host(self, member: int) -> Place:
        """Return the host of a member."""

    def begin(self, member: int, group: Group) -> None:
        """Make a member a listener of a group, from now on."""

    def end(self, member: int, group: Group) -> None:
        """Make a member no listener of a group any more."""


class Route:
    """The way from one node of hosts to one address; `links` are the next links at each switch, computed when first needed.

    Of a unicast, `target` is the host, `node` its graph node and `member` its number there; of a multicast `target` is None.
    """

    __slots__ = ("first", "home", "links", "member", "network", "node", "root", "target", "to", "tree")

    def __init__(self, home: HostNode, to: Address, root: str, first: Sequence[Hop]) -> None:
        self.home = home
        self.to = to
        self.root = root
        """Graph node at the root of the tree."""
        self.first = first
        """The links a plain host sends on."""
        self.links: dict[str, Sequence[Hop]] = {}
        """The next links by switch, shared by the unicasts of a node of hosts to the hosts of another."""
        self.target: Place | None = None
        self.node = ""
        self.member = 0
        self.tree: dict[str, tuple[str, ...]] | None = None
        """The next nodes by switch; None before they are computed."""
        self.network = ""
        """The network of the root that alone gets a multicast; empty: all."""


# -- forwarding ---------------------------------------------------------------------------------------------------------


@mypyc_attr(allow_interpreted_subclasses=True)
class Forwarding(ABC):
    """A way to forward packets; `Fabric.forwarding` is the one in use."""

    @abstractmethod
    def forward(self, flight: Flight, links: Sequence[Carrier], now: float) -> None:
        """Offer a packet to links and post the arrivals of its copies."""


@mypyc_attr(allow_interpreted_subclasses=True)
class _ByEvents(Forwarding):
    """Posts an event for each arrival of one or more copies."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._env = kernel.env
        self._queue: list[Any] = kernel.queue
        self._callbacks = (self._on_arrival,)

    @abstractmethod
    def _on_arrival(self, arrival: Arrival) -> None:
        """Deliver the copies that arrive with one event."""


class Grouped(_ByEvents):
    """The fast engine's: one event for each distinct time at which copies arrive."""

    def forward(self, flight: Flight, links: Sequence[Carrier], now: float) -> None:
        """See `Forwarding`."""
        arrivals: Arrivals = {}
        for link in links:
            link.carry(flight, now, arrivals)
        queue = self._queue
        for when in arrivals:
            flight.order += 1
            order = flight.order if not flight.delta else flight.order_at(when)
            heappush(queue, (when, ARRIVAL, order, Arrival(self._callbacks, flight, arrivals[when])))

    def _on_arrival(self, arrival: Arrival) -> None:
        kernel, flight, now = self._kernel, arrival.content, self._env._now
        with_events = kernel.with_events
        kernel.busy = True
        for place, lost_by in arrival.places:
            if with_events:
                # Two copies may arrive at one host at once; the application receives the events of the first before the second.
                kernel.drain()
            place.arrive(flight, lost_by, now)
        kernel.settle_inputs()


class Single(_ByEvents):
    """The strict engine's: one event for each copy; checks that machines announce earlier deadlines.

    A machine that moves its deadline to an earlier time without `Ports.alarm` raises ContractError.
    """

    def forward(self, flight: Flight, links: Sequence[Carrier], now: float) -> None:
        """See `Forwarding`."""
        arrivals: Arrivals = {}
        for link in links:
            link.carry(flight, now, arrivals)
        for when, places in arrivals.items():
            for place in places:
                flight.order += 1
                heappush(self._queue, (when, ARRIVAL, flight.order_at(when), Arrival(self._callbacks, flight, [place])))

    def _on_arrival(self, arrival: Arrival) -> None:
        ((place, lost_by),) = arrival.places
        self._kernel.busy = True
        place.arrive(arrival.content, lost_by, self._env._now)
        if isinstance(place, KernelHost):
            # Not a `Machine` to the compiler: a fault shim computes its deadline.
            machine: Any = place.machine
            if machine.deadline < place.armed and place.armed > self._env._now + ROUNDING:
                raise ContractError(f"{place.name} did not announce that its deadline moved earlier")
        self._kernel.settle()


class Faulty(Forwarding):
    """Forwards by another strategy, but not over links that are down."""

    def __init__(self, inner: Forwarding) -> None:
        self._inner = inner
        self.down: list[Carrier] = []
        """Links that are down, once for each fault."""
        self.dropped = 0
        """Packets that were to go over such a link."""

    def forward(self, flight: Flight, links: Sequence[Carrier], now: float) -> None:
        """See `Forwarding`."""
        if self.down:
            up = [link for link in links if link not in self.down]
            self.dropped += len(links) - len(up)
            links = up
        self._inner.forward(flight, links, now)


def through_wire(codec: Codec, message: Message, size: int) -> Message:
    """Return the message encoded and decoded; ContractError when its size is not `size` bytes."""
    data = codec.encode(message)
    if len(data) != size:
        raise ContractError(f"{message.kind} was sent with a size of {size} bytes and encodes to {len(data)}")
    return codec.decode(data)
