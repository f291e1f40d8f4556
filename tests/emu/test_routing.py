"""Planned routes, evaluated without a kernel: every packet takes the simulator's path, once, and no other."""

from collections import Counter
from collections.abc import Iterator

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emu.multicast_reach import expected_reach
from emu.plan import EmulationPlan, plan_emulation
from emu.routing import GroupEntry, mac_of
from protocols.errors import UnsupportedError
from topologies.multicast import Multicast
from topologies.spec import Graph, LinkAttributes, NodeSpec, Topology, connect
from topologies.trees import next_hops

GROUP = "239.1.2.3"


def network(kinds: dict[str, str], links: list[tuple[str, str]], **rules: object) -> Topology:
    """Return a topology of nodes by kind, where `name*N` is a group of N equal hosts."""
    graph: Graph = nx.DiGraph()
    for name, kind in kinds.items():
        host, _, count = kind.partition("*")
        graph.add_node(name, node=NodeSpec(host, int(count) if count else None))  # type: ignore[arg-type]
    for near, far in links:
        connect(graph, near, far, LinkAttributes())
    return Topology(graph, Multicast.model_validate(rules))


class StaticModel:
    """Evaluates a plan as a kernel would: switches forward by MAC, routers by their tables."""

    def __init__(self, plan: EmulationPlan) -> None:
        self.plan = plan
        self.routers = plan.routing.routers
        self.hosts = {mac_of(address): host for host, address in plan.addresses.items()}
        self.ports = {mac: (name, cable) for name, table in self.routers.items() for cable, mac in table.ports.items()}
        self.links: dict[str, list[int]] = {}
        for number, cable in enumerate(plan.cables):
            for end in (cable.near, cable.far):
                self.links.setdefault(end, []).append(number)

    def other(self, node: str, cable: int) -> str:
        """Return the node at the other end of a cable."""
        ends = self.plan.cables[cable]
        return ends.far if ends.near == node else ends.near

    def receiver(self, node: str, cable: int, mac: str) -> tuple[str, int]:
        """Return the host or router, and its cable, that a frame of `node` to a MAC address reaches on a cable."""
        for _ in range(50):
            node = self.other(node, cable)
            if node not in self.plan.switches:
                break
            (cable,) = [port for port, known in self.plan.routing.addresses_at(node).items() if mac in known]
        return node, cable

    def receivers(self, node: str, cable: int, source: str) -> Iterator[tuple[str, int]]:
        """Yield hosts and router ports that a frame of `node` to the group reaches; switches without entries flood."""
        far = self.other(node, cable)
        if far not in self.plan.switches:
            yield far, cable
            return
        entries = self.plan.routing.switches[far]
        by_source, by_group = GroupEntry(GROUP, self.plan.addresses[source]), GroupEntry(GROUP)
        known = entries.get(by_source) or entries.get(by_group, {}) if self.plan.has_entries else self.links[far]
        for other_cable in known:
            if other_cable != cable:
                yield from self.receivers(far, other_cable, source)

    def unicast(self, source: str, target: str) -> list[str]:
        """Return the routers on the path, and the target if it is reached."""
        address, path = self.plan.addresses[target], []
        node, cable = source, self.links[source][0]
        mac = self.plan.routing.neighbours(source)[address]
        for _ in range(50):
            node, cable = self.receiver(node, cable, mac)
            assert (node, cable) == self.ports.get(mac) or node == self.hosts.get(mac)
            path.append(node)
            if node not in self.routers:
                break
            (route,) = [route for route in self.routers[node].routes if route.address == address]
            cable, mac = route.cable, route.mac
        return path

    def multicast(self, source: str, ttl: int) -> Counter[str]:
        """Return the number of copies that each host receives."""
        copies: Counter[str] = Counter()
        frontier = [(source, self.links[source][0], ttl)]
        while frontier:
            node, cable, left = frontier.pop()
            for far, incoming in self.receivers(node, cable, source):
                if far not in self.routers:
                    copies[far] += 1
                    continue
                for route in self.routers[far].groups:
                    if (route.source, route.incoming) == (self.plan.addresses[source], incoming) and left > 1:
                        frontier += [(far, outgoing, left - 1) for outgoing in route.outgoing]
        return copies


