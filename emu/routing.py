"""Static tables of an emulated network: those of hosts, switches and routers, from the simulator's own paths and trees.

All hosts are in one flat IP network, as in the simulator. A host's neighbour table has for each other host the MAC to send to:
the host's own where only switches are between, else that of the first router on the path. A router has a route for each host
and, for each source and group, the outgoing ports of its multicast tree. A switch has the ports of each group: on a network
without loops those of all sources together, else those of each source, because a frame would otherwise go round the loop.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import networkx as nx

from protocols.errors import UnsupportedError
from topologies.addressing import host_address
from topologies.node_models import RouterModel
from topologies.spec import Topology
from topologies.trees import forwarding, group_tree, next_hops

__all__ = ["MulticastRoute", "UnicastRoute", "GroupEntry", "RouterTable", "Routing", "mac_of"]

_MAX_VIFS = 32
"""Most interfaces of the kernel's multicast router (MAXVIFS in linux/mroute.h)."""


@dataclass(frozen=True, slots=True)
class UnicastRoute:
    """A route of a router: packets to `address` leave by the port on cable number `cable`, to the neighbour with `mac`."""

    address: str
    cable: int
    mac: str


@dataclass(frozen=True, slots=True)
class MulticastRoute:
    """Packets of `source` to `group` arrive by cable `incoming` and leave by the cables `outgoing`."""

    source: str
    group: str
    incoming: int
    outgoing: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class GroupEntry:
    """Key of an entry in the multicast database of a switch: (S, G), or (*, G) without the address of a source."""

    group: str
    source: str | None = None


@dataclass(slots=True)
class RouterTable:
    """A router: its own address (for ICMP errors; no port has it), the MAC address of its port on each cable, its routes.

    With `mac: single` all ports have the same MAC address.
    """

    address: str
    ports: dict[int, str] = field(default_factory=dict)
    routes: list[UnicastRoute] = field(default_factory=list)
    groups: list[MulticastRoute] = field(default_factory=list)
    machine: str = ""
    """Address of the machine that runs on the router; empty for none."""
    sent: dict[str, tuple[int, ...]] = field(default_factory=dict)
    """For each group the cables on which the router sends what its own machine sends to it."""


