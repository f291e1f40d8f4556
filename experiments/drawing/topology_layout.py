"""Place the nodes of a topology so that their boxes don't overlap: trees in columns, other graphs by ForceAtlas2."""

from collections.abc import Mapping
from typing import TypeAlias

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from experiments.drawing.boxes import Box, Point
from topologies.spec import Topology

__all__ = ["Places", "graph_of", "place_nodes"]

Places = dict[str, Point]
Widths: TypeAlias = Mapping[tuple[str, str], float]
"""Width in pixels of the label of each labelled direction of a link."""
_COLUMN_GAP, _ROW_GAP, _LABELLED_ROW = 90.0, 10.0, 23.0
_STEEPEST = 3.5
"""Largest slope of a tree's links, so that those of a node with many children can be told apart."""
_SMALL = Box(-24.0, -16.0, 24.0, 16.0)
_EDGE = 170.0
"""Mean length in pixels of the links of a graph with cycles."""
_FLAT = 0.7
"""Height of such a graph in relation to the layout's, since pages are wide."""
_ITERATIONS, _SWEEPS = 400, 400


def graph_of(topology: Topology) -> "nx.Graph[str]":
    """Return the undirected graph of the nodes and links."""
    graph: nx.Graph[str] = nx.Graph()
    graph.add_nodes_from(topology.graph)
    graph.add_edges_from((near, far) for near, far, _ in topology.links)
    return graph


def place_nodes(
    topology: Topology, boxes: Mapping[str, Box] | None = None, labels: Widths | None = None, scale: float = 1.0
) -> Places:
    """Return the coordinates of every graph node; the outline of all boxes begins at (0, 0).

    `boxes` has the extent of each node around its place, its name included (default: that of a short name). `labels` has the
    widths of the labels of links, for which trees leave room. `scale` stretches the links.
    """
    graph = graph_of(topology)
    boxes, labels = boxes or dict.fromkeys(graph, _SMALL), labels or {}
    places = _tree(topology, graph, boxes, labels, scale) if nx.is_tree(graph) else _cyclic(graph, boxes, scale)
    left = min(x + boxes[name].left for name, (x, _) in places.items())
    top = min(y + boxes[name].top for name, (_, y) in places.items())
    return {name: (x - left, y - top) for name, (x, y) in places.items()}


def _tree(topology: Topology, graph: "nx.Graph[str]", boxes: Mapping[str, Box], labels: Widths, scale: float) -> Places:
    """Place leaves below one another, and each inner node beside the middle of its children."""
    root = topology.host_nodes[0]
    children = dict(nx.bfs_successors(graph, root))
    widths = {
        far: max(labels.get((near, far), 0.0), labels.get((far, near), 0.0)) for near in children for far in children[near]
    }
    rows: dict[str, float] = {}
    y = 0.0
    for name in nx.dfs_postorder_nodes(graph, root):
        if name in children:
            behind = [rows[far] for far in children[name]]
            rows[name] = (min(behind) + max(behind)) / 2
        else:
            # A label above the link and one below it.
            room = _LABELLED_ROW * scale if widths.get(name) else 0.0
            rows[name] = y + max(-boxes[name].top, room)
            y = rows[name] + max(boxes[name].bottom, room) + _ROW_GAP
    columns, x = dict[str, float](), 0.0
    for level in nx.bfs_layers(graph, [root]):
        x += max(-boxes[name].left for name in level)
        columns |= dict.fromkeys(level, x)
        inner = [name for name in level if name in children]
        if inner:
            # A leaf has its row to itself, so it may reach beneath the next column.
            x += max(boxes[name].right for name in inner)
            label = max(widths[far] for name in inner for far in children[name])
            high = max(abs(rows[far] - rows[name]) for name in inner for far in children[name])
            x += max((_COLUMN_GAP + label) * scale, high / _STEEPEST)
    return {name: (columns[name], rows[name]) for name in graph}


def _cyclic(graph: "nx.Graph[str]", boxes: Mapping[str, Box], scale: float) -> Places:
    """Place nodes by ForceAtlas2, scale the links to a mean length, and move overlapping boxes apart."""
    found = nx.forceatlas2_layout(graph, max_iter=_ITERATIONS, seed=1)
    names = list(graph)
    at = np.array([found[name] for name in names], dtype=float)
    index = {name: place for place, name in enumerate(names)}
    lengths = [float(np.hypot(*(at[index[near]] - at[index[far]]))) for near, far in graph.edges]
    at *= _EDGE * scale / (sum(lengths) / len(lengths) or 1.0)
    at[:, 1] *= _FLAT
    _move_apart(at, np.array([boxes[name] for name in names]), 22.0 * scale)
    return {name: (float(x), float(y)) for name, (x, y) in zip(names, at, strict=True)}


def _move_apart(at: NDArray[np.float64], boxes: NDArray[np.float64], gap: float) -> None:
    """Move overlapping boxes apart, along the axis in which they overlap least, until there is a gap between all."""
    half = (boxes[:, 2:] - boxes[:, :2] + gap) / 2
    middle = (boxes[:, 2:] + boxes[:, :2]) / 2
    reach = half[:, None] + half[None]
    # Boxes in one place are pushed by the order of the nodes.
    apart = ~np.eye(len(at), dtype=bool)
    order = np.sign(np.arange(len(at))[:, None] - np.arange(len(at))[None])[:, :, None]
    for _ in range(_SWEEPS):
        centre = at + middle
        offset = centre[:, None] - centre[None]
        depth = reach - np.abs(offset)
        hit = (depth.min(axis=2) > 1e-6) & apart
        if not hit.any():
            return
        least = depth == depth.min(axis=2, keepdims=True)
        push = np.where(offset == 0, order, np.sign(offset)) * depth * least * hit[:, :, None]
        at += push.sum(axis=1) * 0.26
    # What does not come apart this way is spread as a whole.
    while bool((((reach - np.abs((at + middle)[:, None] - (at + middle)[None])).min(axis=2) > 1e-3) & apart).any()):
        at *= 1.1
