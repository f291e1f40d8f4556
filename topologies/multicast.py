"""Multicast routing of a topology: the kind of tree, the latency of joining and leaving, and pruning."""

from typing import Literal, TypeAlias

import networkx as nx
from pydantic import BaseModel, ConfigDict, Field

from protocols.errors import ConfigError
from topologies.units import Duration

__all__ = ["Multicast", "check_multicast"]

StaticTree: TypeAlias = tuple[tuple[str, str], ...]


class Multicast(BaseModel):
    """The multicast routing of all groups.

    `tree` is `shortest` (a source-rooted tree of shortest paths per sender), `shared` (one tree of shortest paths from `core`,
    used in both directions) or a list of links that form a static tree.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    tree: Literal["shortest", "shared"] | StaticTree = Field(
        default="shortest",
        description="shortest, shared (rooted at `core`), or a static tree as a list of links like [[s1, s2], [s2, r]].",
    )
    core: str | None = Field(default=None, description="Root of a shared tree: a switch or a router.")
    metric: Literal["hops", "delay"] = Field(
        default="hops", description="Link metric by which paths are shortest: number of hops, or sum of delays."
    )
    pruning: bool = Field(
        default=True, description="Whether branches without members are pruned; false: every multicast goes to every host."
    )
    join: Duration = Field(default=0.0, description="Seconds from joining a group until packets arrive (IGMP report, graft).")
    leave: Duration = Field(default=0.0, description="Seconds for which packets still arrive after the last member has left.")


def check_multicast(rules: Multicast, graph: "nx.DiGraph[str]") -> None:
    """Raise ConfigError, naming the key, if the settings don't fit the graph."""
    if (rules.tree == "shared") != (rules.core is not None):
        raise ConfigError(f"multicast.core: {rules.core!r} is not allowed; required with tree shared and not allowed otherwise")
    if rules.core is not None and (rules.core not in graph or graph.nodes[rules.core]["node"].kind == "host"):
        raise ConfigError(f"multicast.core: {rules.core!r} is not allowed; a switch or router of this topology")
    if isinstance(rules.tree, tuple):
        _check_static(rules.tree, graph)


def _check_static(tree: StaticTree, graph: "nx.DiGraph[str]") -> None:
    links: nx.Graph[str] = nx.Graph()
    for near, far in tree:
        if not graph.has_edge(near, far):
            raise ConfigError(f"multicast.tree: {near}-{far} is not allowed; there is no such link")
        if links.has_node(near) and links.has_node(far) and nx.has_path(links, near, far):
            raise ConfigError(f"multicast.tree: {near}-{far} is not allowed; it closes a loop")
        links.add_edge(near, far)
    reached = nx.node_connected_component(links, tree[0][0]) if tree else ()
    for name, attributes in graph.nodes(data=True):
        if attributes["node"].kind == "host" and (name not in reached or links.degree(name) > 1):
            raise ConfigError(f"multicast.tree: {name!r} is not on it by one link; every host must be")
