"""A network as data: a networkx graph whose nodes and edges have validated attributes.

The node attribute `node` is a `NodeSpec`, the edge attribute `link` a `LinkSpec`; each direction of a link is an edge. A group
of equal leaf hosts is one graph node with a `count`, so that a million receivers are one node. The simulator and Mininet build
their networks from it.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from math import inf
from numbers import Integral, Real
from sys import float_info
from types import NoneType
from typing import Annotated, Any, NamedTuple, TypeAlias, cast, get_args

import networkx as nx
from pydantic import BaseModel, ConfigDict, Field, model_serializer

from protocols.errors import ConfigError, UsageError, shown
from topologies.channels import Channel, Loss, Perfect
from topologies.delays import AnyDelay, DelayModel
from topologies.disk_model import DiskModel
from topologies.ethernet import Framing
from topologies.multicast import Multicast, check_multicast
from topologies.names import first_names
from topologies.node_models import HOST_LIMIT, HostModel, Kind, Model, RouterModel, SwitchModel
from topologies.queues import AnyQueue, Discipline
from topologies.units import Fraction, Rate, Size

__all__ = ["Direction", "LinkAttributes", "LinkSpec", "Member", "NodeSpec", "Topology", "connect", "with_router_machines"]

Graph: TypeAlias = "nx.DiGraph[str]"

UDP_OVERHEAD = 42
"""Bytes of headers of a UDP datagram on Ethernet: 14 Ethernet, 20 IPv4, 8 UDP."""
MOST = float_info.max
"""The largest finite number."""
LEAST_MTU = 68
"""MTU in bytes that every IPv4 link must support (RFC 791)."""


@dataclass(frozen=True, slots=True)
class LinkSpec:
    """One direction of a link: `rate` in bytes per second, `delay` in seconds, `queue` in packets waiting (None: no limit).

    The transmission of a packet of `size` bytes of UDP payload takes (size + overhead) / rate seconds, with exact framing
    `topologies.ethernet.wire_bytes(size, overhead)` / rate. A packet that the channel loses occupies the queue and the
    transmitter all the same. A `discipline` replaces `queue`, a `jitter` replaces `delay`. `duplicate` and `corrupt` are
    probabilities per packet, `bit_errors` per bit. A packet of more than `mtu` bytes of IP is fragmented, and lost with any of
    its fragments.
    """

    rate: float = inf
    delay: float = 0.0
    queue: int | None = None
    loss: Channel = field(default_factory=Perfect)
    overhead: int | Framing = UDP_OVERHEAD
    discipline: Discipline | None = None
    jitter: DelayModel | None = None
    duplicate: float = 0.0
    corrupt: float = 0.0
    bit_errors: float = 0.0
    mtu: int | None = None

    @property
    def plain(self) -> bool:
        """Whether the link has only a rate, a constant delay, a drop-tail queue in packets and a loss keyed by identities."""
        richer = (self.discipline, self.jitter, self.mtu)
        return self.loss.plain and richer == (None, None, None) and not (self.duplicate or self.corrupt or self.bit_errors)

    @property
    def is_uniform(self) -> bool:
        """Whether several such links transmit the same packets at the same times, if the same are offered to them."""
        return self.loss.plain and self.discipline is None

    @property
    def without_queue(self) -> bool:
        """Whether packets are transmitted at a rate, and none may wait."""
        return self.rate < inf and self.queue == 0

    def __post_init__(self) -> None:
        _check_number("rate", self.rate, Real, 0, inf, "more than 0 bytes per second", above=True)
        _check_number("delay", self.delay, Real, 0, MOST, "a number of seconds of at least 0")
        if self.queue is not None:
            _check_number("queue", self.queue, Integral, 0, MOST, "a number of packets of at least 0, or None for no limit")
        if self.overhead not in get_args(Framing):
            _check_number("overhead", self.overhead, Integral, 0, MOST, "a number of bytes of at least 0, or a framing")
        if self.mtu is not None:
            _check_number("mtu", self.mtu, Integral, LEAST_MTU, MOST, f"a number of bytes of at least {LEAST_MTU}")
        for name in ("duplicate", "corrupt", "bit_errors"):
            _check_number(name, getattr(self, name), Real, 0, 1, "a fraction from 0 to 1")
        for name, allowed in _MODELS.items():
            if isinstance(getattr(self, name), (str, Real)):
                raise ConfigError(f"{name}: {shown(getattr(self, name))} is not allowed; {allowed}")


_MODELS = {
    "loss": "a channel, like topologies.channels.Bernoulli(p=0.01)",
    "discipline": "a queue discipline like topologies.queues.Red(), or None",
    "jitter": "a delay model like topologies.delays.NormalDelay, or None",
}


def _check_number(
    name: str, value: object, kind: type, least: float, most: float, allowed: str, *, above: bool = False
) -> None:
    """Raise ConfigError unless `value` is a number of this kind and range; for text it names the function that reads text."""
    number = cast(float, value)
    fits = (
        isinstance(value, kind) and not isinstance(value, bool) and least <= number <= most and not (above and number == least)
    )
    if not fits:
        read = f" (LinkAttributes({name}={shown(value)}).spec() reads text)" if isinstance(value, str) else ""
        raise ConfigError(f"{name}: {shown(value)} is not allowed; {allowed}{read}")


class Direction(BaseModel):
    """Attributes of one direction of a link; those not given are the link's own."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    rate: Rate | None = Field(default=None, description="Transmission rate like 10Mbit; none: unlimited.")
    delay: AnyDelay = Field(default=0.0, description="Propagation delay like 5ms, or a delay model.")
    queue: AnyQueue = Field(default=None, description="Packets that may wait (none: no limit), or a queue discipline.")
    loss: Loss = Field(default_factory=Perfect, description="Loss probability like 1%, or a loss channel.")
    duplicate: Fraction = Field(default=0.0, description="Probability that a packet is duplicated, like 1%.")
    corrupt: Fraction = Field(
        default=0.0, description="Probability that a packet is damaged and dropped by its UDP checksum, like 0.1%."
    )
    bit_errors: Fraction = Field(default=0.0, description="Probability that a bit is damaged, like 1e-7.")
    mtu: Annotated[Size, Field(ge=LEAST_MTU)] | None = Field(
        default=None, description="Largest IP packet in bytes, like 1500; larger ones are fragmented. none: no limit."
    )
    overhead: Annotated[int, Field(strict=True, ge=0)] | Framing = Field(
        default=UDP_OVERHEAD, description="Bytes of headers per UDP datagram, or an exact framing: ethernet, ethernet-802.1q."
    )

    def spec(self) -> LinkSpec:
        """Return the attributes as a `LinkSpec`."""
        varies, queues = not isinstance(self.delay, float), not isinstance(self.queue, (int, NoneType))
        return LinkSpec(
            rate=inf if self.rate is None else self.rate,
            delay=0.0 if varies else cast(float, self.delay),
            queue=None if queues else cast("int | None", self.queue),
            loss=self.loss,
            overhead=self.overhead,
            discipline=cast(Discipline, self.queue) if queues else None,
            jitter=cast(DelayModel, self.delay) if varies else None,
            duplicate=self.duplicate,
            corrupt=self.corrupt,
            bit_errors=self.bit_errors,
            mtu=self.mtu,
        )


