"""Which way packets go: shortest paths in hops, the same for simulator and emulator.

Ties go to the node that was added to the graph first, so a tree is a function of the topology alone.
"""

from collections.abc import Iterable

import networkx as nx

from topologies.spec import Graph, Topology

__all__ = ["distribution", "forwarding", "next_hops"]


def forwarding(topology: Topology) -> Graph:
    """The graph packets move in once they left their host: edges out of hosts are missing, since hosts forward nothing."""
    graph: Graph = nx.DiGraph()
    graph.add_nodes_from(topology.graph)
    graph.add_edges_from(edge for edge in topology.graph.edges if topology.node(edge[0]).kind == "switch")
    return graph


def _parents(topology: Topology, graph: Graph, root: str) -> dict[str, str]:
    """Each reachable node's predecessor on its path from `root`."""
    if topology.node(root).kind == "host":
        graph = graph.copy()
        graph.add_edges_from((root, far) for far in topology.graph.successors(root))
    return {far: near for near, far in nx.bfs_edges(graph, root)}


def distribution(
    topology: Topology, root: str, members: Iterable[str], graph: "Graph | None" = None
) -> dict[str, tuple[str, ...]]:
    """The tree from graph node `root` to the graph nodes `members`: children of every node that forwards, in graph order.

    `graph` is `forwarding(topology)`, handed in by callers that need many trees. A root among the members adds nothing.
    """
    parents = _parents(topology, forwarding(topology) if graph is None else graph, root)
    # Dictionaries keep insertion order where sets would depend on the hash seed.
    children: dict[str, dict[str, None]] = {}
    for member in members:
        node = member
        while node != root and node not in children.get(parents[node], ()):
            children.setdefault(parents[node], {})[node] = None
            node = parents[node]
    order = {name: place for place, name in enumerate(topology.graph)}
    return {near: tuple(sorted(below, key=order.__getitem__)) for near, below in children.items()}


def next_hops(topology: Topology, node: str, graph: "Graph | None" = None) -> dict[str, str]:
    """For every other reachable graph node, the neighbour of `node` that a packet to it goes to (unicast)."""
    parents = _parents(topology, forwarding(topology) if graph is None else graph, node)
    hops: dict[str, str] = {}
    # Breadth first: a parent's hop is known before its children's.
    for far, near in parents.items():
        hops[far] = far if near == node else hops[near]
    return hops
