"""A topology as a simulation: its hosts, links, switches and routes, and the kernel that runs them."""

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from math import inf
from numbers import Real
from operator import index
from typing import ClassVar, Final, SupportsIndex, TypeVar, cast

from mypy_extensions import mypyc_attr
from simpy import Environment

from protocols.errors import UsageError, shown
from protocols.framing import Framing, LengthPrefixed
from protocols.machine import Codec, Group
from protocols.tcp.congestion import CONTROLS
from protocols.tcp.options import TcpOptions
from protocols.traffic import Traffic
from sim.acceleration import Accelerator, NoAccelerator
from sim.damaging_links import DamagingLinkGroup
from sim.endpoint import Endpoint
from sim.fabric import Fabric, OnDelivery
from sim.fingerprint import Fingerprint
from sim.flight import Faulty, Grouped, Hop, Place, Single
from sim.host import SimHost
from sim.hub import Hub
from sim.idle import IDLE
from sim.impaired_link import ImpairedLink, ImpairedLinkGroup
from sim.kernel import Kernel
from sim.link import Link, LinkGroup
from sim.member_uplinks import MemberUplinks
from sim.node_counts import NodeCounts
from sim.pause import PausedLink
from sim.processor import ProcessorCounts
from sim.receive_processor import LimitedEndpoint, LimitedHost, find_pausing
from sim.router import Router, StormSwitch, make_switch
from sim.router_machine import RouterEndpoint, RouterHost
from sim.routes import Routes
from sim.separate_links import SeparateLinks
from sim.stats import LinkCounts, Observer
from sim.tcp_stack import TcpStack
from sim.varying_delays import VaryingDelayGroup
from topologies.keys import loss_key, member_loss_key
from topologies.node_models import HostModel
from topologies.spec import LinkSpec, Topology

__all__ = ["ENGINES", "Network", "OnDelivery"]