class LinkAttributes(Direction):
    """Attributes of both directions of a link, overridden by `down` (away from the sender) and `up` (towards it)."""

    down: Direction | None = Field(default=None, description="Overrides for the direction away from the sender.")
    up: Direction | None = Field(default=None, description="Overrides for the direction towards the sender.")

    def specs(self) -> tuple[LinkSpec, LinkSpec]:
        """Return the specs of both directions: (down, up)."""
        return self._overridden(self.down).spec(), self._overridden(self.up).spec()

    @model_serializer
    def _effective(self) -> dict[str, Any]:
        return self.directions()

    def directions(self) -> dict[str, Any]:
        """Return both directions in full, so that equal links have equal dumps however they were written."""
        return {"down": self._overridden(self.down).model_dump(), "up": self._overridden(self.up).model_dump()}

    def _overridden(self, by: Direction | None) -> Direction:
        written = {} if by is None else {name: getattr(by, name) for name in by.model_fields_set}
        return Direction.model_construct(**{name: getattr(self, name) for name in Direction.model_fields} | written)


@dataclass(frozen=True, slots=True)
class NodeSpec:
    """A node: a host runs protocols and does not forward, a switch or router forwards. `count` makes it a group of leaf hosts.

    `model` is its processing model, None for none. A `bystander` takes part in a session only if it is named. `disk` is the
    disk of a host, None for one that takes no time. With `router` it is what runs the machine of that router
    (`with_router_machines`). `memory` is the bytes that the programs of a host may keep, None for any number.
    """

    kind: Kind = "host"
    count: int | None = None
    model: Model | None = None
    bystander: bool = False
    disk: DiskModel | None = None
    router: str = ""
    memory: int | None = None

    @property
    def is_hub(self) -> bool:
        """Whether all its links share one medium."""
        return isinstance(self.model, SwitchModel) and self.model.hub


