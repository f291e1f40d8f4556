"""The hosts that a multicast packet must reach in an emulated network, and those whose links it may pass in addition."""

from collections.abc import Collection
from dataclasses import dataclass

from topologies.spec import Topology
from topologies.trees import group_tree, stations

__all__ = ["MulticastReach", "expected_reach"]


@dataclass(frozen=True, slots=True)
class MulticastReach:
    """Hosts that packets of `source` to `group` must reach (`required`), and those whose devices they may pass (`allowed`).

    Without pruning switches flood, and hubs always do, so packets pass more devices than they have to reach.
    """

    source: str
    group: str
    required: frozenset[str]
    allowed: frozenset[str]


def expected_reach(topology: Topology, source: str, group: str, hosts: Collection[str], ttl: int) -> MulticastReach:
    """Return where a packet of `source` to a group of these hosts goes, by the simulator's multicast trees."""
    (root,) = topology.graph.successors(topology.member(source).node)
    pruning = topology.multicast.pruning
    members = [topology.member(host).node for host in hosts] if pruning else topology.host_nodes
    tree = group_tree(topology, root, members, ttl=ttl)
    nodes = {far for below in tree.values() for far in below}
    required = frozenset(host for host in hosts if topology.member(host).node in nodes) - {source}
    if pruning:
        hubs = [node for node in {root, *nodes} if topology.node(node).is_hub]
        near = frozenset(host for hub in hubs for node in stations(topology, hub) for host in topology.hosts_of(node))
        return MulticastReach(source, group, required, required | near - {source})
    flooded = {other for node in (*nodes, root) if not _is_router(topology, node) for other in _segment(topology, node)}
    allowed = frozenset(host for node in topology.host_nodes if node in flooded for host in topology.hosts_of(node))
    return MulticastReach(source, group, required, allowed - {source})


def _is_router(topology: Topology, node: str) -> bool:
    return topology.node(node).kind == "router"


def _segment(topology: Topology, node: str) -> set[str]:
    """Return the graph nodes of the broadcast domain of `node`: those it reaches without passing a router."""
    found, frontier = {node}, [node]
    while frontier:
        near = frontier.pop()
        fresh = [far for far in topology.graph.successors(near) if far not in found and not _is_router(topology, far)]
        found.update(fresh)
        frontier.extend(fresh)
    return found
