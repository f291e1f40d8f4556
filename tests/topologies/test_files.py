"""Topology files: all formats give the same topology, and an error is one line with the file name."""

import json
from pathlib import Path
from typing import Any

import networkx as nx
import pytest

from experiments.scenario.ready import find_scenario
from experiments.scenario.scenario import load
from protocols.errors import ConfigError, McastlabError
from topologies.files import read_topology
from topologies.generators import Inline
from topologies.spec import Topology

PLAIN: dict[str, Any] = {
    "nodes": {"sender": {}, "s": {}, "g": {"kind": "router", "cpu": "5us"}, "r": {"count": 4}},
    "links": [
        {"ends": ["sender", "s"], "rate": "100Mbit"},
        {"ends": ["s", "g"], "delay": "2ms"},
        {"ends": ["g", "r"], "rate": "10Mbit", "queue": 20, "down": {"loss": "1%"}},
    ],
}


def build(path: Path) -> Topology:
    """Return the topology in a file."""
    return Inline.model_validate(read_topology(path)).build()


def graph_of() -> "nx.Graph[str]":
    """Return PLAIN as a networkx graph with flat attributes."""
    graph: nx.Graph[str] = nx.Graph()
    for name, attributes in PLAIN["nodes"].items():
        graph.add_node(name, **attributes)
    for link in PLAIN["links"]:
        flat = {key: value for key, value in link.items() if key not in ("ends", "down")}
        flat |= {f"down_{key}": value for key, value in link.get("down", {}).items()}
        graph.add_edge(*link["ends"], **flat)
    return graph


def written(folder: Path, kind: str) -> Path:
    """Write PLAIN to a file of this format."""
    path = folder / f"net.{kind.rpartition('-')[2]}"
    if kind == "graphml":
        nx.write_graphml(graph_of(), path)
    elif kind == "node-link-json":
        path.write_text(json.dumps(nx.node_link_data(graph_of(), edges="links")))
    else:
        # JSON is YAML too.
        path.write_text(json.dumps(PLAIN))
    return path


def facts(topology: Topology) -> Any:
    """Return all attributes of a topology."""
    return {name: topology.node(name) for name in topology.graph}, {(near, far): spec for near, far, spec in topology.links}


@pytest.mark.parametrize("kind", ["yaml", "json", "node-link-json", "graphml"])
def test_all_formats_give_the_same_topology(kind: str, tmp_path: Path) -> None:
    assert facts(build(written(tmp_path, kind))) == facts(Inline.model_validate(PLAIN).build())


def test_opposite_edges_are_the_directions_of_one_link(tmp_path: Path) -> None:
    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_edge("a", "b", delay="1ms")
    graph.add_edge("b", "a", delay="3ms")
    nx.write_graphml(graph, tmp_path / "net.graphml")
    topology = build(tmp_path / "net.graphml")
    assert (topology.link("a", "b").delay, topology.link("b", "a").delay) == (0.001, 0.003)


@pytest.mark.parametrize("kind", ["graphml", "json"])
def test_a_multigraph_without_parallel_links_is_a_topology(kind: str, tmp_path: Path) -> None:
    graph: nx.MultiGraph[str] = nx.MultiGraph(graph_of())
    path = tmp_path / f"net.{kind}"
    if kind == "graphml":
        nx.write_graphml(graph, path)
    else:
        path.write_text(json.dumps(nx.node_link_data(graph, edges="edges")))
    assert facts(build(path)) == facts(Inline.model_validate(PLAIN).build())


@pytest.mark.parametrize(
    ("edges", "text"),
    [
        ([("a", "b"), ("b", "a"), ("a", "b")], "net.json: link a-b: is given twice"),
        ([("a", "b"), ("a", "b"), ("b", "a")], "net.json: link a-b: is given twice"),
        ([("a", "b"), ("b", "a"), ("b", "a")], "net.json: link b-a: is given twice"),
        ([("a", "b"), ("b", "a"), ("b", "b")], "net.json: link b-b: joins a node to itself"),
    ],
)
def test_a_directed_graph_has_each_direction_once(edges: list[tuple[str, str]], text: str, tmp_path: Path) -> None:
    graph: nx.MultiDiGraph[str] = nx.MultiDiGraph(edges)
    (tmp_path / "net.json").write_text(json.dumps(nx.node_link_data(graph, edges="links")))
    with pytest.raises(ConfigError, match=text):
        read_topology(tmp_path / "net.json")


SCENARIO = """
name: x
topology: {file: net.yaml}
protocol: {name: norm}
workload: {kind: file, size: 1kB}
"""


def test_a_scenario_holds_the_network_and_not_the_file_name(tmp_path: Path) -> None:
    written(tmp_path, "yaml")
    (tmp_path / "one.yaml").write_text(SCENARIO)
    inline = SCENARIO.replace("{file: net.yaml}", json.dumps({"kind": "graph", **PLAIN}))
    (tmp_path / "two.yaml").write_text(inline)
    one, two = load(tmp_path / "one.yaml"), load(tmp_path / "two.yaml")
    assert one.digest() == two.digest()
    shared = load(tmp_path / "one.yaml", ["topology.multicast={join: 1s}"])
    assert shared.build_topology().multicast.join == 1.0


