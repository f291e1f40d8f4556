"""The ways packets take: from each leaf to each address, and the trees of groups."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from protocols.machine import Address, Group
from sim.flight import Route
from topologies.trees import distribution, forwarding, group_tree

if TYPE_CHECKING:
    from sim.endpoint import Endpoint, Switch
    from sim.link import Hop
    from sim.network import Network

__all__ = ["Routes"]


class Routes:
    """The routes of one network, found when first needed."""

    def __init__(self, network: "Network", leaves: "Mapping[str, Endpoint]") -> None:
        self._network = network
        self._topology = network.topology
        self._leaves = leaves
        self._forwarding = forwarding(network.topology)
        self._trees: dict[tuple[str, Address, int | None], dict[str, tuple[str, ...]]] = {}
        self._known: dict[Address, list[Route]] = {}

    def find(self, leaf: "Endpoint", to: Address) -> Route:
        """The way from a leaf to an address, which the leaf keeps."""
        target = None if isinstance(to, Group) else self._network.host(str(to))
        neighbours = list(self._topology.graph.successors(leaf.name))
        root = neighbours[0] if len(neighbours) == 1 else leaf.name
        first: Sequence[Hop] = () if leaf.counted else list(leaf.uplinks.values())
        if len(neighbours) > 1:
            members = self._topology.host_nodes if target is None else (target.leaf.name,)
            tree = (group_tree if target is None else distribution)(self._topology, leaf.name, members, self._forwarding)
            first = [leaf.uplinks[far] for far in tree[leaf.name]]
        route = leaf.routes[to] = Route(leaf, to, target, root, first)
        self._known.setdefault(to, []).append(route)
        return route

    def forget(self, group: Group) -> None:
        """The group is now listened to by other leaves: its trees are found again when needed."""
        for key in [key for key in self._trees if key[1] == group]:
            del self._trees[key]
        for route in self._known.get(group, ()):
            route.links = {}
            route.explored = False
            if route.lookahead is not None:
                route.lookahead.unfold()
                route.lookahead = None

    def next_links(self, route: Route, switch: "Switch") -> "Sequence[Hop]":
        """The links a packet takes from a switch; never back to the plain host that sent it."""
        key = (route.root, route.to, route.home.ttl)
        tree = self._trees.get(key)
        if tree is None:
            tree = self._trees[key] = self._tree(route)
        home = route.home
        back = "" if home.counted else home.name
        links = route.links[switch.name] = [switch.links[far] for far in tree.get(switch.name, ()) if far != back]
        return links

    def _tree(self, route: Route) -> dict[str, tuple[str, ...]]:
        if route.target is not None:
            return distribution(self._topology, route.root, [route.target.leaf.name], self._forwarding)
        members = self._network.membership.members(self._leaves, route.to)
        return group_tree(self._topology, route.root, members, self._forwarding, route.home.ttl)
