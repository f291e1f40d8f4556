"""Topologies: host names, attributes, and validation."""

from math import inf, nan
from typing import Any, cast

import networkx as nx
import pytest
from pydantic import ValidationError

from protocols.errors import ConfigError, UsageError
from topologies.channels import Bernoulli, Perfect
from topologies.node_models import SwitchModel
from topologies.spec import Graph, LinkAttributes, LinkSpec, Member, NodeSpec, Topology, connect


def graph_of(nodes: dict[str, NodeSpec], *links: tuple[str, str]) -> Graph:
    """Return a graph with perfect links."""
    graph: Graph = nx.DiGraph()
    for name, spec in nodes.items():
        graph.add_node(name, node=spec)
    for near, far in links:
        connect(graph, near, far, LinkAttributes())
    return graph


HOST, SWITCH = NodeSpec("host"), NodeSpec("switch")


def test_counted_leaves_expand_to_numbered_hosts_in_order() -> None:
    nodes = {"a": HOST, "s": SWITCH, "r": NodeSpec("host", 3), "z": HOST}
    topology = Topology(graph_of(nodes, ("a", "s"), ("s", "r"), ("s", "z")))
    assert topology.hosts == ("a", "r1", "r2", "r3", "z")
    assert [topology.index(name) for name in topology.hosts] == [0, 1, 2, 3, 4]
    assert topology.member("r3") == Member("r", 2)
    assert topology.member("z") == Member("z", 0)


@pytest.mark.parametrize("name", ["r", "r0", "r4", "r01", "nobody", "", "7"])
def test_an_unknown_host_is_named_with_some_that_exist(name: str) -> None:
    nodes = {"a": HOST, "s": SWITCH, "r": NodeSpec("host", 3)}
    topology = Topology(graph_of(nodes, ("a", "s"), ("s", "r")))
    with pytest.raises(UsageError, match="is no host of this topology; hosts are a, r1, r2, r3"):
        topology.member(name)


@pytest.mark.parametrize(
    ("name", "kind"), [("s", "a switch"), ("g", r"a router without a machine \(a role in nodes gives it one\)")]
)
def test_what_forwards_is_no_host_and_is_told_apart(name: str, kind: str) -> None:
    nodes = {"a": HOST, "s": SWITCH, "g": NodeSpec("router"), "z": HOST}
    topology = Topology(graph_of(nodes, ("a", "s"), ("s", "g"), ("g", "z")))
    with pytest.raises(UsageError, match=f"'{name}' is no host of this topology but {kind}; hosts are a, z$"):
        topology.member(name)


@pytest.mark.parametrize("name", ["nobody", None, 7, ["a"]])
def test_an_unknown_node_or_link_and_what_is_no_name_are_named(name: Any) -> None:
    topology = Topology(graph_of({"a": HOST, "s": SWITCH, "r": NodeSpec("host", 3)}, ("a", "s"), ("s", "r")))
    for call in (topology.node, topology.size, topology.networks_of):
        with pytest.raises(UsageError, match=r"is no node of this topology; nodes are a, s, r$"):
            call(name)
    with pytest.raises(UsageError, match=r"is no link of this topology; links are a-s, s-a, s-r, r-s$"):
        topology.link("a", name)
    for find in (topology.member, topology.index, topology.hosts_of):
        with pytest.raises(UsageError, match=r"is no host of this topology; hosts are a, r1, r2, r3$"):
            find(name)


def test_groups_whose_names_end_in_digits_are_found() -> None:
    nodes = {"s": SWITCH, "r1_": NodeSpec("host", 20), "r2": NodeSpec("host", 5)}
    topology = Topology(graph_of(nodes, ("s", "r1_"), ("s", "r2")))
    assert topology.member("r1_15") == Member("r1_", 14)
    assert topology.member("r25") == Member("r2", 4)


