"""A topology that runs: hosts, links and switches in a SimPy environment."""

from collections.abc import Callable, Iterator, Sequence
from heapq import heappush
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from mypy_extensions import mypyc_attr
from simpy import Environment

from protocols.errors import UsageError
from protocols.machine import Codec, Message, Packet
from protocols.traffic import Traffic
from sim.endpoint import Endpoint
from sim.engine import ARRIVAL
from sim.fast.lookahead import Lookahead, lookahead_of
from sim.fingerprint import Fingerprint
from sim.flight import Arrival, Flight, through_wire
from sim.host import IDLE, SimHost
from sim.impaired_link import ImpairedLink, ImpairedLinkGroup
from sim.kernel import Kernel
from sim.link import Arrivals, Carrier, Hop, Link, LinkGroup, Places
from sim.membership import Membership
from sim.noise import Noise
from sim.pause import PausedLink, Pausing
from sim.receive_processor import LimitedEndpoint, LimitedHost, find_pausing, make_leaf
from sim.router import NodeCounts, Router, StormSwitch, make_switch
from sim.routes import Routes
from sim.separate_links import SeparateLinks
from sim.stats import LinkCounts, Observer
from topologies.keys import loss_key, member_loss_key
from topologies.spec import LinkSpec, Topology

if TYPE_CHECKING:
    from sim.fault_shim import FaultShim

__all__ = ["ENGINES", "Network", "OnDelivery"]