def test_a_file_named_for_a_scenario_elsewhere_is_found_in_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(tmp_path, "graphml")
    monkeypatch.chdir(tmp_path)
    scenario = load(find_scenario(Path("lan-file")), ["topology={file: net.graphml}"])
    assert scenario.build_topology().hosts == ("sender", "r1", "r2", "r3", "r4")


MANY = {"nodes": {f"n{n}": {} for n in range(20_000)}, "links": []}
WRONG: dict[str, tuple[Any, str]] = {
    "a million one by one": (
        MANY,
        "lists 20000 nodes one by one, and 10000 is the limit; write equal leaves as one node with a count",
    ),
    "no links": ({"nodes": {}}, "a topology is a mapping with nodes and links"),
    "disconnected": (
        {"nodes": {"sender": {}, "b": {}, "c": {}}, "links": [{"ends": ["sender", "b"]}]},
        "node c: is not connected to sender",
    ),
    "negative delay": (
        {"nodes": {"sender": {}, "b": {}}, "links": [{"ends": ["sender", "b"], "delay": -1}]},
        "topology.links.0.delay: value -1 is not allowed; it is not a duration",
    ),
    "unknown model": (
        {"nodes": {"sender": {}, "b": {}}, "links": [{"ends": ["sender", "b"], "loss": {"model": "magic"}}]},
        "topology.links.0.loss.model: value 'magic' is not allowed; one of 'perfect'",
    ),
    "unknown key": (
        {"nodes": {"sender": {"cpus": 2}, "b": {}}, "links": [{"ends": ["sender", "b"]}]},
        "topology.nodes.sender.cpus: value 2 is not allowed",
    ),
    "link to nowhere": (
        {"nodes": {"sender": {}, "b": {}}, "links": [{"ends": ["sender", "x"]}]},
        "topology.links.0.ends: value 'x' is not allowed; no such node",
    ),
    "said twice": (
        {"nodes": {"sender": {}, "b": {}}, "links": [{"ends": ["sender", "b"]}, {"ends": ["b", "sender"]}]},
        "topology.links.1.ends: value b-sender is not allowed; this link is given twice",
    ),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_bad_file_gets_one_line(wrong: str, tmp_path: Path) -> None:
    data, text = WRONG[wrong]
    (tmp_path / "net.json").write_text(json.dumps(data))
    (tmp_path / "one.yaml").write_text(SCENARIO.replace("yaml", "json"))
    with pytest.raises(ConfigError) as caught:
        load(tmp_path / "one.yaml")
    line = str(caught.value)
    assert text in line
    assert str(tmp_path) in line
    assert "\n" not in line
    assert len(line) < 400


@pytest.mark.parametrize(
    ("name", "content", "text"),
    [
        ("net.txt", "", "'.txt' is not a known file type; allowed are .yaml, .yml, .json, .graphml"),
        ("net.yaml", "nodes: [", "while parsing a flow node"),
        ("net.yaml", "nodes: {a: {}, a: {}}\nlinks: []", "key 'a' appears twice"),
        ("net.json", "{", "Expecting property name"),
        ("net.json", '{"nodes": [{"name": "a"}], "links": []}', "has no 'id'"),
        ("net.json", '{"nodes": [{"id": 1}, {"id": "1"}], "links": []}', "node 1: is listed twice"),
        ("net.json", '{"nodes": ["a"], "links": []}', "nodes.0: value 'a' is not allowed; it should be a mapping"),
        ("net.json", '{"nodes": [], "links": [["a", "b"]]}', "links.0: value ['a', 'b'] is not allowed; it should be a"),
        ("net.json", '{"nodes": [], "links": [], "directed": "false"}', "directed: value 'false' is not allowed; true or"),
        ("net.json", '{"nodes": [], "edges": 5}', "has a list of nodes but no list of links or edges"),
        ("net.graphml", "<graphml>", "no element found"),
        ("gone.yaml", None, "can't be read"),
    ],
)
def test_an_unreadable_file_gets_one_line(name: str, content: str | None, text: str, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / name).write_text(content)
    with pytest.raises(McastlabError) as caught:
        read_topology(tmp_path / name)
    assert text in str(caught.value)
    assert "\n" not in str(caught.value)


def test_nodes_without_kind_are_hosts_at_the_edge_and_switches_between() -> None:
    topology = Inline.model_validate(
        {"nodes": {"a": None, "m": None, "b": None}, "links": [{"ends": ["a", "m"]}, {"ends": ["m", "b"]}]}
    ).build()
    assert topology.host_nodes == ("a", "b")
    assert topology.switches == ("m",)
