"""Random networks, each a function of its own `seed`.

`waxman` after Waxman (1988), `transit-stub` after Zegura, Calvert and Bhattacharjee (1996).
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
from topologies.spec import Graph, LinkAttributes, NodeSpec, connect
from topologies.units import Duration, Fraction

__all__ = ["TransitStub", "Waxman"]

Spot: TypeAlias = tuple[float, float]


def _distance(a: Spot, b: Spot) -> float:
    return hypot(a[0] - b[0], a[1] - b[1])


def _random_links(names: list[str], spots: list[Spot], rng: Rng, alpha: float, beta: float) -> list[tuple[int, int]]:
    """Waxman's links among some places, and the shortest further ones that make it one network."""
    links: nx.Graph[int] = nx.Graph()
    links.add_nodes_from(range(len(names)))
    pairs = list(combinations(range(len(names)), 2))
    for a, b in pairs:
        if rng.uniform() < beta * exp(-_distance(spots[a], spots[b]) / (alpha * sqrt(2))):
            links.add_edge(a, b)
    pieces = nx.utils.UnionFind(range(len(names)))
    for a, b in links.edges:
        pieces.union(a, b)
    for a, b in sorted(pairs, key=lambda pair: _distance(spots[pair[0]], spots[pair[1]])):
        if pieces[a] != pieces[b]:
            pieces.union(a, b)
            links.add_edge(a, b)
    return sorted((min(edge), max(edge)) for edge in links.edges)


def _spots(count: int, rng: Rng) -> list[Spot]:
    """Places in the unit square."""
    return [(rng.uniform(), rng.uniform()) for _ in range(count)]


def _far(link: LinkAttributes, delay: float) -> LinkAttributes:
    """The link with this much more delay, both ways."""
    sides = {
        side: part.model_copy(update={"delay": longer(part.delay, delay)})
        for side in ("down", "up")
        if (part := getattr(link, side)) is not None and "delay" in part.model_fields_set
    }
    return link.model_copy(update={"delay": longer(link.delay, delay), **sides})


class Waxman(Blueprint):
    """Switches `s1` to `sN` at random places of a square, joined with probability beta * exp(-distance / (alpha * diagonal)).

    Delay grows with distance: `span` is that of the diagonal, added to that of `trunk`. `sender` is on `s1`; `rI_J` is the J-th
    receiver on `sI`.
    """

    kind: Literal["waxman"] = "waxman"
    switches: int = Field(ge=1, le=1000, strict=True, description="how many switches")
    receivers: int = Field(default=1, ge=1, strict=True, description="receivers on each switch")
    alpha: Fraction = Field(default=0.3, gt=0.0, description="the larger, the more long links")
    beta: Fraction = Field(default=0.6, gt=0.0, description="the larger, the more links")
    span: Duration = Field(default=0.02, description="propagation delay across the diagonal")
    seed: int = Field(default=1, ge=0, lt=2**64, strict=True, description="another seed, another network")
    trunk: LinkAttributes = Field(default_factory=LinkAttributes, description="links between switches, and the sender's")
    link: LinkAttributes = Field(default_factory=LinkAttributes, description="each receiver's own link")

    def graph(self) -> Graph:
        """The graph."""
        rng = Rng(key_of(self.seed, "topology", "waxman"))
        spots = _spots(self.switches, rng)
        names = [f"s{number}" for number in range(1, self.switches + 1)]
        graph: Graph = nx.DiGraph()
        graph.add_node(SENDER, node=NodeSpec("host"))
        graph.add_nodes_from(names, node=NodeSpec("switch"))
        connect(graph, SENDER, "s1", self.trunk)
        for a, b in _random_links(names, spots, rng, self.alpha, self.beta):
            connect(graph, names[a], names[b], _far(self.trunk, self.span * _distance(spots[a], spots[b]) / sqrt(2)))
        for number, name in enumerate(names, 1):
            leaves(graph, name, f"r{number}_", self.receivers, self.link)
        return graph


class TransitStub(Blueprint):
    """A random transit network of routers, and on each some stub domains, random networks of switches with receivers.

    Transit routers are `t1` to `tN`, stub switches `s1` to `sM` in order; `rI_J` is the J-th receiver on `sI`, `sender`
    is on `s1`. A stub hangs on its transit router by its first switch.
    """

    kind: Literal["transit-stub"] = "transit-stub"
    transit: int = Field(default=4, ge=1, le=1000, strict=True, description="transit routers")
    stubs: int = Field(default=3, ge=1, le=1000, strict=True, description="stub domains on each transit router")
    size: int = Field(default=3, ge=1, le=1000, strict=True, description="switches of a stub domain")
    receivers: int = Field(default=1, ge=1, strict=True, description="receivers on each stub switch")
    alpha: Fraction = Field(default=0.4, gt=0.0, description="as in waxman, for both kinds of domain")
    beta: Fraction = Field(default=0.6, gt=0.0, description="as in waxman, for both kinds of domain")
    seed: int = Field(default=1, ge=0, lt=2**64, strict=True, description="another seed, another network")
    backbone: LinkAttributes = Field(default_factory=LinkAttributes, description="links between transit routers")
    access: LinkAttributes = Field(default_factory=LinkAttributes, description="links from a transit router to a stub")
    trunk: LinkAttributes = Field(default_factory=LinkAttributes, description="links within a stub, and the sender's")
    link: LinkAttributes = Field(default_factory=LinkAttributes, description="each receiver's own link")

    def graph(self) -> Graph:
        """The graph; ConfigError above 10,000 switches."""
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
        """Add a random connected network of these nodes."""
        rng = Rng(key_of(self.seed, "topology", "transit-stub", number))
        graph.add_nodes_from(names, node=spec)
        for a, b in _random_links(names, _spots(len(names), rng), rng, self.alpha, self.beta):
            connect(graph, names[a], names[b], link)