T = TypeVar("T")
ENGINES = ("auto", "strict", "fast")
OnDelivery: TypeAlias = Callable[[float, str, Message], None]
"""Told the time, the receiving host and the message just before a machine is."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Network(Kernel):
    """Runs machines on the hosts of a topology.

    With `codec` (a factory) every packet is encoded and decoded once on its way, and its size is checked; without, receivers
    get the very object that was sent. `environment` may be shared with a user's own SimPy processes. Everything that happens
    is a function of topology, machines and `seed`.

    Two engines give equal fingerprints. `strict` spends one SimPy event on every delivery, keeps every link of a group apart
    and asserts that no machine forgot to announce a deadline; `fast` groups what arrives together. `auto` is fast unless
    `on_delivery`, which is told of every delivery in the order of time, needs strict.
    """

    def __init__(
        self,
        topology: Topology,
        *,
        seed: int,
        codec: Callable[[], Codec] | None = None,
        environment: Environment | None = None,
        engine: str = "auto",
        on_delivery: OnDelivery | None = None,
    ) -> None:
        if engine not in ENGINES:
            raise UsageError(f"engine: {engine!r} is not allowed; one of {', '.join(ENGINES)}")
        if engine == "fast" and on_delivery is not None:
            raise UsageError("on_delivery: the fast engine keeps no order between hosts; engine strict or auto")
        hosts: list[SimHost | None] = [None] * sum(map(topology.size, topology.host_nodes))
        super().__init__(environment if environment is not None else Environment(0.0), hosts)
        self._hosts = hosts
        self.strict = engine == "strict" or on_delivery is not None
        self._on_delivery = on_delivery
        self.topology = topology
        self.seed = seed
        self._traffic = Traffic()
        self._packets, self._octets = self._traffic.packets, self._traffic.octets
        self.fingerprinter = Fingerprint()
        self.delivered = 0
        """As `deliveries`, as far as made up for."""
        self.lookaheads: list[Lookahead] = []
        """Where packets are under way that were foreseen."""
        self.gates: dict[int, FaultShim] = {}
        """The gates of hosts with faults (`sim.fault_shim`), by place."""
        self.observers: list[Observer] = []
        """Who is told of every packet sent."""
        self._codec = codec() if codec is not None else None
        self._serial = 0
        self._landed = (self._on_delivered if self.strict else self.arrive,)
        self.forward = self._forward_singly if self.strict else self._forward_grouped
        self._build()

    # Building

    def _build(self) -> None:
        topology = self.topology
        self.membership = Membership(self)
        self._switches = {name: make_switch(self, name) for name in topology.switches}
        self._leaves = {name: make_leaf(self, name) for name in topology.host_nodes}
        self.pausing: dict[str, Pausing] = find_pausing(topology, self._switches, self._leaves)
        """The nodes that stop the links into them when they have no room (802.3x)."""
        self.routes = Routes(self, self._leaves)
        self._inlets: dict[str, list[Hop]] = {name: [] for name in topology.host_nodes}
        # Of a counted group that sends: the switch its members are linked to, how, and the key of the losses there.
        self._exits: dict[str, tuple[str, LinkSpec, int]] = {}
        for near, far, _ in topology.links:
            self._build_link(near, far)

    def _build_link(self, near: str, far: str) -> None:
        """One direction; those from members of a counted group are made when a member first sends."""
        leaf = self._leaves.get(near)
        if leaf is not None and leaf.counted:
            return
        head = self._leaves.get(far)
        spec, key = self.topology.link(near, far), loss_key(self.seed, near, far)
        link: Hop
        if head is not None and head.counted:
            if self.strict:
                link = SeparateLinks(spec, head, key)
            else:
                link = LinkGroup(spec, head, key) if spec.plain else ImpairedLinkGroup(spec, head, key, self)
        else:
            link = self._single_link(near, far, spec, key, 0)
        if leaf is not None:
            leaf.uplinks[far] = link
        else:
            self._switches[near].links[far] = link
        if head is not None:
            self._inlets[far].append(link)

    def _single_link(self, near: str, far: str, spec: LinkSpec, key: int, member: int) -> Hop:
        """A link that stands alone, to a node that stops it when it has no room or to one that takes what comes."""
        head = self._leaves.get(far) or self._switches[far].inlet(near)
        gate = self.pausing.get(far)
        if gate is not None:
            return PausedLink(self, near, spec, head, gate, key)
        return Link(spec, head, key) if spec.plain else ImpairedLink(spec, head, key, self, member)

    def make_member_uplink(self, leaf: Endpoint, member: int) -> Hop:
        """The link from one member of a counted group to its switch."""
        known = self._exits.get(leaf.name)
        if known is None:
            (far,) = self.topology.graph.successors(leaf.name)
            known = self._exits[leaf.name] = far, self.topology.link(leaf.name, far), loss_key(self.seed, leaf.name, far)
        far, spec, key = known
        return self._single_link(leaf.name, far, spec, member_loss_key(key, member), member)

    def host(self, name: str) -> SimHost:
        """The host of this name (`Topology.hosts`); UsageError when there is none."""
        node, member = self.topology.member(name)
        return self._leaves[node].host(member)

    @property
    def leaves(self) -> list[Endpoint]:
        """The graph nodes that are hosts or groups of hosts."""
        return list(self._leaves.values())

    def plain_link(self, near: str, far: str) -> Hop:
        """One direction of the link between two graph nodes, of which `near` is no counted group."""
        self.catch_up()
        leaf = self._leaves.get(near)
        return self._switches[near].links[far] if leaf is None else leaf.uplinks[far]

    def kind(self, plain: type[T]) -> type[T]:
        """The class of a host or leaf that would be a `plain` one; a network that is watched has others."""
        return plain

    def host_at(self, place: int, leaf: Endpoint) -> SimHost:
        """The host at a place in `Topology.hosts`, made when first asked for."""
        host = self._hosts[place]
        if host is None:
            host = self._hosts[place] = leaf.make_host(place)
        return host

    def limit_scope(self, name: str, ttl: int) -> None:
        """Multicasts of this host (with its equals in a counted group) end at the router that counts `ttl` down to 0."""
        self._leaves[self.topology.member(name).node].ttl = ttl

    # Moving packets

    def transmit(self, host: SimHost, packet: Packet) -> None:
        """A machine sends: onto the first link, now."""
        if self.observers and self.lookaheads:
            self.catch_up()
        message, size, to = packet.message, packet.size, packet.to
        identity = message.identity
        now = self.env._now
        packets, octets, kind = self._packets, self._octets, message.kind
        if kind in packets:
            # As `Traffic.count`, without a call.
            packets[kind] += 1
            octets[kind] += size
        else:
            self._traffic.count(message, size)
        if identity is None:
            self.fingerprinter.control(now, host.place, message.kind, size)
        for observer in self.observers:
            observer.sent(now, host, message, size)
        if self._codec is not None and type(message) is not Noise:
            message = through_wire(self._codec, message, size)
        leaf = host.leaf
        route = leaf.route
        if route is None or route.to is not to:
            route = leaf.route = leaf.routes.get(to) or self.routes.find(leaf, to)
        if route.target is host:
            raise UsageError(f"{host.name} sends to itself")
        self._serial = serial = self._serial + 1
        flight = Flight(message, identity, size, host, route, (host.place + 1) << 80 | serial << 24)
        self.forward(flight, (leaf.member_uplink(host.member),) if leaf.counted else route.first, now)

    def _forward_grouped(self, flight: Flight, links: Sequence[Carrier], now: float) -> None:
        """Offer a packet to links: one SimPy event for each distinct time at which copies arrive."""
        landings: Arrivals = {}
        for link in links:
            link.carry(flight, now, landings)
        order, queue = flight.order, self._queue
        for when in landings:
            order += 1
            heappush(queue, (when, ARRIVAL, order, Arrival(self._landed, flight, landings[when])))
        flight.order = order

    def land(self, flight: Flight, when: float, place: Any) -> None:
        """A packet will come to `place`; for links that know so only after they took it."""
        flight.order = order = flight.order + 1
        heappush(self._queue, (when, ARRIVAL, order, Arrival(self._landed, flight, [(place, ())])))

    def arrive(self, landing: Arrival) -> None:
        """Copies of a packet arrive."""
        flight, spoke = landing.content, self.spoke
        now = self.env._now
        self.busy = True
        for place, out in landing.places:
            if spoke:
                # Two copies of a packet may come to one host at once, and it is told of the first before it hears the second.
                self.tell()
            place.arrive(flight, out, now)
        self.settle_inputs()

    # What is foreseen

    def look_ahead(self, host: SimHost) -> None:
        """The host's machine had an input: carry what it foresees, if there is a way to."""
        route = host.leaf.route
        if route is None or self.strict or self._codec is not None or self.forward != self._forward_grouped:
            return
        lookahead = lookahead_of(self, host, route)
        if lookahead is not None:
            machine: Any = host.machine
            lookahead.depart(machine)

    def catch_up(self) -> None:
        """Make up for what was foreseen and has happened."""
        for lookahead in self.lookaheads:
            lookahead.catch_up()

    def unfold(self) -> None:
        """Let what was foreseen and is under way go on as ordinary packets, before links become something else."""
        for lookahead in list(self.lookaheads):
            lookahead.unfold()

    def take_serials(self, count: int) -> int:
        """The first of so many numbers of packets."""
        first = self._serial + 1
        self._serial += count
        return first

    def count_sent(self, kind: str, packets: int, octets: int) -> None:
        """So many packets were put on links."""
        self._packets[kind] += packets
        self._octets[kind] += octets

    def landing(self, flight: Flight, places: Places) -> Arrival:
        """The arrival of copies of a packet at one time."""
        return Arrival(self._landed, flight, places)

    # The strict engine

    def _forward_singly(self, flight: Flight, links: Sequence[Carrier], now: float) -> None:
        """Offer a packet to links: one SimPy event for each place a copy gets to."""
        landings: Arrivals = {}
        for link in links:
            link.carry(flight, now, landings)
        for when, places in landings.items():
            for place in places:
                flight.order = order = flight.order + 1
                heappush(self._queue, (when, ARRIVAL, order, Arrival(self._landed, flight, [place])))

    def _on_delivered(self, landing: Arrival) -> None:
        flight, ((place, _),) = landing.content, landing.places
        now = self.env._now
        self.busy = True
        host = place.host(0) if isinstance(place, Endpoint) else place
        if not isinstance(host, SimHost):
            host.arrive(flight, (), now)
        else:
            if not isinstance(host, LimitedHost):
                self.announce(flight, host, now)
            host.arrive(flight, (), now)
            assert host.machine.deadline >= host.armed, f"{host.name} did not announce that its deadline moved earlier"
        self.settle()

    def announce(self, flight: Flight, host: SimHost, now: float) -> None:
        """A machine is about to be handed a packet; who wants to know is told."""
        if self._on_delivery is not None and host.hears(flight):
            self._on_delivery(now, host.name, flight.message)

    # What came out

    @property
    def traffic(self) -> Traffic:
        """What machines have sent."""
        self.catch_up()
        return self._traffic

    @property
    def deliveries(self) -> int:
        """Packets handed to machines."""
        self.catch_up()
        return self.delivered

    def fingerprint(self) -> str:
        """See `sim.fingerprint.Fingerprint`."""
        running = [host for host in self._hosts if host is not None and host.machine is not IDLE]
        counts: Iterator[tuple[int, dict[str, int]]] = ((host.place, host.machine.counts()) for host in running)
        return self.fingerprinter.hexdigest(self.env.now, counts, self.traffic)

    def links(self) -> list[LinkCounts]:
        """Counts of every direction of every link, in the order of the topology."""
        self.catch_up()
        return [self._counts(near, far) for near, far, _ in self.topology.links]

    def nodes(self) -> list[NodeCounts]:
        """Counts of every node with a model, in the order of the topology."""
        things = (self._leaves.get(name) or self._switches[name] for name in self.topology.graph)
        return [thing.counts() for thing in things if isinstance(thing, (Router, StormSwitch, LimitedEndpoint))]

    def _counts(self, near: str, far: str) -> LinkCounts:
        leaf = self._leaves.get(near)
        parts: list[Hop]
        if leaf is None:
            parts = [self._switches[near].links[far]]
        else:
            parts = list(leaf.uplinks.values()) if leaf.counted else [leaf.uplinks[far]]
        rows = [(0,) * 6, *(part.counts() for part in parts)]
        return LinkCounts(near, far, *map(sum, zip(*rows, strict=True)))

    def lost(self, name: str) -> int:
        """Packets that never came to this host over its own link, by loss or a full queue."""
        self.catch_up()
        member = self.topology.member(name).place
        return sum(inlet.lost_by(member) for inlet in self.inlets(name))

    def inlets(self, name: str) -> Sequence[Hop]:
        """The links that end at this host; members of a counted group share one bundle."""
        self.catch_up()
        return self._inlets[self.topology.member(name).node]
