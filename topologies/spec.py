"""A network as data: a networkx graph whose nodes and edges carry checked attributes.

Node attribute `node` is a `NodeSpec`, edge attribute `link` a `LinkSpec`; there is one edge per direction. A group of equal
leaves is one graph node with a `count`, so a million receivers are one node. Nothing here is a running thing: the simulator
and the emulator each build their own from it.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from math import inf, isfinite
from types import NoneType
from typing import Annotated, Any, NamedTuple, TypeAlias, cast

import networkx as nx
from pydantic import BaseModel, ConfigDict, Field, model_serializer

from protocols.errors import ConfigError, UsageError
from topologies.channels import Channel, Loss, Perfect
from topologies.delays import AnyDelay, DelayModel
from topologies.ethernet import Framing
from topologies.multicast import Multicast, check_multicast
from topologies.node_models import HostModel, Kind, Model, RouterModel, SwitchModel
from topologies.queues import AnyQueue, Discipline
from topologies.units import Fraction, Rate, Size

__all__ = ["Direction", "LinkAttributes", "LinkSpec", "Member", "NodeSpec", "Topology", "connect"]

Graph: TypeAlias = "nx.DiGraph[str]"

UDP_OVERHEAD = 42
"""Bytes around a UDP payload on Ethernet: 14 Ethernet, 20 IPv4, 8 UDP."""
LEAST_MTU = 68
"""What every IPv4 link must carry (RFC 791)."""


@dataclass(frozen=True, slots=True)
class LinkSpec:
    """One direction of a link: `rate` in bytes per second, `delay` in seconds, `queue` in packets waiting (None: no limit).

    A packet of `size` bytes of UDP payload takes (size + overhead) / rate to send, or by exact framing
    `topologies.ethernet.wire_bytes(size, overhead)` / rate. Loss comes after the queue. A `discipline` stands for `queue`, a
    `jitter` for `delay`. `duplicate`, `corrupt` (a packet is damaged) and `bit_errors` (a bit is) are probabilities; a packet
    of more than `mtu` bytes of IP travels in fragments and is lost with any of them.
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
        """Is there only rate, constant delay, drop-tail by packets and a loss that asks for nothing but identities?"""
        richer = (self.discipline, self.jitter, self.mtu)
        return self.loss.plain and richer == (None, None, None) and not (self.duplicate or self.corrupt or self.bit_errors)

    def __post_init__(self) -> None:
        if not self.rate > 0:
            raise ConfigError(f"rate: {self.rate!r} is not allowed; more than 0 bytes per second")
        if not (self.delay >= 0 and isfinite(self.delay)):
            raise ConfigError(f"delay: {self.delay!r} is not allowed; a number of seconds of at least 0")
        if self.queue is not None and self.queue < 0:
            raise ConfigError(f"queue: {self.queue!r} is not allowed; a number of packets of at least 0")
        if isinstance(self.overhead, int) and self.overhead < 0:
            raise ConfigError(f"overhead: {self.overhead!r} is not allowed; a number of bytes of at least 0")
        if self.mtu is not None and self.mtu < LEAST_MTU:
            raise ConfigError(f"mtu: {self.mtu!r} is not allowed; a number of bytes of at least {LEAST_MTU}")
        for name in ("duplicate", "corrupt", "bit_errors"):
            if not 0 <= getattr(self, name) <= 1:
                raise ConfigError(f"{name}: {getattr(self, name)!r} is not allowed; a fraction from 0 to 1")