class Member(NamedTuple):
    """The graph node of a host, and its index in a counted group (0 for a plain host)."""

    node: str
    place: int


class Topology:
    """A validated network graph with the multicast settings. ConfigError names the node or link that is wrong."""

    def __init__(self, graph: Graph, multicast: Multicast | None = None) -> None:
        self.graph = graph
        self.multicast = Multicast() if multicast is None else multicast
        _check(graph)
        check_multicast(self.multicast, graph)
        self._base: dict[str, int] = {}
        self._counts: dict[str, int] = {}
        """The number of members of each counted group."""
        total = 0
        for name in self.host_nodes:
            self._base[name] = total
            total += self.size(name)
            if (count := self.node(name).count) is not None:
                self._counts[name] = count
        if total > HOST_LIMIT:
            raise ConfigError(f"topology: {total} hosts, and {HOST_LIMIT} is the limit")
        self._check_names()

    @cached_property
    def host_nodes(self) -> tuple[str, ...]:
        """Graph nodes that are hosts or groups of hosts, in the order they were added."""
        return tuple(name for name in self.graph if self.node(name).kind == "host")

    @cached_property
    def switches(self) -> tuple[str, ...]:
        """Graph nodes that forward, in the order they were added."""
        return tuple(name for name in self.graph if self.node(name).kind != "host")

    @cached_property
    def hosts(self) -> tuple[str, ...]:
        """All host names in a fixed order; a node `r` with count 8 is `r1` to `r8`."""
        return tuple(self.member_name(node, place) for node in self.host_nodes for place in range(self.size(node)))

    @cached_property
    def router_machines(self) -> dict[str, str]:
        """The graph nodes that run the machines of routers, by router."""
        return {self.node(name).router: name for name in self.host_nodes if self.node(name).router}

    def networks_of(self, router: str) -> list[str]:
        """Return the names of a router's networks: those of the nodes at the other ends of its links.

        Counted groups, each of whose hosts has a link of its own, and the router's own machine are none.
        """
        self.node(router)
        far = [name for name in self.graph.successors(router) if name != self.router_machines.get(router)]
        return [name for name in far if self.node(name).count is None]

    @property
    def links(self) -> list[tuple[str, str, LinkSpec]]:
        """All directions of all links: (from, to, spec)."""
        return [(near, far, self.link(near, far)) for near, far in self.graph.edges]

    def node(self, name: str) -> NodeSpec:
        """Return the attributes of a graph node. UsageError for an unknown one."""
        try:
            return cast(NodeSpec, self.graph.nodes[name]["node"])
        except (KeyError, TypeError):
            raise UsageError(f"{name!r} is no node of this topology; nodes are {first_names(self.graph)}") from None

    def link(self, near: str, far: str) -> LinkSpec:
        """Return the attributes of the direction from graph node `near` to `far`. UsageError if no link joins them."""
        try:
            return cast(LinkSpec, self.graph.edges[near, far]["link"])
        except (KeyError, TypeError):
            links = first_names(f"{one}-{other}" for one, other in self.graph.edges)
            raise UsageError(f"{near!r} to {far!r} is no link of this topology; links are {links}") from None

    def size(self, node: str) -> int:
        """Return the number of hosts of a graph node."""
        return self.node(node).count or 1

    def member_name(self, node: str, place: int) -> str:
        """Return the name of the host of a graph node with index `place` (from 0)."""
        return node if self.node(node).count is None else f"{node}{place + 1}"

    def member(self, host: str) -> Member:
        """Return the graph node and index of a host. UsageError for an unknown name."""
        found = self._find(host) if isinstance(host, str) else None
        if found is None:
            kind = self.node(host).kind if isinstance(host, str) and host in self.graph else "host"
            more = {"switch": " but a switch", "router": " but a router without a machine (a role in nodes gives it one)"}
            raise UsageError(
                f"{shown(host)} is no host of this topology{more.get(kind, '')}; hosts are {first_names(self.hosts)}"
            )
        return found

    def hosts_of(self, name: str) -> list[str]:
        """Return the hosts of a name: the host itself, or all members of a counted group. UsageError for an unknown name."""
        if isinstance(name, str) and name in self._base:
            return [self.member_name(name, place) for place in range(self.size(name))]
        self.member(name)
        return [self.router_machines.get(name, name)]

    def index(self, host: str) -> int:
        """Return the index of a host in `hosts`."""
        node, place = self.member(host)
        return self._base[node] + place

    def base(self, node: str) -> int:
        """Return the index in `hosts` of the first host of a graph node."""
        return self._base[node]

    def _find(self, host: str) -> Member | None:
        host = self.router_machines.get(host, host)
        if host in self._base and host not in self._counts:
            return Member(host, 0)
        # A group's name may itself end in digits, so each split is tried; at most one matches.
        for cut in range(len(host.rstrip("0123456789")), len(host)):
            node = host[:cut]
            if node in self._counts and host[cut] != "0" and (number := int(host[cut:])) <= self._counts[node]:
                return Member(node, number - 1)
        return None

    def _check_names(self) -> None:
        """Raise ConfigError if two hosts have the same name, plain hosts or members of counted groups."""
        groups = self._counts
        for name in self.graph:
            if name not in groups and any(_names_member(name, group, count) for group, count in groups.items()):
                raise ConfigError(f"node {name}: the name is also that of a member of a counted group")
        for name in groups:
            for other in groups:
                if name != other and _names_member(f"{name}{self.size(name)}", other, self.size(other)):
                    raise ConfigError(f"node {name}: its members have the same names as members of {other}")


