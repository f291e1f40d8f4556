"""What all ready topologies share: `build()`, rules for groups, and changes to single nodes."""

from abc import abstractmethod
from dataclasses import replace
from typing import Any

import networkx as nx
from pydantic import BaseModel, ConfigDict, Field, field_serializer

from protocols.errors import ConfigError
from topologies.multicast import Multicast
from topologies.node_models import NodeAttributes
from topologies.spec import Graph, LinkAttributes, NodeSpec, Topology, connect

__all__ = ["SENDER", "SWITCH_LIMIT", "Blueprint", "leaves", "node_spec", "start"]

SENDER = "sender"
SWITCH_LIMIT = 10_000


class Blueprint(BaseModel):
    """A topology as data. Unknown keys are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    nodes: dict[str, NodeAttributes] = Field(default_factory=dict, description="what single nodes are besides, by name")
    multicast: Multicast = Field(default_factory=Multicast, description="trees of groups, joining and leaving")

    @abstractmethod
    def graph(self) -> Graph:
        """The graph without the changes in `nodes`."""

    def build(self) -> Topology:
        """The topology; ConfigError names key or node."""
        graph = self.graph()
        for name, attributes in self.nodes.items():
            if name not in graph:
                known = ", ".join(list(graph)[:8]) + (", ..." if len(graph) > 8 else "")
                raise ConfigError(f"nodes.{name}: {name!r} is not allowed; no such node, nodes are {known}")
            graph.nodes[name]["node"] = _changed(name, graph.nodes[name]["node"], attributes)
        return Topology(graph, self.multicast)

    @field_serializer("nodes")
    def _written(self, nodes: dict[str, NodeAttributes]) -> dict[str, Any]:
        """Only what was written, since each kind of node has other keys."""
        return {name: attributes.dumped() for name, attributes in nodes.items()}


def _changed(name: str, spec: NodeSpec, attributes: NodeAttributes) -> NodeSpec:
    kind = attributes.kind or spec.kind
    if (kind == "host") != (spec.kind == "host"):
        raise ConfigError(f"nodes.{name}.kind: {kind!r} is not allowed; {name} is a {spec.kind} of this topology")
    if attributes.count is not None:
        raise ConfigError(f"nodes.{name}.count: {attributes.count!r} is not allowed; the kind of the topology says how many")
    model = attributes.model(name, kind)
    bystander = spec.bystander if attributes.bystander is None else attributes.bystander
    return replace(spec, kind=kind, model=spec.model if model is None else model, bystander=bystander)


def node_spec(name: str, attributes: NodeAttributes, links: int) -> NodeSpec:
    """The spec of a node as a user wrote it, which has this many links."""
    kind = attributes.kind or ("switch" if links > 1 else "host")
    return NodeSpec(kind, attributes.count, attributes.model(name, kind), bool(attributes.bystander))


def start() -> Graph:
    """A graph of the sender and the first switch, not joined yet."""
    graph: Graph = nx.DiGraph()
    graph.add_node(SENDER, node=NodeSpec("host"))
    graph.add_node("s1", node=NodeSpec("switch"))
    return graph


def leaves(graph: Graph, switch: str, name: str, count: int, link: LinkAttributes) -> None:
    """Hang that many equal hosts on a switch."""
    graph.add_node(name, node=NodeSpec("host", count))
    connect(graph, switch, name, link)
