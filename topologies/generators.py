"""Topology generators, chosen by `kind`: `lan`, `star`, `chain`, `tree`; more in `generators_wide` and `generators_random`.

The sender's node is called `sender` in all of them. Attributes are given per class of links: `trunk` for links between switches
and from the sender to the first switch, `link` for those to the receivers.
"""

from typing import Annotated, Literal, TypeAlias

from pydantic import Discriminator, Field

from protocols.errors import ConfigError
from topologies.blueprint import SENDER, SWITCH_LIMIT, Blueprint, leaves, start
from topologies.generators_random import TransitStub, Waxman
from topologies.generators_wide import Dumbbell, Wan
from topologies.inline import Inline
from topologies.node_models import HOST_LIMIT
from topologies.spec import Graph, LinkAttributes, NodeSpec, connect

__all__ = ["AnyTopology", "Chain", "Dumbbell", "Inline", "Lan", "Star", "TransitStub", "Tree", "Wan", "Waxman"]


class Lan(Blueprint):
    """A LAN: hosts `sender` and `r1` to `rN` on switch `s1`, with equal links. `down` is the direction from switch to host."""

    kind: Literal["lan"] = "lan"
    receivers: int = Field(ge=1, le=HOST_LIMIT, strict=True, description="Number of receivers.")
    link: LinkAttributes = Field(default_factory=LinkAttributes, description="The link of each host.")

    def graph(self) -> Graph:
        """Return the graph."""
        graph = start()
        connect(graph, "s1", SENDER, self.link)
        leaves(graph, "s1", "r", self.receivers, self.link)
        return graph


class Star(Blueprint):
    """A star: `sender` on switch `s1` by a trunk, receivers `r1` to `rN` by a link each."""

    kind: Literal["star"] = "star"
    receivers: int = Field(ge=1, le=HOST_LIMIT, strict=True, description="Number of receivers.")
    trunk: LinkAttributes = Field(
        default_factory=LinkAttributes, description="The link of the sender, on the path to all receivers."
    )
    link: LinkAttributes = Field(default_factory=LinkAttributes, description="The link of each receiver.")

    def graph(self) -> Graph:
        """Return the graph."""
        graph = start()
        connect(graph, SENDER, "s1", self.trunk)
        leaves(graph, "s1", "r", self.receivers, self.link)
        return graph


class Chain(Blueprint):
    """A chain of switches: `sender`, `s1`, `s2`, ... with receivers on every switch; `rI_J` is the J-th receiver on `sI`."""

    kind: Literal["chain"] = "chain"
    switches: int = Field(ge=1, le=SWITCH_LIMIT, strict=True, description="Number of switches in the chain.")
    receivers: int = Field(default=1, ge=1, le=HOST_LIMIT, strict=True, description="Number of receivers on each switch.")
    trunk: LinkAttributes = Field(
        default_factory=LinkAttributes, description="The links between switches, and from the sender to the first."
    )
    link: LinkAttributes = Field(default_factory=LinkAttributes, description="The link of each receiver.")

    def graph(self) -> Graph:
        """Return the graph."""
        graph = start()
        connect(graph, SENDER, "s1", self.trunk)
        for number in range(1, self.switches + 1):
            if number > 1:
                graph.add_node(f"s{number}", node=NodeSpec("switch"))
                connect(graph, f"s{number - 1}", f"s{number}", self.trunk)
            leaves(graph, f"s{number}", f"r{number}_", self.receivers, self.link)
        return graph


class Tree(Blueprint):
    """A tree of switches with `depth` levels and `fanout` children each; the sender at the root, receivers on the last level.

    Switches are numbered level by level from the root, `s1`; `rI_J` is the J-th receiver on the I-th switch of the last level.
    """

    kind: Literal["tree"] = "tree"
    depth: int = Field(ge=1, le=20, strict=True, description="Number of levels of switches.")
    fanout: int = Field(default=2, ge=1, le=SWITCH_LIMIT, strict=True, description="Number of switches below each switch.")
    receivers: int = Field(
        default=1, ge=1, le=HOST_LIMIT, strict=True, description="Number of receivers on each switch of the last level."
    )
    trunk: LinkAttributes = Field(
        default_factory=LinkAttributes, description="The links between switches, and from the sender to the root."
    )
    link: LinkAttributes = Field(default_factory=LinkAttributes, description="The link of each receiver.")

    def graph(self) -> Graph:
        """Return the graph. ConfigError above 10,000 switches."""
        total = sum(self.fanout**level for level in range(self.depth))
        if total > SWITCH_LIMIT:
            raise ConfigError(f"fanout: {self.fanout!r} is not allowed; {total} switches, and {SWITCH_LIMIT} is the limit")
        graph = start()
        connect(graph, SENDER, "s1", self.trunk)
        level, made = ["s1"], 1
        for _ in range(self.depth - 1):
            below = []
            for parent in level:
                for _ in range(self.fanout):
                    made += 1
                    graph.add_node(f"s{made}", node=NodeSpec("switch"))
                    connect(graph, parent, f"s{made}", self.trunk)
                    below.append(f"s{made}")
            level = below
        for number, switch in enumerate(level, 1):
            leaves(graph, switch, f"r{number}_", self.receivers, self.link)
        return graph


AnyTopology: TypeAlias = Annotated[
    Lan | Star | Chain | Tree | Wan | Dumbbell | TransitStub | Waxman | Inline, Discriminator("kind")
]
"""Any topology model, chosen by its `kind`."""
