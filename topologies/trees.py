"""Routing, common to the simulator and Mininet: shortest paths, and multicast distribution trees.

Among equally short paths, the one over the node added to the graph first is taken, so a tree depends on the topology only.
"""

from collections.abc import Iterable
from typing import cast

import networkx as nx

from topologies.spec import Graph, Topology

__all__ = ["distribution", "forwarding", "group_tree", "in_scope", "looped_switches", "next_hops", "stations", "with_hubs"]


def forwarding(topology: Topology) -> Graph:
    """Return the graph of forwarding nodes: the topology without edges out of hosts, which don't forward."""
    graph: Graph = nx.DiGraph()
    graph.add_nodes_from(topology.graph)
    for near, far, spec in topology.links:
        if topology.node(near).kind != "host":
            graph.add_edge(near, far, delay=spec.delay)
    return graph


def _parents(topology: Topology, graph: Graph, root: str) -> dict[str, str]:
    """Return the predecessor of each reachable node on its shortest path from `root`."""
    if topology.node(root).kind == "host":
        graph = graph.copy()
        graph.add_edges_from((root, far, {"delay": topology.link(root, far).delay}) for far in topology.graph.successors(root))
    if topology.multicast.metric == "hops":
        # Not `bfs_edges`, which takes four times as long.
        found = cast(dict[str, list[str]], nx.predecessor(graph, root))
        return {far: near[0] for far, near in found.items() if near}
    # A hop costs 1 ns, so that among paths of equal delay the one with fewer hops is shorter.
    predecessors, _ = nx.dijkstra_predecessor_and_distance(graph, root, weight=lambda near, far, data: data["delay"] + 1e-9)
    return {far: near[0] for far, near in predecessors.items() if near}


def distribution(
    topology: Topology, root: str, members: Iterable[str], graph: "Graph | None" = None
) -> dict[str, tuple[str, ...]]:
    """Return the tree of shortest paths from `root` to `members` (graph nodes): the children of each node, in graph order.

    `graph` is `forwarding(topology)`, for callers that compute many trees. A root among the members is ignored.
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
    """Return the tree of a multicast from `root` to `members` by `Topology.multicast`, in the form of `distribution`.

    With `ttl` (hops) it ends at the router that decrements the TTL to 0, whose own machine gets it; switches don't decrement
    it.
    """
    graph = forwarding(topology) if graph is None else graph
    rules = topology.multicast
    if rules.tree == "shortest":
        tree = distribution(topology, root, members, graph)
    else:
        tree = _children(topology, _parents_on_tree(topology, root, graph), root, members)
    return tree if ttl is None else _within(topology, tree, root, ttl)


def with_hubs(topology: Topology, tree: dict[str, tuple[str, ...]], root: str) -> dict[str, tuple[str, ...]]:
    """Return the tree of a multicast with the hosts on its hubs, which hear it, members or not."""
    order = {name: place for place, name in enumerate(topology.graph)}
    heard = dict(tree)
    for name in {root: None} | {far: None for below in tree.values() for far in below}:
        if topology.node(name).is_hub:
            heard[name] = tuple(sorted({*tree.get(name, ()), *stations(topology, name)}, key=order.__getitem__))
    return heard


def stations(topology: Topology, hub: str) -> list[str]:
    """Return the graph nodes of the hosts on a hub, which hear all that it forwards."""
    return [far for far in topology.graph.successors(hub) if topology.node(far).kind == "host"]


def _parents_on_tree(topology: Topology, root: str, graph: Graph) -> dict[str, str]:
    """Return the predecessor of each node on its path from `root` along a static or shared tree."""
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
    """Return the part of a tree that a packet of this TTL traverses."""
    reached: dict[str, tuple[str, ...]] = {}
    frontier = [(root, ttl)]
    while frontier:
        node, left = frontier.pop()
        left -= topology.node(node).kind == "router"
        below = tree.get(node, ())
        if left <= 0:
            below = tuple(far for far in below if far == topology.router_machines.get(node))
        if below:
            reached[node] = below
            frontier += [(far, left) for far in below]
    return reached


def in_scope(topology: Topology, root: str, ttl: int) -> list[str]:
    """Return the host nodes that a multicast from host `root` reaches with this TTL, `root` included."""
    tree = group_tree(topology, root, [name for name in topology.host_nodes if name != root], ttl=ttl)
    reached = frozenset(far for below in tree.values() for far in below)
    return [name for name in topology.host_nodes if name in reached or name == root]


def next_hops(topology: Topology, node: str, graph: "Graph | None" = None) -> dict[str, str]:
    """Return the unicast routes of `node`: for every other reachable graph node, the neighbour on the path to it."""
    parents = _parents(topology, forwarding(topology) if graph is None else graph, node)
    hops: dict[str, str] = {}
    for far in parents:
        path = [far]
        while path[-1] not in hops and parents[path[-1]] != node:
            path.append(parents[path[-1]])
        hop = hops.get(path[-1], path[-1])
        hops.update(dict.fromkeys(path, hop))
    return hops


def looped_switches(topology: Topology) -> frozenset[str]:
    """Return the switches in loops without a router, in which a frame that is flooded goes round for ever."""
    undirected = topology.graph.to_undirected()
    segments = undirected.subgraph(name for name in topology.switches if topology.node(name).kind == "switch")
    loops = nx.restricted_view(segments, [], list(nx.bridges(segments)))
    return frozenset(name for name in segments if loops.degree(name))