@st.composite
def networks(draw: st.DrawFn) -> Topology:
    """Draw a random network of switches and routers, with hosts and groups of hosts; many have loops."""
    inner = draw(st.lists(st.sampled_from(["switch", "router"]), min_size=1, max_size=6))
    kinds = {f"n{number}": kind for number, kind in enumerate(inner)}
    links = [(f"n{draw(st.integers(0, number - 1))}", f"n{number}") for number in range(1, len(inner))]
    pairs = [(f"n{near}", f"n{far}") for far in range(len(inner)) for near in range(far)]
    further = [pair for pair in pairs if pair not in links]
    if further:
        links += draw(st.lists(st.sampled_from(further), max_size=6, unique=True))
    for number in range(draw(st.integers(2, 5))):
        kinds[f"h{number}_"] = draw(st.sampled_from(["host", "host*1", "host*3"]))
        links.append((f"n{draw(st.integers(0, len(inner) - 1))}", f"h{number}_"))
    return network(kinds, links, pruning=draw(st.booleans()))


@settings(max_examples=60, deadline=None)
@given(networks(), st.data())
def test_unicast_takes_the_shortest_path_to_its_host(topology: Topology, data: st.DataObject) -> None:
    model = StaticModel(plan_emulation(topology))
    source, target = data.draw(st.lists(st.sampled_from(topology.hosts), min_size=2, max_size=2, unique=True))
    near, far = topology.member(source).node, topology.member(target).node
    path = [*topology.graph.successors(near)]
    while path[-1] != far:
        path.append(next_hops(topology, path[-1])[far])
    assert len(path) == nx.shortest_path_length(topology.graph, path[0], far) + 1
    assert model.unicast(source, target) == [node for node in path if topology.node(node).kind == "router"] + [target]


@settings(max_examples=100, deadline=None)
@given(networks(), st.data(), st.sampled_from([1, 2, 3, 255]))
def test_a_group_reaches_required_hosts_once_and_only_allowed_networks(
    topology: Topology, data: st.DataObject, ttl: int
) -> None:
    members = data.draw(st.lists(st.sampled_from(topology.hosts), min_size=1, unique=True))
    source = data.draw(st.sampled_from(members))
    copies = StaticModel(plan_emulation(topology, {GROUP: members})).multicast(source, ttl)
    required = expected_reach(topology, source, GROUP, members, ttl)
    assert all(copies[host] == 1 for host in required.required)
    assert set(copies) - {source} <= required.allowed
    assert max(copies.values(), default=1) == 1


@pytest.mark.parametrize(("pruning", "allowed"), [(True, {"b1"}), (False, {"b1", "b2", "c"})])
def test_without_pruning_all_networks_are_reached(pruning: bool, allowed: set[str]) -> None:
    topology = network(
        {"a": "host", "s": "switch", "g": "router", "t": "switch", "u": "switch", "b": "host*2", "c": "host"},
        [("a", "s"), ("s", "g"), ("g", "t"), ("g", "u"), ("t", "b"), ("u", "c")],
        pruning=pruning,
    )
    found = expected_reach(topology, "a", GROUP, ["a", "b1"], 255)
    assert found.required == {"b1"}
    assert found.allowed == allowed
    assert expected_reach(topology, "a", GROUP, ["a", "b1"], 1).required == set()


def test_a_router_with_more_than_32_links_is_refused() -> None:
    topology = network({"g": "router", "r": "host*33"}, [("g", "r")])
    with pytest.raises(UnsupportedError, match="node g: 33 links can't be emulated; 32 at most"):
        plan_emulation(topology)