T = TypeVar("T")
ENGINES: Final = ("auto", "strict", "fast")
SEEDS: Final = 2**64
"""Number of seeds."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Network:
    """Runs machines on the hosts of a topology.

    With `codec` (a factory) every packet is encoded and decoded once, and its size is checked; without, receivers get the
    object that was sent. Connections are TCP with the options `connections`; `framing` makes the framing of their streams.
    `environment` may be shared with a user's own SimPy processes. Everything that happens is a function of topology, machines
    and `seed`, from 0 to 2**64 - 1. UsageError for an invalid seed, topology, engine or option of connections.

    Two engines leave equal fingerprints. `strict` spends one event on every delivery, keeps every link of a group apart, and
    raises ContractError when a machine does not announce an earlier deadline; `fast` groups arrivals and runs what is in
    `sim.fast`. `auto` is fast unless `on_delivery`, which is called for every delivery in order of time, needs strict.
    """

    shares_uplinks: ClassVar[bool] = True
    """Whether the links from the members of a group may be one object."""

    def __init__(
        self,
        topology: Topology,
        *,
        seed: SupportsIndex,
        codec: Callable[[], Codec] | None = None,
        environment: Environment | None = None,
        engine: str = "auto",
        on_delivery: OnDelivery | None = None,
        connections: TcpOptions | None = None,
        framing: Callable[[], Framing] = LengthPrefixed,
    ) -> None:
        if engine not in ENGINES:
            raise UsageError(f"engine: {shown(engine)} is not allowed; one of {', '.join(ENGINES)}")
        if engine == "fast" and on_delivery is not None:
            raise UsageError("on_delivery: the fast engine keeps no order between hosts; engine strict or auto")
        self.strict = engine == "strict" or on_delivery is not None
        """Whether the engine is strict."""
        _check_connections(connections)
        self.topology = topology
        self.seed = _checked(topology, seed)
        self._endpoints: dict[str, Endpoint] = {}
        # By counted group: the node its members are linked to, the link, and its key, which takes time to make.
        self._member_links: dict[str, tuple[str, LinkSpec, int]] = {}
        accelerator = NoAccelerator() if self.strict else _accelerator(look_ahead=codec is None)
        places = sum(map(topology.size, topology.host_nodes))
        kernel = Kernel(environment if environment is not None else Environment(0.0), [None] * places, accelerator.wake)
        forwarding = Single(kernel) if self.strict else Grouped(kernel)
        routes = Routes(topology, self._endpoints, accelerator)
        self.fabric = Fabric(topology, self.seed, kernel, forwarding, accelerator, routes)
        self.fabric.codec = codec() if codec is not None else None
        self.fabric.on_delivery = on_delivery
        self.fabric.tcp = TcpStack(self.fabric, connections, framing)
        self.kernel = kernel
        self.env = kernel.env
        self._build()

    # Building

    def _build(self) -> None:
        topology = self.topology
        self._switches = {name: make_switch(self.fabric, name) for name in topology.switches}
        for name in topology.host_nodes:
            self._endpoints[name] = self._make_endpoint(name)
        self._pausing = find_pausing(topology, self._switches, self._endpoints)
        self._inlets: dict[str, list[Hop]] = {name: [] for name in topology.host_nodes}
        for near, far, _ in topology.links:
            if near not in self._endpoints or not self._endpoints[near].counted:
                self._add_link(near, far, self.make_link(near, far))

    def _make_endpoint(self, name: str) -> Endpoint:
        topology, kind = self.topology, self.kind
        spec, base, size = topology.node(name), topology.base(name), topology.size(name)
        counted = spec.count is not None
        if isinstance(spec.model, HostModel):
            limited = kind(LimitedEndpoint)
            endpoint: Endpoint = limited(self.fabric, name, base, size, counted, kind(LimitedHost), spec.model)
        elif spec.router:
            endpoint = kind(RouterEndpoint)(self.fabric, name, base, size, counted, kind(RouterHost))
        else:
            endpoint = kind(Endpoint)(self.fabric, name, base, size, counted, kind(SimHost))
        if counted:
            endpoint.make_uplink = partial(self.make_member_uplink, endpoint)
        return endpoint

    def kind(self, plain: type[T]) -> type[T]:
        """Return the class of hosts or endpoints that would be `plain`; a watched network has subclasses."""
        return plain

    def _add_link(self, near: str, far: str, link: Hop) -> None:
        endpoint = self._endpoints.get(near)
        if endpoint is not None:
            endpoint.uplinks[far] = link
        else:
            self._switches[near].links[far] = link
        if far in self._inlets:
            self._inlets[far].append(link)

    def make_link(self, near: str, far: str) -> Hop:
        """Make one direction of a link; those from members of a counted group are made when a member first sends."""
        head = self._endpoints.get(far)
        spec, key = self.topology.link(near, far), loss_key(self.seed, near, far)
        if head is None or not head.counted:
            return self._single_link(near, far, spec, key, 0)
        if self.strict:
            return SeparateLinks(spec, head, key)
        if spec.plain:
            return LinkGroup(spec, head, key)
        if not spec.is_uniform:
            return ImpairedLinkGroup(spec, head, key, self.fabric)
        return DamagingLinkGroup(spec, head, key) if spec.jitter is None else VaryingDelayGroup(spec, head, key)

    def _single_link(self, near: str, far: str, spec: LinkSpec, key: int, member: int) -> Hop:
        """Make a link that stands alone, to a node that pauses it or to one that does not."""
        head = self._head(near, far)
        pausing = self._pausing.get(far)
        if pausing is not None:
            return PausedLink(self.fabric, self._pausing.get(near), spec, head, pausing, key)
        return Link(spec, head, key) if spec.plain else ImpairedLink(spec, head, key, self.fabric, member)

    def _head(self, near: str, far: str) -> Place:
        """Return the place at the far end of a link: in the strict engine the host, which is checked after every delivery."""
        endpoint = self._endpoints.get(far)
        if endpoint is None:
            return self._switches[far].inlet(near)
        return endpoint.host(0) if self.strict else endpoint

    def make_member_uplink(self, endpoint: Endpoint, member: int) -> Hop:
        """Make the link from one member of a counted group to its switch."""
        near = endpoint.name
        known = self._member_links.get(near)
        if known is None:
            (far,) = self.topology.graph.successors(near)
            known = self._member_links[near] = far, self.topology.link(near, far), loss_key(self.seed, near, far)
        far, spec, key = known
        is_shared = self.shares_uplinks and not self.strict and far not in self._pausing
        if is_shared and spec.plain and spec.loss.is_independent:
            losses = spec.loss.members(key, endpoint.count)
            uplinks = MemberUplinks(spec, self._head(near, far), endpoint.base, losses)
            endpoint.common_first = (uplinks,)
            return uplinks
        return self._single_link(near, far, spec, member_loss_key(key, member), member)

    def make_faulty(self) -> Faulty:
        """Let links go down from now on (`sim.faults`)."""
        self.fabric.accelerator.stop_lookahead()
        faulty = self.fabric.forwarding = Faulty(self.fabric.forwarding)
        return faulty

    def limit_scope(self, name: str, ttl: int) -> None:
        """Set the TTL of the multicasts of this host and of its counted group: they end at the router that makes it 0."""
        node = self.topology.member(name).node
        # A router does not decrement the TTL of its own packets.
        self._endpoints[node].ttl = ttl + bool(self.topology.node(node).router)

    def confine(self, group: Group, hosts: Collection[str]) -> None:
        """Let nobody but these hosts take part in a group, before the run begins (`sim.routes.Routes.confine`)."""
        self.fabric.routes.confine(group, hosts)

    # Looking up

    def host(self, name: str) -> SimHost:
        """Return the host of this name (`Topology.hosts`); UsageError when there is none."""
        node, member = self.topology.member(name)
        return self._endpoints[node].host(member)

    @property
    def endpoints(self) -> list[Endpoint]:
        """The graph nodes that are hosts or groups of hosts."""
        return list(self._endpoints.values())

    def plain_link(self, near: str, far: str) -> Hop:
        """Return one direction of the link between two graph nodes, of which `near` is no counted group."""
        self.catch_up()
        endpoint = self._endpoints.get(near)
        return self._switches[near].links[far] if endpoint is None else endpoint.uplinks[far]

    def inlets(self, name: str) -> Sequence[Hop]:
        """Return the links that end at this host; members of a counted group share one object."""
        self.catch_up()
        return self._inlets[self.topology.member(name).node]

    # Running

    def run(self, until: float = inf, over: Callable[[], bool] | None = None) -> None:
        """Process events until `over()` is true, until `until` (seconds), or until none is left; may be called again.

        `over` is called at the beginning and whenever applications received events or a `later` action was run. Events at
        exactly `until` are left for the next call; time then stands at `until`. UsageError for an `until` that is no time.
        """
        _check_time(until)
        self.kernel.run(until, over)

    def step(self) -> bool:
        """Process the next event; False when none is left."""
        return self.kernel.step()

    def pause(self) -> None:
        """End the `run` in progress after the present event; to be called from an application or a SimPy process."""
        self.kernel.pause()

    def later(self, when: float, action: Callable[[], None]) -> None:
        """Run `action()` at `when` (seconds), or now if that is past."""
        self.kernel.later(when, action)

    @property
    def now(self) -> float:
        """Simulated seconds since the run began."""
        return float(self.env.now)

    @property
    def next_at(self) -> float:
        """The time of the next event (seconds); inf when none is left."""
        return self.kernel.next_at

    # Results

    @property
    def events(self) -> int:
        """SimPy events processed."""
        return self.kernel.events

    @property
    def observers(self) -> list[Observer]:
        """Observers of every packet sent; append to it."""
        return self.fabric.observers

    def catch_up(self) -> None:
        """Bring all counters up to date; a caller that reads links or machines directly needs it."""
        self.fabric.accelerator.catch_up()

    @property
    def traffic(self) -> Traffic:
        """The packets that machines have sent."""
        self.catch_up()
        return self.fabric.traffic

    @property
    def deliveries(self) -> int:
        """Packets delivered to machines."""
        self.catch_up()
        return self.fabric.delivered

    @property
    def fingerprinter(self) -> Fingerprint:
        """The recorder of the run for `fingerprint`."""
        return self.fabric.fingerprinter

    def fingerprint(self) -> str:
        """Return the fingerprint of the run so far (`sim.fingerprint.Fingerprint`)."""
        running = [host for host in self.fabric.hosts if host is not None and host.machine is not IDLE]
        counts: Iterator[tuple[int, dict[str, int]]] = ((host.place, host.machine.counts()) for host in running)
        return self.fabric.fingerprinter.hexdigest(self.env.now, counts, self.traffic)

    def links(self) -> list[LinkCounts]:
        """Return the counts of every direction of every link, in the order of the topology."""
        self.catch_up()
        return [self.link_counts(near, far) for near, far, _ in self.topology.links]

    def link_counts(self, near: str, far: str) -> LinkCounts:
        """Return the counts of one direction of a link, as far as they are brought up to date."""
        endpoint = self._endpoints.get(near)
        parts: list[Hop]
        if endpoint is None:
            parts = [self._switches[near].links[far]]
        else:
            parts = list(endpoint.uplinks.values()) if endpoint.counted else [endpoint.uplinks[far]]
        rows = [(0,) * 6, *(part.counts() for part in parts)]
        return LinkCounts(near, far, *map(sum, zip(*rows, strict=True)))

    def processors(self) -> list[ProcessorCounts]:
        """Return the counts of the processors of hosts whose machines stated work, in the order of hosts."""
        endpoints = (endpoint for endpoint in self._endpoints.values() if endpoint.processors)
        return [processor.counts() for endpoint in endpoints for _, processor in sorted((endpoint.processors or {}).items())]

    def nodes(self) -> list[NodeCounts]:
        """Return the counts of every node with a model, in the order of the topology."""
        self.catch_up()
        nodes = (self._endpoints.get(name) or self._switches[name] for name in self.topology.graph)
        return [node.counts() for node in nodes if isinstance(node, (Router, StormSwitch, Hub, LimitedEndpoint))]

    def lost(self, name: str) -> int:
        """Return how many packets this host did not receive over its own link, by loss or a full queue."""
        self.catch_up()
        member = self.topology.member(name).place
        return sum(inlet.losses_of(member) for inlet in self.inlets(name))


def _checked(topology: object, seed: object) -> int:
    """Return the seed as an int, also of a numpy integer. UsageError for what is no topology or seed."""
    if not isinstance(topology, Topology):
        raise UsageError(f"topology: {shown(topology)} is not allowed; a Topology")
    try:
        number = index(cast(SupportsIndex, seed))
    except TypeError:
        number = -1
    if not 0 <= number < SEEDS:
        raise UsageError(f"seed: {shown(seed)} is not allowed; a whole number from 0 to {SEEDS - 1}")
    return number


def _check_connections(options: object) -> None:
    """Raise UsageError for options with which no connection carries anything, and for an unknown congestion control."""
    if options is None:
        return
    if not isinstance(options, TcpOptions):
        raise UsageError(f"connections: {shown(options)} is not allowed; TcpOptions")
    if options.control not in tuple(CONTROLS):
        raise UsageError(f"connections.control: {shown(options.control)} is not allowed; one of {', '.join(CONTROLS)}")
    for key, value in (("mss", options.mss), ("buffer", options.buffer)):
        if not isinstance(value, int) or value < 1:
            raise UsageError(f"connections.{key}: {shown(value)} is not allowed; a whole number from 1 on")


def _check_time(until: object) -> None:
    """Raise UsageError for what is no number of seconds: with nan a run would never end."""
    if not isinstance(until, Real) or not float(until) >= 0:
        raise UsageError(f"until: {shown(until)} is not allowed; seconds from 0 on, or inf")


def _accelerator(*, look_ahead: bool) -> Accelerator:
    """Make the fast engine's accelerator. Imported here and nowhere else, so that the strict engine runs without it."""
    from sim.fast.accelerator import LockstepAccelerator

    return LockstepAccelerator(look_ahead=look_ahead)
