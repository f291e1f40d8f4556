"""Ready topologies: `lan`, `star`, `chain`, `tree`, chosen by `kind`.

In all of them the sender's node is called `sender`. Attributes belong to classes of links: `trunk` for links between switches
and from the sender to the first switch, `link` for those to the receivers.
"""

from typing import Annotated, Literal, TypeAlias

import networkx as nx
from pydantic import BaseModel, ConfigDict, Discriminator, Field

from protocols.errors import ConfigError
from topologies.spec import Graph, LinkAttributes, NodeSpec, Topology, connect

__all__ = ["AnyTopology", "Chain", "Lan", "Star", "Tree"]

SENDER = "sender"
SWITCH_LIMIT = 10_000


class _Generator(BaseModel):
    """What all generators share: unknown keys are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Lan(_Generator):
    """Hosts on one switch by equal links: `sender` and `r1` to `rN` on `s1`. `down` is from the switch to a host."""

    kind: Literal["lan"] = "lan"
    receivers: int = Field(ge=1, strict=True, description="how many receivers")
    link: LinkAttributes = Field(default_factory=LinkAttributes, description="each host's link")

    def build(self) -> Topology:
        """The topology."""
        graph = _start()
        connect(graph, "s1", SENDER, self.link)
        _leaves(graph, "s1", "r", self.receivers, self.link)
        return Topology(graph)


class Star(_Generator):
    """`sender` - trunk - switch `s1` - links - receivers `r1` to `rN`."""

    kind: Literal["star"] = "star"
    receivers: int = Field(ge=1, strict=True, description="how many receivers")
    trunk: LinkAttributes = Field(default_factory=LinkAttributes, description="the sender's link, shared by all receivers")
    link: LinkAttributes = Field(default_factory=LinkAttributes, description="each receiver's own link")

    def build(self) -> Topology:
        """The topology."""
        graph = _start()
        connect(graph, SENDER, "s1", self.trunk)
        _leaves(graph, "s1", "r", self.receivers, self.link)
        return Topology(graph)


class Chain(_Generator):
    """`sender` - `s1` - `s2` - ... with receivers on every switch: `rI_J` is the J-th receiver on `sI`."""

    kind: Literal["chain"] = "chain"
    switches: int = Field(ge=1, le=SWITCH_LIMIT, strict=True, description="how many switches in a row")
    receivers: int = Field(default=1, ge=1, strict=True, description="receivers on each switch")
    trunk: LinkAttributes = Field(
        default_factory=LinkAttributes, description="links between switches, and the sender's to the first"
    )
    link: LinkAttributes = Field(default_factory=LinkAttributes, description="each receiver's own link")

    def build(self) -> Topology:
        """The topology."""
        graph = _start()
        connect(graph, SENDER, "s1", self.trunk)
        for number in range(1, self.switches + 1):
            if number > 1:
                graph.add_node(f"s{number}", node=NodeSpec("switch"))
                connect(graph, f"s{number - 1}", f"s{number}", self.trunk)
            _leaves(graph, f"s{number}", f"r{number}_", self.receivers, self.link)
        return Topology(graph)


class Tree(_Generator):
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

    def build(self) -> Topology:
        """The topology; ConfigError above 10,000 switches."""
        total = sum(self.fanout**level for level in range(self.depth))
        if total > SWITCH_LIMIT:
            raise ConfigError(f"fanout: {self.fanout!r} is not allowed; {total} switches, and {SWITCH_LIMIT} is the limit")
        graph = _start()
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
            _leaves(graph, switch, f"r{number}_", self.receivers, self.link)
        return Topology(graph)


AnyTopology: TypeAlias = Annotated[Lan | Star | Chain | Tree, Discriminator("kind")]
"""Any generator, by its `kind`."""


def _start() -> Graph:
    graph: Graph = nx.DiGraph()
    graph.add_node(SENDER, node=NodeSpec("host"))
    graph.add_node("s1", node=NodeSpec("switch"))
    return graph


def _leaves(graph: Graph, switch: str, name: str, count: int, link: LinkAttributes) -> None:
    graph.add_node(name, node=NodeSpec("host", count))
    connect(graph, switch, name, link)
