"""Deterministic wide-area topologies: `wan` (sites behind routers) and `dumbbell` (one bottleneck shared by all flows)."""

from typing import Any, Literal

import networkx as nx
from pydantic import Field, field_serializer

from topologies.blueprint import SENDER, SWITCH_LIMIT, Blueprint, leaves, node_spec, start
from topologies.node_models import HOST_LIMIT, NodeAttributes
from topologies.spec import Graph, LinkAttributes, NodeSpec, connect

__all__ = ["Dumbbell", "Wan"]


class Wan(Blueprint):
    """Sites around a core. Site I has switch `sI`, receivers `rI_J` and router `gI`, which is linked to the switch `core`.

    `sender` is on `s0` behind router `g0`. `lan` is every link of a site, `wan` the line of each router to the core; `down` is
    the direction away from the sender. A router of mac single is linked by its wire to `sI` and to a switch `wI`, where the
    line begins.
    """

    kind: Literal["wan"] = "wan"
    sites: int = Field(ge=1, le=SWITCH_LIMIT, strict=True, description="Number of sites with receivers.")
    receivers: int = Field(default=1, ge=1, le=HOST_LIMIT, strict=True, description="Number of receivers at each site.")
    lan: LinkAttributes = Field(default_factory=LinkAttributes, description="The links within a site.")
    wan: LinkAttributes = Field(default_factory=LinkAttributes, description="The line of each site to the core.")
    router: NodeAttributes = Field(default_factory=NodeAttributes, description="The router of each site.")

    def graph(self) -> Graph:
        """Return the graph."""
        graph: Graph = nx.DiGraph()
        router = node_spec("router", self.router.model_copy(update={"kind": "router"}), 2)
        graph.add_node(SENDER, node=NodeSpec("host"))
        graph.add_node("s0", node=NodeSpec("switch"))
        graph.add_node("core", node=NodeSpec("switch"))
        connect(graph, SENDER, "s0", self.lan)
        self._attach(graph, 0, router)
        for site in range(1, self.sites + 1):
            graph.add_node(f"s{site}", node=NodeSpec("switch"))
            self._attach(graph, site, router)
            leaves(graph, f"s{site}", f"r{site}_", self.receivers, self.lan)
        return graph

    def _attach(self, graph: Graph, site: int, router: NodeSpec) -> None:
        """Link a site's switch to the core over the site's router; down is the direction away from the sender's site."""
        single = self.router.mac == "single"
        chain = [(f"s{site}", f"g{site}", LinkAttributes() if single else self.lan)]
        graph.add_node(f"g{site}", node=router)
        if single:
            graph.add_node(f"w{site}", node=NodeSpec("switch"))
            chain.append((f"g{site}", f"w{site}", LinkAttributes()))
        chain.append((chain[-1][1], "core", self.wan))
        for near, far, link in chain:
            connect(graph, *((near, far) if site == 0 else (far, near)), link)

    @field_serializer("router")
    def _router(self, router: NodeAttributes) -> dict[str, Any]:
        return router.dumped()


class Dumbbell(Blueprint):
    """A bottleneck between two switches: `sender` and `x1` to `xN` on `s1`, receivers `r1` to `rN` and `y1` to `yN` on `s2`.

    The `pairs` of x and y are bystanders for cross traffic.
    """

    kind: Literal["dumbbell"] = "dumbbell"
    receivers: int = Field(ge=1, le=HOST_LIMIT, strict=True, description="Number of receivers.")
    pairs: int = Field(
        default=1, ge=0, le=SWITCH_LIMIT, strict=True, description="Number of hosts for cross traffic on each side."
    )
    bottleneck: LinkAttributes = Field(default_factory=LinkAttributes, description="The link between the switches.")
    link: LinkAttributes = Field(
        default_factory=LinkAttributes, description="The link of each host; down is the direction to the host."
    )

    def graph(self) -> Graph:
        """Return the graph."""
        graph = start()
        graph.add_node("s2", node=NodeSpec("switch"))
        connect(graph, "s1", SENDER, self.link)
        connect(graph, "s1", "s2", self.bottleneck)
        leaves(graph, "s2", "r", self.receivers, self.link)
        for number in range(1, self.pairs + 1):
            for letter, switch in (("x", "s1"), ("y", "s2")):
                graph.add_node(f"{letter}{number}", node=NodeSpec("host", bystander=True))
                connect(graph, switch, f"{letter}{number}", self.link)
        return graph
