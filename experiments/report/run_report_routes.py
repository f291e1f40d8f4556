"""The ways of packets through a topology: the path from a host to each other host, and who is behind a link."""

from collections.abc import Sequence
from functools import cache
from math import inf

from topologies.spec import LinkSpec, Topology
from topologies.trees import distribution, forwarding, group_tree

__all__ = ["Routes"]

LONG_PACKET = 1500
"""Bytes."""


class Routes:
    """Paths between hosts, along multicast trees or shortest (unicast) paths; members of a counted group are hosts."""

    def __init__(self, topology: Topology) -> None:
        self._topology = topology
        self._forwarding = forwarding(topology)
        self._parents = cache(self._find_parents)

    def path(self, source: str, host: str, unicast: bool = False) -> list[str]:
        """Return the names from `source` to `host`, both included; only these two where no path is known."""
        topology = self._topology
        root, node = topology.member(source).node, topology.member(host).node
        if source == host:
            return [source]
        if node == root:
            # Members of a counted group reach each other through their only neighbour.
            return [source, next(iter(topology.graph.successors(node))), host]
        parents = self._parents(root, unicast)
        inner: list[str] = []
        while node in parents and parents[node] != root:
            node = parents[node]
            inner.append(node)
        return [source, *reversed(inner), host]

    def way_to_loss(self, source: str, host: str, lost: Sequence[str], expected: Sequence[str]) -> list[str]:
        """Return the path up to the first node behind which several of the `expected` hosts all miss a packet, or up to `host`.

        This is the explanation with the fewest losses where the link that lost it is not known.
        """
        path = self.path(source, host)
        for place, far in enumerate(path[1:], 2):
            behind = [other for other in expected if far in self.path(source, other)]
            if len(behind) > 1 and frozenset(lost).issuperset(behind):
                return path[:place]
        return path

    def nominal(self, near: str, far: str) -> float:
        """Return the time in seconds that a long packet takes over a link without waiting, at least a microsecond."""
        topology = self._topology
        ends = [name if name in topology.switches else topology.member(name).node for name in (near, far)]
        link = topology.link(*ends) if topology.graph.has_edge(*ends) else LinkSpec()
        return link.delay + (LONG_PACKET / link.rate if link.rate < inf else 0.0) + 1e-6

    def _find_parents(self, root: str, unicast: bool) -> dict[str, str]:
        members = self._topology.host_nodes
        tree = distribution(self._topology, root, members, self._forwarding) if unicast else self._group_tree(root)
        return {child: near for near, below in tree.items() for child in below}

    def _group_tree(self, root: str) -> dict[str, tuple[str, ...]]:
        others = [name for name in self._topology.host_nodes if name != root]
        return group_tree(self._topology, root, others, self._forwarding)
