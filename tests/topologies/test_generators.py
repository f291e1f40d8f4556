"""Generators, trees and addresses."""

from typing import Any

import networkx as nx
import pytest
from pydantic import TypeAdapter, ValidationError

from protocols.errors import ConfigError
from topologies.addressing import endpoint_of_group, host_address, node_id
from topologies.generators import AnyTopology
from topologies.spec import LinkAttributes, NodeSpec, Topology, connect
from topologies.trees import distribution, next_hops

ANY: TypeAdapter[AnyTopology] = TypeAdapter(AnyTopology)


def build(**written: Any) -> Topology:
    """Build a topology from its keys in a scenario."""
    return ANY.validate_python(written).build()


def test_a_star_has_a_trunk_and_one_group_of_leaves() -> None:
    topology = build(kind="star", receivers=8, trunk={"rate": "100Mbit"}, link={"down": {"loss": "1%"}, "queue": 100})
    assert topology.hosts == ("sender", *(f"r{n}" for n in range(1, 9)))
    assert topology.link("sender", "s1").rate == topology.link("s1", "sender").rate == 12.5e6
    assert str(topology.link("s1", "r").loss) == "1% loss"
    assert str(topology.link("r", "s1").loss) == "no loss"
    assert topology.link("r", "s1").queue == 100


def test_in_a_lan_down_is_towards_every_host_the_sender_too() -> None:
    topology = build(kind="lan", receivers=3, link={"down": {"delay": "1ms"}})
    assert topology.hosts == ("sender", "r1", "r2", "r3")
    assert topology.link("s1", "sender").delay == topology.link("s1", "r").delay == 0.001
    assert topology.link("sender", "s1").delay == 0.0


def test_a_chain_has_receivers_on_every_switch() -> None:
    topology = build(kind="chain", switches=3, receivers=2, trunk={"delay": "1ms"})
    assert topology.hosts == ("sender", "r1_1", "r1_2", "r2_1", "r2_2", "r3_1", "r3_2")
    assert topology.switches == ("s1", "s2", "s3")
    assert topology.link("s2", "s3").delay == 0.001
    assert topology.link("s3", "r3_").delay == 0.0


def test_a_tree_has_receivers_on_its_last_switches() -> None:
    topology = build(kind="tree", depth=3, fanout=2, receivers=2)
    assert len(topology.switches) == 7
    assert topology.hosts[:3] == ("sender", "r1_1", "r1_2")
    assert len(topology.hosts) == 9


def test_a_million_receivers_are_one_node() -> None:
    topology = build(kind="star", receivers=1_000_000)
    assert len(topology.graph) == 3
    assert topology.member("r1000000") == ("r", 999_999)


@pytest.mark.parametrize(
    "written",
    [
        {"kind": "ring", "receivers": 1},
        {"kind": "star", "receivers": 0},
        {"kind": "star", "receivers": "8"},
        {"kind": "star"},
        {"kind": "star", "receivers": 1, "colour": "red"},
        {"kind": "chain", "switches": 20_000},
    ],
)
def test_bad_generators_are_rejected(written: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        ANY.validate_python(written)


def test_a_tree_of_too_many_switches_is_rejected_with_their_number() -> None:
    with pytest.raises(ConfigError, match="fanout: 10 is not allowed; 11111111 switches"):
        build(kind="tree", depth=8, fanout=10)


def test_the_distribution_tree_reaches_the_members_and_nothing_else() -> None:
    topology = build(kind="tree", depth=3, fanout=2)
    tree = distribution(topology, "sender", ["r1_", "r3_"])
    assert tree == {"sender": ("s1",), "s1": ("s2", "s3"), "s2": ("s4",), "s4": ("r1_",), "s3": ("s6",), "s6": ("r3_",)}


def test_trees_are_shortest_paths_and_never_lead_through_hosts() -> None:
    graph: nx.DiGraph[str] = nx.DiGraph()
    for name in ("a", "b", "c"):
        graph.add_node(name, node=NodeSpec("host"))
    for name in ("s", "t", "u"):
        graph.add_node(name, node=NodeSpec("switch"))
    for near, far in [("a", "s"), ("a", "t"), ("b", "t"), ("s", "u"), ("u", "t"), ("c", "u"), ("s", "t")]:
        connect(graph, near, far, LinkAttributes())
    topology = Topology(graph)
    # Over the host a, the path from s to t would be the shortest.
    assert distribution(topology, "s", ["b"]) == {"s": ("t",), "t": ("b",)}
    assert distribution(topology, "a", ["b", "c"]) == {"a": ("s", "t"), "s": ("u",), "u": ("c",), "t": ("b",)}
    assert next_hops(topology, "s") == {"a": "a", "u": "u", "t": "t", "c": "u", "b": "t"}
    lengths = nx.single_source_shortest_path_length(graph, "s")
    assert {far: near for far, near in next_hops(topology, "s").items() if lengths[far] == 1} == {"a": "a", "u": "u", "t": "t"}


def test_every_host_has_its_own_address_and_node_id() -> None:
    topology = build(kind="star", receivers=600)
    addresses = [host_address(topology, name) for name in topology.hosts]
    assert addresses[0] == "10.0.0.1"
    assert addresses[256] == "10.0.1.1"
    assert len(set(addresses)) == 601
    assert [node_id(topology, name) for name in topology.hosts] == list(range(1, 602))


def test_groups_have_stable_multicast_addresses() -> None:
    assert endpoint_of_group("files") == endpoint_of_group("files")
    assert endpoint_of_group("files") != endpoint_of_group("video")
    address, port = endpoint_of_group("files", 7000).split(":")
    first, second, *_ = map(int, address.split("."))
    assert (first, port) == (239, "7000")
    assert 192 <= second < 196
