"""Wide-area and random networks: nodes, links, delays, and reproducibility by seed."""

from typing import Any

import networkx as nx
import pytest
from pydantic import TypeAdapter

from protocols.errors import ConfigError
from topologies.generators import AnyTopology
from topologies.node_models import RouterModel
from topologies.spec import Topology

ANY: TypeAdapter[AnyTopology] = TypeAdapter(AnyTopology)


def build(written: dict[str, Any]) -> Topology:
    """Build the topology."""
    return ANY.validate_python(written).build()


def edges(topology: Topology) -> list[tuple[str, str, float]]:
    """Return the delay of every direction."""
    return [(near, far, spec.delay) for near, far, spec in topology.links]


def test_sites_of_a_wan_are_behind_their_routers() -> None:
    wan = build({"kind": "wan", "sites": 2, "receivers": 3, "lan": {"rate": "100Mbit"}, "wan": {"rate": "2Mbit"}})
    assert wan.hosts == ("sender", "r1_1", "r1_2", "r1_3", "r2_1", "r2_2", "r2_3")
    assert nx.shortest_path(wan.graph, "sender", "r2_") == ["sender", "s0", "g0", "core", "g2", "s2", "r2_"]
    assert wan.link("core", "g2").rate == 250_000
    assert wan.link("g2", "s2").rate == 12.5e6
    assert wan.node("g1").kind == "router"


def test_down_is_away_from_the_sender_on_every_line_of_a_wan() -> None:
    wan = build({"kind": "wan", "sites": 1, "wan": {"down": {"delay": "1ms"}, "up": {"delay": "2ms"}}})
    assert [wan.link(*ends).delay for ends in (("g0", "core"), ("core", "g1"), ("g1", "core"), ("core", "g0"))] == [
        0.001,
        0.001,
        0.002,
        0.002,
    ]


def test_a_single_mac_router_of_a_wan_has_its_own_wire() -> None:
    router = {"mac": "single", "duplex": "half", "rate": "100Mbit"}
    wan = build({"kind": "wan", "sites": 1, "lan": {"rate": "1Gbit"}, "wan": {"rate": "2Mbit"}, "router": router})
    assert nx.shortest_path(wan.graph, "sender", "r1_")[1:-1] == ["s0", "g0", "w0", "core", "w1", "g1", "s1"]
    assert wan.link("w1", "core").rate == 250_000
    model = wan.node("g1").model
    assert isinstance(model, RouterModel)
    assert (model.rate, model.duplex) == (12.5e6, "half")


def test_a_dumbbell_has_bystanders_on_both_sides() -> None:
    bell = build({"kind": "dumbbell", "receivers": 2, "pairs": 2})
    assert nx.shortest_path(bell.graph, "x1", "y2") == ["x1", "s1", "s2", "y2"]
    assert [name for name in bell.host_nodes if bell.node(name).bystander] == ["x1", "y1", "x2", "y2"]


@pytest.mark.parametrize("kind", [{"kind": "waxman", "switches": 30}, {"kind": "transit-stub"}])
def test_a_random_network_is_a_function_of_its_seed(kind: dict[str, Any]) -> None:
    first, again, other = (build({**kind, "seed": seed}) for seed in (1, 1, 2))
    assert edges(first) == edges(again)
    assert edges(first) != edges(other)


@pytest.mark.parametrize("seed", range(5))
def test_sparse_random_networks_are_connected(seed: int) -> None:
    sparse = build({"kind": "waxman", "switches": 40, "alpha": "5%", "beta": "5%", "seed": seed})
    assert nx.is_connected(sparse.graph.to_undirected())


def test_long_links_of_a_waxman_network_are_rare_and_slow() -> None:
    # Waxman's expectation for uniform places: the mean over pairs of beta * exp(-d / (alpha L)).
    made = [build({"kind": "waxman", "switches": 60, "alpha": "20%", "beta": "50%", "seed": seed}) for seed in range(4)]
    delays = [d for net in made for near, far, d in edges(net) if near < far and far.startswith("s") and near.startswith("s")]
    assert max(delays) <= 0.02
    # Both by numerical integration over pairs of uniform places: a pair is joined with probability 0.1123, standard error over
    # 4 x 1770 pairs 0.004; a link's mean length is 0.3352, standard error over 800 links 0.008.
    assert len(delays) / (4 * 1770) == pytest.approx(0.1123, abs=0.016)
    assert sum(delays) / len(delays) * 2**0.5 / 0.02 == pytest.approx(0.3352, abs=0.032)


def test_stubs_are_linked_to_the_transit_network() -> None:
    net = build({"kind": "transit-stub", "transit": 3, "stubs": 2, "size": 4, "receivers": 2, "access": {"delay": "5ms"}})
    assert [name for name in net.switches if net.node(name).kind == "router"] == ["t1", "t2", "t3"]
    assert len(net.switches) == 3 + 3 * 2 * 4
    assert net.link("t2", "s9").delay == 0.005
    assert len(net.hosts) == 1 + 24 * 2
    core = net.graph.subgraph(["t1", "t2", "t3"])
    assert nx.is_strongly_connected(core)


def test_too_many_stubs_are_rejected() -> None:
    with pytest.raises(ConfigError, match="size: 1000 is not allowed; 12004 switches, and 10000 is the limit"):
        build({"kind": "transit-stub", "size": 1000})


def test_single_nodes_of_any_network_can_be_changed() -> None:
    chain = build({"kind": "chain", "switches": 2, "nodes": {"s2": {"kind": "router", "cpu": "5us"}, "r1_": {"buffer": "9kB"}}})
    assert chain.node("s2").kind == "router"
    assert chain.node("s2").model == RouterModel(cpu=5e-6)
    assert chain.size("r1_") == 1


@pytest.mark.parametrize(
    ("nodes", "text"),
    [
        ({"s1": {"kind": "host"}}, "nodes.s1.kind: 'host' is not allowed; s1 is a switch"),
        ({"r": {"count": 4}}, "nodes.r.count: 4 is not allowed; the kind of topology determines it"),
        ({"r": {"storm": "1Mbit"}}, "nodes.r.storm: 125000.0 is not allowed; only for a switch, this is a host"),
        ({"r": {"pause": True}}, "nodes.r.pause: True is not allowed; only for a host without a count"),
        ({"s1": {"kind": "router", "mac": "single"}}, "nodes.s1.rate: is missing"),
        ({"s1": {"kind": "router", "rate": "1Mbit"}}, "nodes.s1.rate: 125000.0 is not allowed; only for mac single"),
        ({"s1": {"kind": "router", "mac": "single", "rate": "1Mbit"}}, "link sender-s1: rate is not allowed; s1 is a router"),
    ],
)
def test_a_wrong_change_names_node_and_key(nodes: dict[str, Any], text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        build({"kind": "star", "receivers": 2, "trunk": {"rate": "1Mbit"}, "nodes": nodes})
