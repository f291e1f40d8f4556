"""Ready topologies: `lan`, `star`, `chain`, `tree` and those of `generators_wide` and `generators_random`, chosen by `kind`.

In all of them the sender's node is called `sender`. Attributes belong to classes of links: `trunk` for links between switches
and from the sender to the first switch, `link` for those to the receivers.
"""

from typing import Annotated, Literal, TypeAlias

from pydantic import Discriminator, Field

from protocols.errors import ConfigError
from topologies.blueprint import SENDER, SWITCH_LIMIT, Blueprint, leaves, start
from topologies.generators_random import TransitStub, Waxman
from topologies.generators_wide import Dumbbell, Wan
from topologies.inline import Inline
from topologies.spec import Graph, LinkAttributes, NodeSpec, connect

__all__ = ["AnyTopology", "Chain", "Dumbbell", "Inline", "Lan", "Star", "TransitStub", "Tree", "Wan", "Waxman"]


class Lan(Blueprint):
    """Hosts on one switch by equal links: `sender` and `r1` to `rN` on `s1`. `down` is from the switch to a host."""

    kind: Literal["lan"] = "lan"
    receivers: int = Field(ge=1, strict=True, description="how many receivers")
    link: LinkAttributes = Field(default_factory=LinkAttributes, description="each host's link")

    def graph(self) -> Graph:
        """The graph."""
        graph = start()
        connect(graph, "s1", SENDER, self.link)
        leaves(graph, "s1", "r", self.receivers, self.link)
        return graph


class Star(Blueprint):
    """`sender` - trunk - switch `s1` - links - receivers `r1` to `rN`."""

    kind: Literal["star"] = "star"
    receivers: int = Field(ge=1, strict=True, description="how many receivers")
    trunk: LinkAttributes = Field(default_factory=LinkAttributes, description="the sender's link, shared by all receivers")
    link: LinkAttributes = Field(default_factory=LinkAttributes, description="each receiver's own link")

    def graph(self) -> Graph:
        """The graph."""
        graph = start()
        connect(graph, SENDER, "s1", self.trunk)
        leaves(graph, "s1", "r", self.receivers, self.link)
        return graph


class Chain(Blueprint):
    """`sender` - `s1` - `s2` - ... with receivers on every switch: `rI_J` is the J-th receiver on `sI`."""

    kind: Literal["chain"] = "chain"
    switches: int = Field(ge=1, le=SWITCH_LIMIT, strict=True, description="how many switches in a row")
    receivers: int = Field(default=1, ge=1, strict=True, description="receivers on each switch")
    trunk: LinkAttributes = Field(
        default_factory=LinkAttributes, description="links between switches, and the sender's to the first"
    )
    link: LinkAttributes = Field(default_factory=LinkAttributes, description="each receiver's own link")

    def graph(self) -> Graph:
        """The graph."""
        graph = start()
        connect(graph, SENDER, "s1", self.trunk)
        for number in range(1, self.switches + 1):
            if number > 1:
                graph.add_node(f"s{number}", node=NodeSpec("switch"))
                connect(graph, f"s{number - 1}", f"s{number}", self.trunk)
            leaves(graph, f"s{number}", f"r{number}_", self.receivers, self.link)
        return graph


class Tree(Blueprint):
    """A tree of switches below the sender: `depth` levels, `fanout` children each, receivers on the last level.

    Switches are `s1` (the root), then level by level; `rI_J` is the J-th receiver on the I-th switch of the last level.
    """

    kind: Literal["tree"] = "tree"
    depth: int = Field(ge=1, le=20, strict=True, description="levels of switches")
    fanout: int = Field(default=2, ge=1, strict=True, description="switches below each switch")
    receivers: int = Field(default=1, ge=1, strict=True, description="receivers on each switch of the last level")
    trunk: LinkAttributes = Field(
        default_factory=LinkAttributes, description="links between switches, and the sender's to the root"
    )
    link: LinkAttributes = Field(default_factory=LinkAttributes, description="each receiver's own link")

    def graph(self) -> Graph:
        """The graph; ConfigError above 10,000 switches."""
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
"""Any generator, or a graph given node by node, by its `kind`."""