def _names_member(name: str, group: str, count: int) -> bool:
    number = name[len(group) :]
    return name.startswith(group) and number.isdigit() and number[0] != "0" and int(number) <= count


def _check(graph: Graph) -> None:
    if not isinstance(graph, nx.DiGraph) or graph.is_multigraph():
        raise ConfigError(f"topology: {shown(graph)} is not allowed; a directed graph of networkx")
    if not graph:
        raise ConfigError("topology: has no nodes")
    for name, attributes in graph.nodes(data=True):
        _check_node(graph, name, attributes)
    for near, far, attributes in graph.edges(data=True):
        if near == far:
            raise ConfigError(f"link {near}-{far}: joins a node to itself")
        if not isinstance(attributes.get("link"), LinkSpec):
            raise ConfigError(f"link {near}-{far}: has no LinkSpec")
        if not graph.has_edge(far, near):
            raise ConfigError(f"link {near}-{far}: has no opposite direction {far}-{near}")
    for name in graph:
        _check_single_mac(graph, name, graph.nodes[name]["node"])
        _check_hub(graph, name, graph.nodes[name]["node"])
        _check_pausing(graph, name, graph.nodes[name]["node"])
    _check_connected(graph)


def _check_node(graph: Graph, name: str, attributes: dict[str, Any]) -> None:
    if not isinstance(name, str) or not name or not name.isprintable():
        raise ConfigError(f"node {name!r}: the name is not allowed; printable text of at least one character")
    spec = attributes.get("node")
    if not isinstance(spec, NodeSpec):
        raise ConfigError(f"node {name}: has no NodeSpec")
    if spec.kind not in ("host", "switch", "router"):
        raise ConfigError(f"node {name}: kind {spec.kind!r} is not allowed; host, switch or router")
    if spec.count is None:
        return
    if isinstance(spec.model, HostModel) and spec.model.pause:
        raise ConfigError(f"nodes.{name}.pause: True is not allowed; only for a host without a count")
    if spec.kind != "host" or graph.out_degree(name) != 1:
        raise ConfigError(f"node {name}: count is only for a leaf host with one link")
    if not isinstance(spec.count, Integral) or spec.count < 1:
        raise ConfigError(f"node {name}: count {spec.count!r} is not allowed; at least 1")
    (neighbour,) = graph.successors(name)
    if graph.nodes[neighbour]["node"].kind == "host":
        raise ConfigError(f"node {name}: a node with a count must be linked to a switch, not to {neighbour}")


