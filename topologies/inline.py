"""Topologies listed node by node and link by link: `kind: graph`."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import networkx as nx
from pydantic import BeforeValidator, Field, model_serializer
from pydantic_core import PydanticCustomError

from protocols.errors import ConfigError
from topologies.blueprint import Blueprint, node_spec
from topologies.node_models import NodeAttributes
from topologies.spec import Graph, LinkAttributes, Topology, connect

__all__ = ["NODE_LIMIT", "Edge", "Inline"]

NODE_LIMIT = 10_000


class Edge(LinkAttributes):
    """A link with its two ends; `down` is the direction from the first to the second."""

    ends: tuple[str, str] = Field(description="The two nodes it joins, the one closer to the sender first.")

    @model_serializer
    def _effective(self) -> dict[str, Any]:
        return {"ends": self.ends, **self.directions()}


def _not_endless(nodes: Any) -> Any:
    if not isinstance(nodes, Mapping):
        return nodes
    if len(nodes) > NODE_LIMIT:
        text = f"{len(nodes)} nodes one by one, and {NODE_LIMIT} is the limit; write equal leaves as one node with a count"
        raise PydanticCustomError("too_many_nodes", "{text}", {"text": text})
    return {name: {} if attributes is None else attributes for name, attributes in nodes.items()}


class Inline(Blueprint):
    """Any graph. A node without `kind` is a switch if it has more than one link, else a host."""

    kind: Literal["graph"] = "graph"
    nodes: Annotated[
        dict[str, NodeAttributes],
        BeforeValidator(_not_endless, json_schema_input_type=dict[str, NodeAttributes | None]),
    ] = Field(min_length=1, description="Every node by name, with its attributes.")
    links: tuple[Edge, ...] = Field(fail_fast=True, description="Every link.")

    def graph(self) -> Graph:
        """Return the graph. ConfigError for a link to an unknown node, or one that is given twice."""
        graph: Graph = nx.DiGraph()
        graph.add_nodes_from(self.nodes)
        for number, edge in enumerate(self.links):
            near, far = edge.ends
            for end in edge.ends:
                if end not in self.nodes:
                    raise ConfigError(f"links.{number}.ends: {end!r} is not allowed; no such node")
            if graph.has_edge(near, far):
                raise ConfigError(f"links.{number}.ends: {near}-{far} is not allowed; this link is given twice")
            connect(graph, near, far, edge)
        for name, attributes in self.nodes.items():
            graph.nodes[name]["node"] = node_spec(name, attributes, graph.out_degree(name))
        return graph

    def build(self) -> Topology:
        """Return the topology. ConfigError names the key, node or link that is wrong."""
        return Topology(self.graph(), self.multicast)
