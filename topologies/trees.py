"""Which way packets go, the same for simulator and emulator: shortest paths, and the trees of groups.

Ties go to the node that was added to the graph first, so a tree is a function of the topology alone.
"""

from collections.abc import Iterable

import networkx as nx

from topologies.spec import Graph, Topology

__all__ = ["distribution", "forwarding", "group_tree", "in_scope", "next_hops"]


def forwarding(topology: Topology) -> Graph:
    """The graph packets move in once they left their host: edges out of hosts are missing, since hosts forward nothing."""
    graph: Graph = nx.DiGraph()
    graph.add_nodes_from(topology.graph)
    for near, far, spec in topology.links:
        if topology.node(near).kind != "host":
            graph.add_edge(near, far, delay=spec.delay)
    return graph


def _parents(topology: Topology, graph: Graph, root: str) -> dict[str, str]:
    """Each reachable node's predecessor on its path from `root`."""
    if topology.node(root).kind == "host":
        graph = graph.copy()
        graph.add_edges_from((root, far, {"delay": topology.link(root, far).delay}) for far in topology.graph.successors(root))
    if topology.multicast.metric == "hops":
        return {far: near for near, far in nx.bfs_edges(graph, root)}
    # A hop costs a little, so that links without delay are not taken for nothing.
    predecessors, _ = nx.dijkstra_predecessor_and_distance(graph, root, weight=lambda near, far, data: data["delay"] + 1e-9)
    return {far: near[0] for far, near in predecessors.items() if near}


def distribution(
    topology: Topology, root: str, members: Iterable[str], graph: "Graph | None" = None
) -> dict[str, tuple[str, ...]]:
    """The tree of shortest paths from graph node `root` to `members`: children of every node that forwards, in graph order.

    `graph` is `forwarding(topology)`, handed in by callers that need many trees. A root among the members adds nothing.
    """
    parents = _parents(topology, forwarding(topology) if graph is None else graph, root)
    return _children(topology, parents, root, members)


def _children(topology: Topology, parents: dict[str, str], root: str, members: Iterable[str]) -> dict[str, tuple[str, ...]]:
    # Dictionaries keep insertion order where sets would depend on the hash seed.
    children: dict[str, dict[str, None]] = {}
    for member in members:
        node = member
        while node != root and node not in children.get(parents[node], ()):
            children.setdefault(parents[node], {})[node] = None
            node = parents[node]
    order = {name: place for place, name in enumerate(topology.graph)}
    return {near: tuple(sorted(below, key=order.__getitem__)) for near, below in children.items()}


def group_tree(
    topology: Topology, root: str, members: Iterable[str], graph: "Graph | None" = None, ttl: int | None = None
) -> dict[str, tuple[str, ...]]:
    """The tree a multicast from `root` takes to `members`, by the rules of `Topology.multicast`; form of `distribution`.

    With `ttl` it ends at the router that would count it down to 0; switches don't count.
    """
    graph = forwarding(topology) if graph is None else graph
    rules = topology.multicast
    if rules.tree == "shortest":
        tree = distribution(topology, root, members, graph)
    else:
        tree = _children(topology, _parents_on_tree(topology, root, graph), root, members)
    return tree if ttl is None else _within(topology, tree, root, ttl)


def _parents_on_tree(topology: Topology, root: str, graph: Graph) -> dict[str, str]:
    """Predecessors on the way from `root` along one tree without direction."""
    rules = topology.multicast
    if isinstance(rules.tree, tuple):
        edges: Iterable[tuple[str, str]] = rules.tree
    else:
        assert rules.core is not None
        edges = ((near, far) for far, near in _parents(topology, graph, rules.core).items())
    undirected: nx.Graph[str] = nx.Graph()
    undirected.add_nodes_from(topology.graph)
    undirected.add_edges_from(edges)
    return {far: near for near, far in nx.bfs_edges(undirected, root)}


def _within(topology: Topology, tree: dict[str, tuple[str, ...]], root: str, ttl: int) -> dict[str, tuple[str, ...]]:
    """The part of a tree a packet of this TTL gets through."""
    reached: dict[str, tuple[str, ...]] = {}
    frontier = [(root, ttl)]
    while frontier:
        node, left = frontier.pop()
        left -= topology.node(node).kind == "router"
        if left > 0 and node in tree:
            reached[node] = tree[node]
            frontier += [(far, left) for far in tree[node]]
    return reached


def in_scope(topology: Topology, root: str, ttl: int) -> list[str]:
    """The graph nodes that are hosts and that a multicast of host `root` reaches with this TTL."""
    tree = group_tree(topology, root, [name for name in topology.host_nodes if name != root], ttl=ttl)
    reached = frozenset(far for below in tree.values() for far in below)
    return [name for name in topology.host_nodes if name in reached or name == root]


def next_hops(topology: Topology, node: str, graph: "Graph | None" = None) -> dict[str, str]:
    """For every other reachable graph node, the neighbour of `node` that a packet to it goes to (unicast)."""
    parents = _parents(topology, forwarding(topology) if graph is None else graph, node)
    hops: dict[str, str] = {}
    for far in parents:
        path = [far]
        while path[-1] not in hops and parents[path[-1]] != node:
            path.append(parents[path[-1]])
        hop = hops.get(path[-1], path[-1])
        hops.update(dict.fromkeys(path, hop))
    return hops