def _check_single_mac(graph: Graph, name: str, spec: NodeSpec) -> None:
    if isinstance(spec.model, RouterModel) and spec.model.mac == "single":
        for near, far in [*graph.in_edges(name), *graph.out_edges(name)]:
            if graph.edges[near, far]["link"].rate < inf:
                raise ConfigError(f"link {near}-{far}: rate is not allowed; {name} is a router of mac single and has the rate")


def _check_hub(graph: Graph, name: str, spec: NodeSpec) -> None:
    """Raise ConfigError for a link of a hub with a rate of its own, and for one between two hubs, which are one medium."""
    if not spec.is_hub:
        return
    for near, far in [*graph.in_edges(name), *graph.out_edges(name)]:
        if graph.edges[near, far]["link"].rate < inf:
            raise ConfigError(f"link {near}-{far}: rate is not allowed; {name} is a hub and has the rate")
    for far in graph.successors(name):
        if graph.nodes[far]["node"].is_hub:
            raise ConfigError(f"link {name}-{far}: is not allowed between two hubs; make them one, or put a switch between")


def _check_pausing(graph: Graph, name: str, spec: NodeSpec) -> None:
    """Raise ConfigError if a link of a node with flow control is not plain, since only plain queues can be paused."""
    if isinstance(spec.model, (HostModel, SwitchModel)) and spec.model.pause:
        for near, far in [*graph.in_edges(name), *graph.out_edges(name)]:
            if not graph.edges[near, far]["link"].plain:
                only = "rate, a constant delay, a queue in packets and a loss without script"
                raise ConfigError(f"link {near}-{far}: more than {only} is not allowed; {name} pauses")


def _check_connected(graph: Graph) -> None:
    """Raise ConfigError unless every node is reachable from every other through switches; hosts don't forward."""
    names: Iterable[str] = graph
    first = next(iter(names))
    reached, frontier = {first}, [first]
    while frontier:
        near = frontier.pop()
        if near != first and graph.nodes[near]["node"].kind == "host":
            continue
        fresh = [far for far in graph.successors(near) if far not in reached]
        reached.update(fresh)
        frontier.extend(fresh)
    for name in graph:
        if name not in reached:
            raise ConfigError(f"node {name}: is not connected to {first}")


def connect(graph: Graph, near: str, far: str, attributes: LinkAttributes) -> None:
    """Link two nodes; `down` is the direction from `near` to `far`."""
    down, up = attributes.specs()
    graph.add_edge(near, far, link=down)
    graph.add_edge(far, near, link=up)


def with_router_machines(topology: Topology, routers: Iterable[str]) -> Topology:
    """Return a topology in which each of these routers has a host beside it that runs its machine: `g1.host` for router g1.

    The host is linked to the router without delay, and the name of the router stands for it. Packets to it pass the adapter and
    the processor of the router, packets of its own the processor and then the adapter. ConfigError if the name is taken.
    """
    graph: Graph = topology.graph.copy()
    for name in routers:
        host = f"{name}.host"
        if host in graph:
            raise ConfigError(f"node {host}: the name is that of the machine of router {name}")
        graph.add_node(host, node=NodeSpec("host", bystander=True, router=name))
        connect(graph, name, host, LinkAttributes())
    return Topology(graph, topology.multicast)
