"""Place the nodes of a topology: trees from left to right, other graphs by a spring layout."""

from math import cos, pi, sin

import networkx as nx

from topologies.spec import Topology

__all__ = ["Places", "place_nodes"]

Places = dict[str, tuple[float, float]]
_LEVEL, _ROW = 190.0, 58.0
_SPRINGS = 300


def place_nodes(topology: Topology) -> Places:
    """Return the coordinates of every graph node, from (0, 0) rightwards and downwards."""
    graph: nx.Graph[str] = nx.Graph()
    graph.add_nodes_from(topology.graph)
    graph.add_edges_from((near, far) for near, far, _ in topology.links)
    places = _tree(topology, graph) if nx.is_tree(graph) else _springs(graph)
    left, top = min(x for x, _ in places.values()), min(y for _, y in places.values())
    return {name: (x - left, y - top) for name, (x, y) in places.items()}


def _tree(topology: Topology, graph: "nx.Graph[str]") -> Places:
    """Place leaves below one another, and each inner node beside the middle of its subtree."""
    root = topology.host_nodes[0]
    below = {near: list(far) for near, far in nx.bfs_successors(graph, root)}
    depth = nx.single_source_shortest_path_length(graph, root)
    rows: dict[str, float] = {}
    for name in nx.dfs_postorder_nodes(graph, root):
        behind = [rows[far] for far in below.get(name, ())]
        rows[name] = (min(behind) + max(behind)) / 2 if behind else sum(other not in below for other in rows) * _ROW
    return {name: (depth[name] * _LEVEL, row) for name, row in rows.items()}


def _springs(graph: "nx.Graph[str]") -> Places:
    """Run a spring layout from a circle, so that the result is deterministic."""
    names = list(graph)
    circle = {name: (cos(2 * pi * n / len(names)), sin(2 * pi * n / len(names))) for n, name in enumerate(names)}
    found = nx.spring_layout(graph, pos=circle, iterations=_SPRINGS, k=1.6 / len(names) ** 0.5, seed=1)
    spread = _LEVEL * 0.62 * len(names) ** 0.5
    return {name: (float(x) * spread, float(y) * spread * 0.62) for name, (x, y) in found.items()}