WRONG: dict[str, tuple[Graph, str]] = {
    "disconnected": (graph_of({"a": HOST, "s": SWITCH, "b": HOST}, ("a", "s")), "node b: is not connected to a"),
    "through a host": (
        graph_of({"a": HOST, "b": HOST, "c": HOST}, ("a", "b"), ("b", "c")),
        "node c: is not connected to a",
    ),
    "counted switch": (graph_of({"s": NodeSpec("switch", 2), "a": HOST}, ("s", "a")), "node s: count is only for a leaf"),
    "counted with two links": (
        graph_of({"r": NodeSpec("host", 2), "s": SWITCH, "t": SWITCH}, ("s", "r"), ("t", "r"), ("s", "t")),
        "node r: count is only for a leaf",
    ),
    "counted on a host": (
        graph_of({"r": NodeSpec("host", 2), "a": HOST}, ("a", "r")),
        "node r: a node with a count must be linked to a",
    ),
    "counted in text": (graph_of({"r": NodeSpec("host", cast(Any, "8")), "s": SWITCH}, ("s", "r")), "count '8' is not allowed"),
    "counted to nothing": (graph_of({"r": NodeSpec("host", 0), "s": SWITCH}, ("s", "r")), "count 0 is not allowed"),
    "name taken": (
        graph_of({"s": SWITCH, "r": NodeSpec("host", 3), "r2": HOST}, ("s", "r"), ("s", "r2")),
        "node r2: the name is also that of",
    ),
    "names mixed": (
        graph_of({"s": SWITCH, "r": NodeSpec("host", 30), "r2": NodeSpec("host", 5)}, ("s", "r"), ("s", "r2")),
        "node r2: its members have the same names as members of r",
    ),
    "empty": (graph_of({}), "has no nodes"),
    "no name": (graph_of({"": HOST}), "node '': the name is not allowed; printable text"),
    "a name of two lines": (graph_of({"a\nb": HOST}), r"node 'a\\nb': the name is not allowed"),
    "a number as name": (graph_of(cast(Any, {7: HOST})), "node 7: the name is not allowed"),
    "parallel links": (cast(Any, nx.MultiDiGraph(graph_of({"a": HOST, "s": SWITCH}, ("a", "s")))), "a directed graph of"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_bad_graph_gets_one_line_with_its_node(wrong: str) -> None:
    graph, text = WRONG[wrong]
    with pytest.raises(ConfigError, match=text):
        Topology(graph)


def test_one_way_links_and_missing_attributes_are_rejected() -> None:
    graph = graph_of({"a": HOST, "b": HOST}, ("a", "b"))
    graph.remove_edge("b", "a")
    with pytest.raises(ConfigError, match="link a-b: has no opposite direction b-a"):
        Topology(graph)
    graph.add_edge("b", "a")
    with pytest.raises(ConfigError, match="link b-a: has no LinkSpec"):
        Topology(graph)
    graph.add_node("c")
    with pytest.raises(ConfigError, match="node c: has no NodeSpec"):
        Topology(graph)


@pytest.mark.parametrize(
    "wrong", [{"rate": 0.0}, {"rate": -1.0}, {"rate": nan}, {"delay": -0.1}, {"delay": inf}, {"queue": -1}, {"overhead": -1}]
)
def test_a_bad_link_names_its_key(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=f"^{next(iter(wrong))}: "):
        LinkSpec(**wrong)


def test_down_and_up_override_the_attributes_of_both_directions() -> None:
    written = {"rate": "8Mbit", "delay": "5ms", "loss": "2%", "down": {"loss": "1%", "queue": 10}, "up": {"rate": None}}
    down, up = LinkAttributes.model_validate(written).specs()
    assert down == LinkSpec(1e6, 0.005, 10, Bernoulli(p=0.01))
    assert up == LinkSpec(inf, 0.005, None, Bernoulli(p=0.02))
    assert LinkAttributes().specs() == (LinkSpec(), LinkSpec())
    assert LinkSpec().loss == Perfect()
    assert LinkSpec().overhead == 14 + 20 + 8


def test_equal_links_are_dumped_equal_and_mean_the_same_when_read_again() -> None:
    short = LinkAttributes.model_validate({"rate": "8Mbit", "down": {"loss": "1%"}})
    full = LinkAttributes.model_validate({"down": {"rate": "8000kbit", "loss": 0.01}, "up": {"rate": 8e6}})
    assert short.model_dump() == full.model_dump()
    assert LinkAttributes.model_validate(short.model_dump()).specs() == short.specs()


@pytest.mark.parametrize(
    ("written", "where"),
    [
        ({"rate": "10 apples"}, ("rate",)),
        ({"delay": "-5ms"}, ("delay",)),
        ({"queue": 1.5}, ("queue",)),
        ({"queue": -1}, ("queue",)),
        ({"queue": True}, ("queue",)),
        ({"up": {"rat": 1}}, ("up", "rat")),
        ({"loss": {"model": "magic"}}, ("loss",)),
        ({"down": {"down": {}}}, ("down", "down")),
    ],
)
def test_bad_attributes_name_the_path_of_the_key(written: dict[str, Any], where: tuple[str, ...]) -> None:
    with pytest.raises(ValidationError) as error:
        LinkAttributes.model_validate(written)
    assert error.value.errors()[0]["loc"][: len(where)] == where


def test_a_node_that_pauses_has_plain_links() -> None:
    graph = graph_of({"a": HOST, "b": HOST, "s": NodeSpec("switch", model=SwitchModel(pause=True))}, ("a", "s"))
    connect(graph, "s", "b", LinkAttributes.model_validate({"duplicate": 0.1}))
    with pytest.raises(ConfigError, match=r"link b-s: more than .* is not allowed; s pauses"):
        Topology(graph)


@pytest.mark.parametrize(
    ("key", "text"),
    [
        *(("delay", "5ms"), ("rate", "10Mbit"), ("queue", "100"), ("overhead", "18"), ("mtu", "1500"), ("corrupt", "1%")),
        *(("loss", "1%"), ("jitter", "5ms"), ("discipline", "red"), ("loss", 0.01), ("queue", True), ("rate", None)),
    ],
)
def test_a_link_names_the_attribute_that_is_no_number_or_model(key: str, text: object) -> None:
    with pytest.raises(ConfigError, match=rf"^{key}: {text!r} is not allowed; "):
        LinkSpec(**cast(Any, {key: text}))


def test_a_link_says_what_reads_text() -> None:
    with pytest.raises(ConfigError, match=r"\(LinkAttributes\(delay='5ms'\).spec\(\) reads text\)$"):
        LinkSpec(delay=cast(Any, "5ms"))
    assert LinkAttributes(delay=cast(Any, "5ms")).spec().delay == 0.005