class Routing:
    """Tables of all nodes.

    `ends` are the cables as pairs of node names, `groups` group addresses with the hosts that take part.
    """

    def __init__(self, topology: Topology, ends: Collection[tuple[str, str]], groups: Mapping[str, Collection[str]]) -> None:
        self._topology = topology
        self._cables = {pair: number for number, (near, far) in enumerate(ends) for pair in ((near, far), (far, near))}
        self._addresses = {host: host_address(topology, host) for host in topology.hosts}
        self._graph = forwarding(topology)
        self._hops = {node: next_hops(topology, node, self._graph) for node in topology.switches}
        self.routers: dict[str, RouterTable] = {}
        self.has_loops = not nx.is_forest(topology.graph.to_undirected())
        """Whether the topology has a loop; then switches have an (S, G) entry for each source of a group."""
        self.switches: dict[str, dict[GroupEntry, dict[int, None]]] = {}
        """For each switch, the cables towards hosts that take part, by group, with loops also by source (ordered, as keys)."""
        for node in topology.switches:
            if topology.node(node).kind == "router":
                self.routers[node] = self._table(node, len(self.routers))
            else:
                self.switches[node] = {}
        # Frames end at routers.
        self._segments = self._graph.copy()
        self._segments.remove_edges_from([(near, far) for near, far in self._graph.edges if near in self.routers])
        for name, table in self.routers.items():
            machine = topology.router_machines.get(name, "")
            table.machine = self._addresses[machine] if machine else ""
            table.routes = [self._route(name, host) for host in topology.hosts if host != machine]
        for group, hosts in groups.items():
            self._route_group(group, hosts)

    def neighbours(self, host: str) -> dict[str, str]:
        """Return, for each host's address, the MAC address that `host` sends to."""
        node = self._topology.member(host).node
        (beyond,) = self._topology.graph.successors(node)
        return {address: self._mac(host, beyond, far) for far, address in self._addresses.items()}

    def addresses_at(self, switch: str) -> dict[int, list[str]]:
        """Return, for each cable of a switch in order, the MAC addresses of hosts and routers that frames reach by it."""
        found: dict[int, list[str]] = {cable: [] for (near, _), cable in self._cables.items() if near == switch}
        hops = next_hops(self._topology, switch, self._segments)
        for (near, far), cable in self._cables.items():
            if near not in self.switches or far in self.switches:
                continue
            # A router with one address for all ports is reached by the nearest one.
            towards = far if far in self.routers and self._has_one_address(far) else near
            if towards == switch:
                found[cable].append(self._address(far, cable))
            elif towards in hops:
                port = found[self._cables[switch, hops[towards]]]
                port += [address for address in [self._address(far, cable)] if address not in port]
        return found

    def _address(self, node: str, cable: int) -> str:
        """Return the MAC address of a host, or of a router's port on a cable."""
        return self.routers[node].ports[cable] if node in self.routers else mac_of(self._addresses[node])

    def _has_one_address(self, router: str) -> bool:
        model = self._topology.node(router).model
        return isinstance(model, RouterModel) and model.mac == "single"

    def _table(self, name: str, number: int) -> RouterTable:
        cables = [cable for (near, _), cable in self._cables.items() if near == name]
        if len(cables) > _MAX_VIFS:
            raise UnsupportedError(f"node {name}: {len(cables)} links can't be emulated; {_MAX_VIFS} at most for a router")
        single = self._has_one_address(name)
        prefix = f"02:01:{number >> 8:02x}:{number & 255:02x}:00"
        ports = {cable: f"{prefix}:{0 if single else place:02x}" for place, cable in enumerate(cables)}
        return RouterTable(f"10.255.{255 - number // 254}.{254 - number % 254}", ports)

    def _mac(self, near: str, node: str, host: str) -> str:
        """Return the next hop's MAC for packets to `host` sent from `near` to `node`: the first router's, or the host's."""
        target = self._topology.member(host).node
        while node in self._hops and node not in self.routers:
            near, node = node, self._hops[node][target]
        return self.routers[node].ports[self._cables[near, node]] if node in self.routers else mac_of(self._addresses[host])

    def _route(self, router: str, host: str) -> UnicastRoute:
        hop = self._hops[router][self._topology.member(host).node]
        beyond = host if self._topology.node(hop).kind == "host" else hop
        return UnicastRoute(self._addresses[host], self._cables[router, beyond], self._mac(router, hop, host))

    def _route_group(self, group: str, hosts: Collection[str]) -> None:
        topology = self._topology
        members = topology.host_nodes if not topology.multicast.pruning else [topology.member(host).node for host in hosts]
        trees: dict[str, dict[str, tuple[str, ...]]] = {}
        for host in hosts:
            (root,) = topology.graph.successors(topology.member(host).node)
            if root not in trees:
                trees[root] = group_tree(topology, root, members, self._graph)
            self._install_tree(group, host, root, trees[root], frozenset(hosts))

    def _install_tree(
        self, group: str, source: str, root: str, tree: dict[str, tuple[str, ...]], hosts: frozenset[str]
    ) -> None:
        """Add the tree's routes for `source` at each node: outgoing cables, and at routers the incoming one."""
        parents = {far: near for near, below in tree.items() for far in below}
        for name, beyond in tree.items():
            if name not in self._hops:
                continue
            outgoing = [self._cables[name, far] for node in beyond for far in self._ends(node, hosts)]
            if self._topology.router_machines.get(name) == source:
                self.routers[name].sent[group] = tuple(outgoing)
            elif name in self.routers:
                incoming = self._cables[source if name == root else parents[name], name]
                route = MulticastRoute(self._addresses[source], group, incoming, tuple(w for w in outgoing if w != incoming))
                self.routers[name].groups.append(route)
            else:
                entry = GroupEntry(group, self._addresses[source] if self.has_loops else None)
                self.switches[name].setdefault(entry, {}).update(dict.fromkeys(outgoing))

    def _ends(self, node: str, hosts: frozenset[str]) -> list[str]:
        """Return a forwarding node itself, or the hosts of a graph node that take part; each host has a cable of its own."""
        if node in self._hops:
            return [node]
        if self._topology.node(node).router:
            # The router itself receives it.
            return []
        members = self._topology.hosts_of(node)
        return [host for host in members if host in hosts] if self._topology.multicast.pruning else members


def mac_of(address: str) -> str:
    """Return a host's locally administered MAC address, derived from its IPv4 address."""
    return "02:00:" + ":".join(f"{int(part):02x}" for part in address.split("."))
