"""Properties of the path from each sender to its receivers, computed from a scenario: delay, loss, rate, MTU and members."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf, prod
from typing import TypeAlias

from experiments.report.run_report_routes import Routes
from experiments.running.participants import MulticastSession
from experiments.scenario.scenario import Scenario
from experiments.workload.file import FileWorkload
from experiments.workload.membership import receivers_of
from topologies.ethernet import size_on_link
from topologies.line import damage_probability
from topologies.spec import LinkSpec, Topology
from topologies.trees import in_scope

__all__ = ["HEADER", "LostWays", "SessionFacts", "lost_publications", "sessions_of"]

HEADER = 40
"""Bytes of a protocol's header in a packet of content, about."""
_OUTAGES = ("flap", "change", "partition")
REQUEST = 60
"""Bytes of UDP payload of a NACK, about."""


_Way: TypeAlias = Sequence[tuple[str, LinkSpec]]
"""The links of a way by their names."""


@dataclass(frozen=True, slots=True)
class LostWays:
    """Nodes to or from which no packet comes, and the links on the way that lose or damage every one."""

    nodes: tuple[str, ...]
    links: Mapping[str, LinkSpec]


@dataclass(frozen=True, slots=True)
class SessionFacts:
    """The network between one sender and the receivers of its group, and what it sends.

    `rtt` is the longest round trip in seconds, for a packet of content and a request back, without queues; `apart` the longest
    way from one receiver to another. `loss` is the mean loss of content, damaged packets included, on the way to the receiver
    that loses most, `shared` the part of it on links before the ways of receivers part; `fragment_loss` is the mean loss of one
    fragment, damage not included. `narrowest` is the link with the least `rate` (bytes of UDP payload per second, in packets
    of content). `mtu` is the least of all links, None without any. `out_of_scope` are receivers beyond the TTL. Nothing that
    is sent comes to the receivers of `lost`, and no feedback comes from those of `unheard`.
    """

    sender: str
    works: tuple[FileWorkload, ...]
    receivers: int
    rtt: float
    apart: float
    loss: float
    shared: float
    fragment_loss: float
    rate: float
    narrowest: str
    mtu: int | None
    ttl: int | None
    out_of_scope: tuple[str, ...]
    lost: LostWays
    unheard: LostWays
    has_outages: bool
    """Whether faults of the scenario cut links or change them, so that all receivers may miss the same packets."""

    @property
    def is_lossy(self) -> bool:
        """Whether anything is lost, as far as the scenario says."""
        return self.loss > 0 or self.has_outages

    @property
    def losers(self) -> int:
        """How many receivers miss the same packet, typically."""
        return self.receivers if self.shared or self.has_outages else max(1, round(self.receivers * self.loss))

    @property
    def octets(self) -> int:
        """The bytes of all files."""
        return sum(work.count * work.size for work in self.works)

    @property
    def own_loss(self) -> float:
        """The mean loss that receivers have independently of each other."""
        return 1 - (1 - self.loss) / (1 - self.shared) if self.shared < 1 else 0.0


def sessions_of(scenario: Scenario) -> list[SessionFacts]:
    """Return the facts of every sender of files."""
    topology = scenario.build_topology()
    routes = Routes(topology)
    groups = dict.fromkeys(work.group for work in scenario.files)
    found = []
    for number, group in enumerate(groups):
        session = MulticastSession(number, group, [work for work in scenario.files if work.group == group])
        default = _default(scenario, topology)
        members = list(receivers_of(topology, session.works, scenario.senders))
        for sender in session.senders:
            works = tuple(work for work in session.works if work.sender == sender)
            others = default if works[0].members is None else members
            found.append(_facts(scenario, topology, routes, works, members, others))
    return found


def lost_publications(scenario: Scenario) -> LostWays:
    """Return the subscribers to which nothing comes from a publisher; none where a role, such as a broker, is between them."""
    if any(node.taken_role is not None for node in scenario.nodes.values()):
        return LostWays((), {})
    topology = scenario.build_topology()
    routes, found = Routes(topology), dict[str, _Way]()
    for work in scenario.publications:
        wanted = dict.fromkeys(name for other in scenario.subscriptions if other.group == work.group for name in other.hosts)
        # Members of a counted group are alike, so one of each stands for all; another one where it publishes to itself.
        for publisher in (topology.hosts_of(name)[0] for name in work.hosts):
            subscribers = (topology.hosts_of(name)[-1] for name in wanted)
            ways = {
                topology.member(host).node: list(_links(topology, routes.path(publisher, host)))
                for host in subscribers
                if host != publisher
            }
            lost = _lost(ways, scenario.segment + HEADER)
            found |= dict.fromkeys(lost.nodes, tuple(lost.links.items()))
    return LostWays(tuple(found), dict(link for way in found.values() for link in way))


