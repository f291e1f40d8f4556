"""Random topologies: `waxman` (Waxman 1988) and `transit-stub` (Zegura, Calvert, Bhattacharjee 1996).

Each depends on its own `seed` only, and not on that of the scenario.
"""

from itertools import combinations
from math import exp, hypot, sqrt
from typing import Literal, TypeAlias

import networkx as nx
from pydantic import Field

from protocols.errors import ConfigError
from protocols.rng import Rng, key_of
from topologies.blueprint import SENDER, SWITCH_LIMIT, Blueprint, leaves
from topologies.delays import longer
from topologies.node_models import HOST_LIMIT
from topologies.spec import Graph, LinkAttributes, NodeSpec, connect
from topologies.units import Duration, Fraction

__all__ = ["TransitStub", "Waxman"]

Point: TypeAlias = tuple[float, float]


def _distance(a: Point, b: Point) -> float:
    return hypot(a[0] - b[0], a[1] - b[1])


def _random_links(names: list[str], points: list[Point], rng: Rng, alpha: float, beta: float) -> list[tuple[int, int]]:
    """Return the links of a Waxman graph as pairs of indices, with the shortest further links that connect it."""
    links: nx.Graph[int] = nx.Graph()
    links.add_nodes_from(range(len(names)))
    pairs = list(combinations(range(len(names)), 2))
    for a, b in pairs:
        if rng.uniform() < beta * exp(-_distance(points[a], points[b]) / (alpha * sqrt(2))):
            links.add_edge(a, b)
    pieces = nx.utils.UnionFind(range(len(names)))
    for a, b in links.edges:
        pieces.union(a, b)
    for a, b in sorted(pairs, key=lambda pair: _distance(points[pair[0]], points[pair[1]])):
        if pieces[a] != pieces[b]:
            pieces.union(a, b)
            links.add_edge(a, b)
    return sorted((min(edge), max(edge)) for edge in links.edges)


def _points(count: int, rng: Rng) -> list[Point]:
    """Return random points in the unit square."""
    return [(rng.uniform(), rng.uniform()) for _ in range(count)]


def _lengthened(link: LinkAttributes, delay: float) -> LinkAttributes:
    """Return the link with `delay` seconds added in both directions."""
    sides = {
        side: part.model_copy(update={"delay": longer(part.delay, delay)})
        for side in ("down", "up")
        if (part := getattr(link, side)) is not None and "delay" in part.model_fields_set
    }
    return link.model_copy(update={"delay": longer(link.delay, delay), **sides})


class Waxman(Blueprint):
    """Switches `s1` to `sN` at random points of a square, linked with probability beta * exp(-distance / (alpha * diagonal)).

    The delay of a link is that of `trunk` plus span * distance / diagonal. `sender` is on `s1`; `rI_J` is the J-th receiver on
    `sI`.
    """

    kind: Literal["waxman"] = "waxman"
    switches: int = Field(ge=1, le=1000, strict=True, description="Number of switches.")
    receivers: int = Field(default=1, ge=1, le=HOST_LIMIT, strict=True, description="Number of receivers on each switch.")
    alpha: Fraction = Field(default=0.3, gt=0.0, description="Waxman's alpha: the larger, the more long links.")
    beta: Fraction = Field(default=0.6, gt=0.0, description="Waxman's beta: the larger, the more links.")
    span: Duration = Field(
        default=0.02, description="Propagation delay along the diagonal, added to that of trunk in proportion to distance."
    )
    seed: int = Field(default=1, ge=0, lt=2**64, strict=True, description="Seed of the random topology.")
    trunk: LinkAttributes = Field(
        default_factory=LinkAttributes, description="The links between switches, and from the sender to s1."
    )
    link: LinkAttributes = Field(default_factory=LinkAttributes, description="The link of each receiver.")

    def graph(self) -> Graph:
        """Return the graph."""
        rng = Rng(key_of(self.seed, "topology", "waxman"))
        points = _points(self.switches, rng)
        names = [f"s{number}" for number in range(1, self.switches + 1)]
        graph: Graph = nx.DiGraph()
        graph.add_node(SENDER, node=NodeSpec("host"))
        graph.add_nodes_from(names, node=NodeSpec("switch"))
        connect(graph, SENDER, "s1", self.trunk)
        for a, b in _random_links(names, points, rng, self.alpha, self.beta):
            connect(graph, names[a], names[b], _lengthened(self.trunk, self.span * _distance(points[a], points[b]) / sqrt(2)))
        for number, name in enumerate(names, 1):
            leaves(graph, name, f"r{number}_", self.receivers, self.link)
        return graph


