"""Base of all topology models: `build()`, multicast settings, and attributes of single nodes."""

from abc import abstractmethod
from dataclasses import replace
from typing import Any

import networkx as nx
from pydantic import BaseModel, ConfigDict, Field, field_serializer

from protocols.errors import ConfigError
from topologies.multicast import Multicast
from topologies.names import first_names
from topologies.node_models import NodeAttributes
from topologies.spec import Graph, LinkAttributes, NodeSpec, Topology, connect

__all__ = ["SENDER", "SWITCH_LIMIT", "Blueprint", "leaves", "node_spec", "start"]

SENDER = "sender"
SWITCH_LIMIT = 10_000


class Blueprint(BaseModel):
    """A topology as a validated model. Unknown keys are rejected."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    nodes: dict[str, NodeAttributes] = Field(default_factory=dict, description="Attributes of single nodes, by node name.")
    multicast: Multicast = Field(
        default_factory=Multicast, description="Multicast trees, and how fast joining and leaving take effect."
    )

    @abstractmethod
    def graph(self) -> Graph:
        """Return the graph, without the attributes in `nodes`."""

    def build(self) -> Topology:
        """Return the topology. ConfigError names the key or the node that is wrong."""
        graph = self.graph()
        for name, attributes in self.nodes.items():
            if name not in graph:
                raise ConfigError(f"nodes.{name}: {name!r} is not allowed; no such node, nodes are {first_names(graph)}")
            graph.nodes[name]["node"] = _changed(name, graph.nodes[name]["node"], attributes)
        return Topology(graph, self.multicast)

    @field_serializer("nodes")
    def _written(self, nodes: dict[str, NodeAttributes]) -> dict[str, Any]:
        """Dump only the keys that were given, since each kind of node has its own."""
        return {name: attributes.dumped() for name, attributes in nodes.items()}


def _changed(name: str, spec: NodeSpec, attributes: NodeAttributes) -> NodeSpec:
    kind = attributes.kind or spec.kind
    if (kind == "host") != (spec.kind == "host"):
        raise ConfigError(f"nodes.{name}.kind: {kind!r} is not allowed; {name} is a {spec.kind} of this topology")
    if attributes.count is not None:
        raise ConfigError(f"nodes.{name}.count: {attributes.count!r} is not allowed; the kind of topology determines it")
    model = attributes.model(name, kind)
    bystander = spec.bystander if attributes.bystander is None else attributes.bystander
    disk = spec.disk if attributes.disk is None else attributes.disk
    memory = spec.memory if attributes.memory is None else attributes.memory
    model = spec.model if model is None else model
    return replace(spec, kind=kind, model=model, bystander=bystander, disk=disk, memory=memory)


def node_spec(name: str, attributes: NodeAttributes, links: int) -> NodeSpec:
    """Return the NodeSpec of user-written attributes. Without a kind, a node with more than one of `links` is a switch."""
    kind = attributes.kind or ("switch" if links > 1 else "host")
    model, bystander = attributes.model(name, kind), bool(attributes.bystander)
    return NodeSpec(kind, attributes.count, model, bystander, attributes.disk, memory=attributes.memory)


def start() -> Graph:
    """Return a graph of the nodes `sender` and `s1` (a switch), not yet linked."""
    graph: Graph = nx.DiGraph()
    graph.add_node(SENDER, node=NodeSpec("host"))
    graph.add_node("s1", node=NodeSpec("switch"))
    return graph


def leaves(graph: Graph, switch: str, name: str, count: int, link: LinkAttributes) -> None:
    """Add a counted node of `count` equal hosts, each linked to a switch."""
    graph.add_node(name, node=NodeSpec("host", count))
    connect(graph, switch, name, link)