class Direction(BaseModel):
    """Attributes of one direction of a link as a user writes them; what is left out is taken from both directions."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    rate: Rate | None = Field(default=None, description="bits per second like 10Mbit; none: unlimited")
    delay: AnyDelay = Field(default=0.0, description="propagation delay like 5ms, or a delay model")
    queue: AnyQueue = Field(default=None, description="packets that may wait (none: no limit), or a queue model")
    loss: Loss = Field(default_factory=Perfect, description="loss like 1%, or a channel by its model")
    duplicate: Fraction = Field(default=0.0, description="packets that come twice, like 1%")
    corrupt: Fraction = Field(default=0.0, description="packets damaged on the way, like 0.1%; the UDP checksum drops them")
    bit_errors: Fraction = Field(default=0.0, description="bits damaged on the way, like 1e-7")
    mtu: Annotated[Size, Field(ge=LEAST_MTU)] | None = Field(
        default=None, description="largest IP packet in bytes, like 1500; larger ones travel in fragments. none: any size fits"
    )
    overhead: Annotated[int, Field(strict=True, ge=0)] | Framing = Field(
        default=UDP_OVERHEAD, description="bytes around a UDP payload, or an exact framing: ethernet, ethernet-802.1q"
    )

    def spec(self) -> LinkSpec:
        """The same as a `LinkSpec`."""
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
    """Attributes of a link: for both directions, overridden by `down` (away from the sender) and `up` (towards it)."""

    down: Direction | None = Field(default=None, description="overrides for the direction away from the sender")
    up: Direction | None = Field(default=None, description="overrides for the direction towards the sender")

    def specs(self) -> tuple[LinkSpec, LinkSpec]:
        """(down, up)."""
        return self._overridden(self.down).spec(), self._overridden(self.up).spec()

    @model_serializer
    def _effective(self) -> dict[str, Any]:
        return self.directions()

    def directions(self) -> dict[str, Any]:
        """Both directions in full, so that equal links are dumped equal however they were written."""
        return {"down": self._overridden(self.down).model_dump(), "up": self._overridden(self.up).model_dump()}

    def _overridden(self, by: Direction | None) -> Direction:
        written = {} if by is None else {name: getattr(by, name) for name in by.model_fields_set}
        return Direction.model_construct(**{name: getattr(self, name) for name in Direction.model_fields} | written)


@dataclass(frozen=True, slots=True)
class NodeSpec:
    """A node: a host runs a protocol and forwards nothing, a switch or router forwards. `count` makes it many equal leaf hosts.

    `model` is what it does to packets besides, None for nothing; a `bystander` takes no part in a session unless it is named.
    """

    kind: Kind = "host"
    count: int | None = None
    model: Model | None = None
    bystander: bool = False


class Member(NamedTuple):
    """Where a host lives: its graph node and, in a counted group, its place there (0 for a plain host)."""

    node: str
    place: int


class Topology:
    """A checked graph with the accessors both worlds need. ConfigError names the node or link that is wrong."""

    def __init__(self, graph: Graph, multicast: Multicast | None = None) -> None:
        self.graph = graph
        self.multicast = Multicast() if multicast is None else multicast
        _check(graph)
        check_multicast(self.multicast, graph)
        self._base: dict[str, int] = {}
        total = 0
        for name in self.host_nodes:
            self._base[name] = total
            total += self.size(name)
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
        """Every host by name, in a fixed order; a leaf `r` with count 8 is `r1` to `r8`."""
        return tuple(self.member_name(node, place) for node in self.host_nodes for place in range(self.size(node)))

    @property
    def links(self) -> list[tuple[str, str, LinkSpec]]:
        """(from, to, spec) of every direction of every link."""
        return [(near, far, self.link(near, far)) for near, far in self.graph.edges]

    def node(self, name: str) -> NodeSpec:
        """What is known of a graph node."""
        return cast(NodeSpec, self.graph.nodes[name]["node"])

    def link(self, near: str, far: str) -> LinkSpec:
        """The direction from `near` to `far` (graph nodes)."""
        return cast(LinkSpec, self.graph.edges[near, far]["link"])

    def size(self, node: str) -> int:
        """How many hosts a graph node stands for."""
        return self.node(node).count or 1

    def member_name(self, node: str, place: int) -> str:
        """The name of one host of a graph node."""
        return node if self.node(node).count is None else f"{node}{place + 1}"

    def member(self, host: str) -> Member:
        """Where the host of this name lives; UsageError when there is none."""
        found = self._find(host)
        if found is None:
            some = ", ".join(self.hosts[:8]) + (", ..." if len(self.hosts) > 8 else "")
            raise UsageError(f"{host!r} is no host of this topology; hosts are {some}")
        return found

    def hosts_of(self, name: str) -> list[str]:
        """The hosts a name stands for: itself, or all members of a counted group; UsageError when there is none."""
        if name in self._base:
            return [self.member_name(name, place) for place in range(self.size(name))]
        self.member(name)
        return [name]

    def index(self, host: str) -> int:
        """The place of this name in `hosts`."""
        node, place = self.member(host)
        return self._base[node] + place

    def base(self, node: str) -> int:
        """The place in `hosts` of the first host of a graph node."""
        return self._base[node]

    def _find(self, host: str) -> Member | None:
        if host in self._base and self.node(host).count is None:
            return Member(host, 0)
        digits = len(host) - len(host.rstrip("0123456789"))
        # A group's own name may end in digits, so each way to cut the digits is tried; there is at most one that fits.
        for cut in range(len(host) - digits, len(host)):
            node, number = host[:cut], host[cut:]
            if number[0] != "0" and node in self._base and int(number) <= (self.node(node).count or 0):
                return Member(node, int(number) - 1)
        return None

    def _check_names(self) -> None:
        """A plain host must not be called like a member of a group, nor two groups have members of one name."""
        groups = [name for name in self.host_nodes if self.node(name).count is not None]
        for name in self.graph:
            if name not in groups and any(_names_member(name, group, self.size(group)) for group in groups):
                raise ConfigError(f"node {name}: the name is taken by a member of a counted group")
        for name in groups:
            for other in groups:
                if name != other and _names_member(f"{name}{self.size(name)}", other, self.size(other)):
                    raise ConfigError(f"node {name}: its members have the names of members of {other}")


def _names_member(name: str, group: str, count: int) -> bool:
    number = name[len(group) :]
    return name.startswith(group) and number.isdigit() and number[0] != "0" and int(number) <= count


def _check(graph: Graph) -> None:
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
        _check_pausing(graph, name, graph.nodes[name]["node"])
    _check_connected(graph)


def _check_node(graph: Graph, name: str, attributes: dict[str, Any]) -> None:
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
    if spec.count < 1:
        raise ConfigError(f"node {name}: count {spec.count!r} is not allowed; at least 1")
    (neighbour,) = graph.successors(name)
    if graph.nodes[neighbour]["node"].kind == "host":
        raise ConfigError(f"node {name}: a counted leaf hangs on a switch, not on {neighbour}")


def _check_single_mac(graph: Graph, name: str, spec: NodeSpec) -> None:
    if isinstance(spec.model, RouterModel) and spec.model.mac == "single":
        for near, far in [*graph.in_edges(name), *graph.out_edges(name)]:
            if graph.edges[near, far]["link"].rate < inf:
                raise ConfigError(f"link {near}-{far}: rate is not allowed; {name} is a router of mac single and has the rate")


def _check_pausing(graph: Graph, name: str, spec: NodeSpec) -> None:
    """A node that pauses looks into the queues around it, and stops them; only plain ones can be."""
    if isinstance(spec.model, (HostModel, SwitchModel)) and spec.model.pause:
        for near, far in [*graph.in_edges(name), *graph.out_edges(name)]:
            if not graph.edges[near, far]["link"].plain:
                only = "rate, a constant delay, a queue in packets and a loss without script"
                raise ConfigError(f"link {near}-{far}: more than {only} is not allowed; {name} pauses")


def _check_connected(graph: Graph) -> None:
    """Every host reaches every other through switches, since hosts forward nothing."""
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
    """Join two nodes; `near` is the one closer to the sender, so `down` runs from `near` to `far`."""
    down, up = attributes.specs()
    graph.add_edge(near, far, link=down)
    graph.add_edge(far, near, link=up)