def _lost(ways: Mapping[str, _Way], size: int) -> LostWays:
    """Return which nodes are cut off by packets of `size` bytes, of those at the ends of these ways."""
    dead = {node: [link for link in way if _loss([link], size) >= 1] for node, way in ways.items()}
    nodes = tuple(node for node, links in dead.items() if links)
    return LostWays(nodes, dict(link for links in dead.values() for link in links))


def _default(scenario: Scenario, topology: Topology) -> list[str]:
    """Return the hosts that receive a group without named members."""
    sending = frozenset(scenario.senders)
    return [host for host in topology.hosts if host not in sending and not topology.node(topology.member(host).node).bystander]


def _facts(
    scenario: Scenario,
    topology: Topology,
    routes: Routes,
    works: tuple[FileWorkload, ...],
    members: Sequence[str],
    wanted: Sequence[str],
) -> SessionFacts:
    sender = works[0].sender
    # Members of a counted group are alike, so one of each node stands for all.
    nodes = {topology.member(name).node: name for name in reversed(members)}
    ways = [list(_links(topology, routes.path(sender, name))) for name in nodes.values()]
    backs = [list(_links(topology, routes.path(name, sender, unicast=True))) for name in nodes.values()]
    size = scenario.segment + HEADER
    common = _common(topology, ways) if ways and len(members) > 1 else []
    losses = [_loss(way, size) for way in ways]
    rate, narrowest = min(
        ((_payload_rate(spec, size), name) for way in ways for name, spec in way), default=(inf, ""), key=lambda item: item[0]
    )
    mtus = [spec.mtu for way in ways for _, spec in way if spec.mtu is not None]
    ttl = min((work.ttl for work in works if work.ttl is not None), default=None)
    scope = None if ttl is None else frozenset(in_scope(topology, topology.member(sender).node, ttl))
    return SessionFacts(
        sender=sender,
        works=works,
        receivers=len(members),
        rtt=max((_delay(way, size) + _delay(back, REQUEST) for way, back in zip(ways, backs, strict=True)), default=0.0),
        apart=_apart(ways, common) if ways else 0.0,
        loss=max(losses, default=0.0),
        shared=_loss(common, size),
        fragment_loss=max((1 - prod(1 - spec.loss.rate for _, spec in way) for way in ways), default=0.0),
        rate=rate,
        narrowest=narrowest,
        mtu=min(mtus, default=None),
        ttl=ttl,
        out_of_scope=()
        if scope is None
        else tuple(name for name in wanted if name != sender and topology.member(name).node not in scope),
        lost=_lost(dict(zip(nodes, ways, strict=True)), size),
        unheard=_lost(dict(zip(nodes, backs, strict=True)), REQUEST),
        has_outages=any(fault.verb in _OUTAGES for fault in scenario.faults),
    )


def _apart(ways: Sequence[Sequence[tuple[str, LinkSpec]]], common: Sequence[tuple[str, LinkSpec]]) -> float:
    """Return the longest delay from one receiver to another, over the links that their ways do not share."""
    return 2 * max(_delay([link for link in way if link not in common], REQUEST) for way in ways)


def _links(topology: Topology, path: Sequence[str]) -> Iterator[tuple[str, LinkSpec]]:
    ends = [name if name in topology.graph else topology.member(name).node for name in path]
    for near, far in pairwise(ends):
        if topology.graph.has_edge(near, far):
            yield f"{near}-{far}", topology.link(near, far)


def _common(topology: Topology, ways: Sequence[Sequence[tuple[str, LinkSpec]]]) -> list[tuple[str, LinkSpec]]:
    """Return the links that are on all ways; the last one to a counted group is each member's own."""
    common = [link for link in ways[0] if all(link in way for way in ways)]
    counted = [f"-{node}" for node in topology.host_nodes if topology.node(node).count is not None]
    return [link for link in common if not link[0].endswith(tuple(counted))]


def _loss(way: _Way, size: int) -> float:
    """Return the mean loss of packets of `size` bytes, damaged ones included."""
    return 1 - prod(
        (1 - spec.loss.rate) * (1 - damage_probability(spec.corrupt, spec.bit_errors, size_on_link(size, spec.overhead)))
        for _, spec in way
    )


def _payload_rate(spec: LinkSpec, size: int) -> float:
    return spec.rate * size / size_on_link(size, spec.overhead)


def _delay(way: Sequence[tuple[str, LinkSpec]], size: int) -> float:
    """Return the seconds of a packet on its way, without queues; of a random delay its mean."""
    return sum(
        (spec.delay if spec.jitter is None else spec.jitter.sample(0.5, 0))
        + (size_on_link(size, spec.overhead) / spec.rate if spec.rate < inf else 0.0)
        for _, spec in way
    )
