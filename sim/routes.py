"""The routes of packets, from each node of hosts to each address, and the trees of groups."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from protocols.errors import UsageError
from protocols.machine import Address, Group
from sim.acceleration import Accelerator
from sim.addresses import name_and_port
from sim.flight import Hop, HostNode, Route
from sim.member_hop import MemberHop
from topologies.spec import Topology
from topologies.trees import distribution, forwarding, group_tree, with_hubs

__all__ = ["Routes"]


class Routes:
    """The routes of one network, computed when first needed. `nodes` are its nodes of hosts by name."""

    def __init__(self, topology: Topology, nodes: Mapping[str, HostNode], accelerator: Accelerator) -> None:
        self._topology = topology
        self._nodes = nodes
        self._accelerator = accelerator
        self._pruning = topology.multicast.pruning
        self._has_hubs = any(topology.node(name).is_hub for name in topology.switches)
        self._forwarding = forwarding(topology)
        self._trees: dict[tuple[str, Address, int | None, str], dict[str, tuple[str, ...]]] = {}
        self._to_groups: dict[Address, list[Route]] = {}
        # Those of unicasts to the hosts of a node, by the names of the node that sends and of this one.
        self._links: dict[tuple[str, str], dict[str, Sequence[Hop]]] = {}
        # The nodes that a multicast is carried to, by group.
        self._reached: dict[Address, list[str]] = {}
        # By group and counted node, the members that take part, where not all do.
        self._parts: dict[tuple[Address, str], list[int]] = {}
        # By node and group, the number of hosts that left without effect so far: the node stays on the tree.
        self._unpruned: Counter[tuple[str, Address]] = Counter()

    def find(self, home: HostNode, to: Address) -> Route:
        """Compute the route from a node to an address; UsageError when there is no such host."""
        self.check_network(home.name, to)
        network = to.network if isinstance(to, Group) else ""
        if isinstance(to, Group):
            to = to.anywhere
        graph = self._topology.graph
        neighbours = list(graph.successors(home.name))
        root = neighbours[0] if len(neighbours) == 1 else home.name
        first: Sequence[Hop] = () if home.counted else list(home.uplinks.values())
        route = Route(home, to, root, first)
        route.network = network
        if isinstance(to, Group):
            self._to_groups.setdefault(to, []).append(route)
        else:
            route.node, route.member = self._topology.member(name_and_port(to)[0])
            route.target = self._nodes[route.node].host(route.member)
            # Memory for each of a server's clients, if it were not shared.
            route.links = self._links.setdefault((home.name, route.node), route.links)
        if len(neighbours) > 1:
            members = self._topology.host_nodes if route.target is None else (route.node,)
            build = group_tree if route.target is None else distribution
            tree = build(self._topology, home.name, members, self._forwarding)
            route.first = [home.uplinks[far] for far in tree[home.name]]
        return route

    def forget(self, group: Group) -> None:
        """Compute the trees of a group anew when next needed, because its listening nodes change."""
        self._reached.pop(group, None)
        for key in [key for key in self._trees if key[1] == group]:
            del self._trees[key]
        for route in self._to_groups.get(group, ()):
            self._accelerator.route_changed(route)
            route.links, route.tree = {}, None

    def confine(self, group: Group, hosts: Collection[str]) -> None:
        """Let nobody but these hosts take part in a group: with pruning, other members of counted groups are sent none of it.

        Without this, the links to all members of a counted group carry what one of them receives.
        """
        there: dict[str, list[int]] = {}
        for node, member in sorted(map(self._topology.member, hosts)):
            there.setdefault(node, []).append(member)
        for node, members in there.items():
            if self._pruning and len(members) < self._topology.size(node):
                self._parts[group, node] = members

    def keep_on_tree(self, node: str, group: Group) -> None:
        """Keep a node on the tree of a group, although no host of it listens, until as many calls of `prune`."""
        self._unpruned[node, group] += 1

    def prune(self, node: str, group: Group) -> None:
        """Take back one `keep_on_tree`."""
        self._unpruned[node, group] -= 1
        self.forget(group)

    def next_links(self, route: Route, switch: str, links: Mapping[str, Hop]) -> Sequence[Hop]:
        """Return those of the `links` of a switch that a route takes; never back to the plain host that sends."""
        home = route.home
        tree = self._known_tree(route)
        back = "" if home.counted else home.name
        found = [hop for far in tree.get(switch, ()) if far != back for hop in self._hops(route, switch, far, links[far])]
        route.links[switch] = found
        return found

    def _hops(self, route: Route, switch: str, far: str, links: Hop) -> Sequence[Hop]:
        """Return the links to a neighbour that carry what takes a route; what is on a hub gets to all."""
        part = self._parts.get((route.to, far)) if self._parts and route.target is None else None
        if part is None or self._topology.node(switch).is_hub:
            return (links,)
        base = self._topology.base(far)
        return [MemberHop(links, self._nodes[far], member, base + member) for member in part]

    def _known_tree(self, route: Route) -> dict[str, tuple[str, ...]]:
        if route.tree is None:
            # All hosts of a node are at the end of the same tree.
            to = route.to if route.target is None else route.node
            key = (route.root, to, route.home.ttl, route.network)
            route.tree = self._trees.get(key)
            if route.tree is None:
                route.tree = self._trees[key] = self._tree(route)
        return route.tree

    def network_of(self, route: Route, switch: str) -> str:
        """Return the neighbour from which what takes a route arrives at a switch."""
        if route.root == switch:
            return route.home.name
        return next(near for near, below in self._known_tree(route).items() if switch in below)

    def check_network(self, node: str, to: Address) -> None:
        """Raise UsageError for a group on a network that a node of hosts does not have; only routers' machines name one."""
        if not isinstance(to, Group) or not to.network:
            return
        router = self._topology.node(node).router
        networks = self._topology.networks_of(router) if router else []
        if to.network not in networks:
            known = f"networks of {router} are {', '.join(networks)}" if router else f"{node} has one network, without a name"
            raise UsageError(f"{to.network!r} is no network of {router or node}; {known}")

    def _tree(self, route: Route) -> dict[str, tuple[str, ...]]:
        if route.target is not None:
            return distribution(self._topology, route.root, [route.node], self._forwarding)
        tree = group_tree(self._topology, route.root, self._listening(route.to), self._forwarding, route.home.ttl)
        if route.network:
            below = tuple(far for far in tree.get(route.root, ()) if far == route.network)
            tree = {**tree, route.root: below}
        return with_hubs(self._topology, tree, route.root) if self._has_hubs else tree

    def _listening(self, group: Address) -> list[str]:
        """Return the nodes a multicast to the group is carried to."""
        if not self._pruning:
            return list(self._nodes)
        reached = self._reached.get(group)
        if reached is None:
            unpruned = self._unpruned
            reached = [name for name, node in self._nodes.items() if unpruned[name, group] > 0 or _listens(node, group)]
            self._reached[group] = reached
        return reached


def _listens(node: HostNode, group: Address) -> bool:
    members = node.groups.get(group)
    return members is not None and members.present > 0