class TransitStub(Blueprint):
    """A random transit domain of routers, each with stub domains, which are random networks of switches with receivers.

    Transit routers are `t1` to `tN`, stub switches `s1` to `sM` in order; `rI_J` is the J-th receiver on `sI`, `sender`
    is on `s1`. The first switch of a stub domain is linked to its transit router.
    """

    kind: Literal["transit-stub"] = "transit-stub"
    transit: int = Field(default=4, ge=1, le=1000, strict=True, description="Number of transit routers.")
    stubs: int = Field(default=3, ge=1, le=1000, strict=True, description="Number of stub domains per transit router.")
    size: int = Field(default=3, ge=1, le=1000, strict=True, description="Number of switches in a stub domain.")
    receivers: int = Field(default=1, ge=1, le=HOST_LIMIT, strict=True, description="Number of receivers on each stub switch.")
    alpha: Fraction = Field(default=0.4, gt=0.0, description="As in waxman, for transit and stub domains.")
    beta: Fraction = Field(default=0.6, gt=0.0, description="As in waxman, for transit and stub domains.")
    seed: int = Field(default=1, ge=0, lt=2**64, strict=True, description="Seed of the random topology.")
    backbone: LinkAttributes = Field(default_factory=LinkAttributes, description="The links between transit routers.")
    access: LinkAttributes = Field(
        default_factory=LinkAttributes, description="The links from transit routers to stub domains."
    )
    trunk: LinkAttributes = Field(
        default_factory=LinkAttributes, description="The links within stub domains, and from the sender to s1."
    )
    link: LinkAttributes = Field(default_factory=LinkAttributes, description="The link of each receiver.")

    def graph(self) -> Graph:
        """Return the graph. ConfigError above 10,000 switches."""
        total = self.transit * (1 + self.stubs * self.size)
        if total > SWITCH_LIMIT:
            raise ConfigError(f"size: {self.size!r} is not allowed; {total} switches, and {SWITCH_LIMIT} is the limit")
        graph: Graph = nx.DiGraph()
        graph.add_node(SENDER, node=NodeSpec("host"))
        core = [f"t{number}" for number in range(1, self.transit + 1)]
        self._domain(graph, core, NodeSpec("router"), self.backbone, 0)
        switch = 0
        for router in core:
            for _ in range(self.stubs):
                stub = [f"s{switch + number}" for number in range(1, self.size + 1)]
                switch += self.size
                self._domain(graph, stub, NodeSpec("switch"), self.trunk, switch)
                connect(graph, router, stub[0], self.access)
                for name in stub:
                    leaves(graph, name, f"r{name[1:]}_", self.receivers, self.link)
        connect(graph, SENDER, "s1", self.trunk)
        return graph

    def _domain(self, graph: Graph, names: list[str], spec: NodeSpec, link: LinkAttributes, number: int) -> None:
        """Add a random connected domain of these nodes; `number` keys its random stream."""
        rng = Rng(key_of(self.seed, "topology", "transit-stub", number))
        graph.add_nodes_from(names, node=spec)
        for a, b in _random_links(names, _points(len(names), rng), rng, self.alpha, self.beta):
            connect(graph, names[a], names[b], link)
