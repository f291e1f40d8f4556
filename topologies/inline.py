"""A topology given node by node and link by link: `kind: graph`."""

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
    """A link as a user writes it, with its two ends; `down` is from the first to the second."""

    ends: tuple[str, str] = Field(description="the two nodes it joins, the one closer to the sender first")

    @model_serializer
    def _effective(self) -> dict[str, Any]:
        return {"ends": self.ends, **self.directions()}


def _not_endless(nodes: Any) -> Any:
    if isinstance(nodes, Mapping) and len(nodes) > NODE_LIMIT:
        text = f"{len(nodes)} nodes one by one, and {NODE_LIMIT} is the limit; equal leaves are one node with a count"
        raise PydanticCustomError("too_many_nodes", "{text}", {"text": text})
    return {name: {} if attributes is None else attributes for name, attributes in nodes.items()}


class Inline(Blueprint):
    """Any graph. A node without `kind` is a switch when it has several links, else a host."""

    kind: Literal["graph"] = "graph"
    nodes: Annotated[dict[str, NodeAttributes], BeforeValidator(_not_endless)] = Field(
        min_length=1, description="every node by name, with what it is"
    )
    links: tuple[Edge, ...] = Field(description="every link")

    def graph(self) -> Graph:
        """The graph; ConfigError for a link to nowhere or one said twice."""
        graph: Graph = nx.DiGraph()
        graph.add_nodes_from(self.nodes)
        for number, edge in enumerate(self.links):
            near, far = edge.ends
            for end in edge.ends:
                if end not in self.nodes:
                    raise ConfigError(f"links.{number}.ends: {end!r} is not allowed; no such node")
            if graph.has_edge(near, far):
                raise ConfigError(f"links.{number}.ends: {near}-{far} is not allowed; there is such a link already")
            connect(graph, near, far, edge)
        for name, attributes in self.nodes.items():
            graph.nodes[name]["node"] = node_spec(name, attributes, graph.out_degree(name))
        return graph

    def build(self) -> Topology:
        """The topology; ConfigError names key, node or link."""
        return Topology(self.graph(), self.multicast)
