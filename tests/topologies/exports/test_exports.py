"""Exports contain the nodes and links of the topology, as read by other tools' parsers."""

import ast
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from Kathara.parser.netkit.LabParser import LabParser

from experiments.cli import invoke
from experiments.scenario.scenario import load
from protocols.errors import ConfigError
from topologies.exports import core_xml, kathara_lab, mininet_script
from topologies.generators import Inline
from topologies.spec import Topology


def written(**data: Any) -> Topology:
    return Inline.model_validate({"kind": "graph", **data}).build()


SCENARIOS = Path(__file__).parents[3] / "experiments" / "scenarios"
LAN: dict[str, Any] = {
    "nodes": {"sender": {}, "s1": {"kind": "switch"}, "r": {"count": 3}},
    "links": [
        {"ends": ("sender", "s1"), "rate": "100Mbit"},
        {"ends": ("s1", "r"), "rate": "10Mbit", "delay": "5ms", "down": {"loss": "1%"}},
    ],
}
TWO_SITES: dict[str, Any] = {
    "nodes": {
        "sender": {},
        "west": {"kind": "router"},
        "east": {"kind": "router"},
        "lan": {"kind": "switch"},
        "r": {"count": 2},
    },
    "links": [
        {"ends": ("sender", "west")},
        {"ends": ("west", "east"), "rate": "10Mbit", "delay": "25ms"},
        {"ends": ("east", "lan")},
        {"ends": ("lan", "r")},
    ],
}


def constants(text: str) -> dict[str, Any]:
    """Return the tables of a script without running it."""
    found = {}
    for node in ast.parse(text).body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id.isupper():
            found[node.targets[0].id] = ast.literal_eval(node.value)
    return found


def test_a_mininet_script_impairs_every_end_of_every_link_as_the_topology_says() -> None:
    text, missing = mininet_script(written(**LAN), "lan", "lan.py")
    impair = constants(text)["IMPAIR"]
    assert missing == []
    assert impair["sender"] == ["tc qdisc add dev sender-eth0 root handle 1: netem limit 1000000 rate 100000000bit"]
    # The bridge numbers its ports from 1; the loss is on the way down only.
    down, up = impair["s1"][1], impair["r1"][0]
    assert down.startswith("tc qdisc add dev s1-eth2 ")
    for line in (down, up):
        assert "delay 5ms" in line
        assert "rate 10000000bit" in line
    assert "loss" in down
    assert "loss" not in up


def test_a_router_in_a_script_has_a_route_to_every_host() -> None:
    prepare = constants(mininet_script(written(**TWO_SITES), "sites", "sites.py")[0])["PREPARE"]
    routes = [line for line in prepare["east"] if line.startswith("ip route")]
    assert routes == [
        "ip route replace 10.0.0.1/32 dev east-eth0",
        "ip route replace 10.0.0.2/32 dev east-eth1",
        "ip route replace 10.0.0.3/32 dev east-eth1",
    ]


def test_names_too_long_for_interfaces_are_replaced_with_a_comment() -> None:
    hosts = ("a-very-long-name", "Berlin", "hx1")
    nodes: dict[str, Any] = {name: {} for name in hosts} | {"s": {"kind": "switch"}}
    topology = written(nodes=nodes, links=[{"ends": (name, "s")} for name in hosts])
    text = mininet_script(topology, "names", "names.py")[0]
    for line in ("self.addHost('hx1', ip='10.0.0.1/8')  # a-very-long-name", "self.addHost('hx2', ip='10.0.0.2/8')  # Berlin"):
        assert line in text
    assert "self.addHost('hx3', ip='10.0.0.3/8')  # hx1" in text


def test_kathara_reads_the_lab_with_a_domain_for_each_link(tmp_path: Path) -> None:
    files, _ = kathara_lab(written(**TWO_SITES), "two sites")
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    lab = LabParser.parse(str(tmp_path))
    plugs: dict[str, list[str]] = {}
    for name, machine in lab.machines.items():
        for interface in machine.interfaces.values():
            plugs.setdefault(interface.link.name, []).append(name)
    assert sorted(map(sorted, plugs.values())) == [
        ["east", "lan"], ["east", "west"], ["lan", "r1"], ["lan", "r2"], ["sender", "west"]
    ]  # fmt: skip
    assert lab.name == "two sites"
    assert sorted(files) == sorted([*(f"{name}.startup" for name in lab.machines), "lab.conf"])
    assert "ip route replace 10.0.0.1/32 dev eth0" in files["east.startup"]


def test_a_core_file_has_each_direction_that_differs_as_a_link_of_its_own() -> None:
    text, missing = core_xml(written(**LAN), "lan")
    root = ElementTree.fromstring(text)
    names = {node.get("id"): node.get("name") for node in [*root.iter("device"), *root.iter("network")]}
    ways = {}
    for link in root.iter("link"):
        options = link.find("options")
        assert options is not None
        ways[names[link.get("node1")], names[link.get("node2")]] = options.attrib
    assert missing == []
    assert set(names.values()) == {"sender", "s1", "r1", "r2", "r3"}
    assert ways["sender", "s1"]["unidirectional"] == "0"
    assert (ways["s1", "r2"]["delay"], ways["s1", "r2"]["bandwidth"], ways["s1", "r2"]["loss"]) == ("5000", "10000000", "1")
    assert (ways["r2", "s1"]["loss"], ways["r2", "s1"]["unidirectional"]) == ("0", "1")
    first = next(root.iter("iface1"))
    assert (first.get("ip4"), first.get("ip4_mask")) == ("10.0.0.1", "8")


def test_a_core_export_rejects_routers() -> None:
    with pytest.raises(ConfigError, match="node west: kind router is not allowed in a CORE export; host or switch"):
        core_xml(written(**TWO_SITES), "sites")


def test_switches_in_a_loop_run_the_spanning_tree_protocol_or_are_refused() -> None:
    nodes = {name: {"kind": "switch"} for name in ("s1", "s2", "s3", "s4")} | {"g": {"kind": "router"}, "a": {}}
    ring = [{"ends": pair} for pair in (["s1", "s2"], ["s2", "s3"], ["s3", "s1"])]
    # A loop with a router on it has no frame go round.
    routed = [{"ends": pair} for pair in (["s3", "s4"], ["s4", "g"], ["g", "s3"], ["a", "s1"])]
    topology = written(nodes=nodes, links=ring + routed)
    text, missing = mininet_script(topology, "ring", "ring.py")
    assert [line for line in text.splitlines() if "stp=True" in line] == [
        f"        self.addSwitch('s{number}', dpid='{number}', stp=True)" for number in (1, 2, 3)
    ]
    files, _ = kathara_lab(topology, "ring")
    assert {name for name, commands in files.items() if "stp_state 1" in commands} == {f"s{n}.startup" for n in (1, 2, 3)}
    assert "topology: its switches form a loop, of which STP uses a tree, not all the shortest paths" in missing
    with pytest.raises(ConfigError, match="node s1: a loop of switches is not allowed in a CORE export; a tree"):
        core_xml(written(nodes={name: {} for name in ("s1", "s2", "s3", "a")}, links=[*ring, {"ends": ["a", "s1"]}]), "ring")


@pytest.mark.parametrize("name", ["bursty-loss", "wan", "router-single-mac", "cross-traffic"])
def test_ready_scenarios_become_valid_python_and_a_valid_lab(name: str, tmp_path: Path) -> None:
    topology = load(SCENARIOS / f"{name}.yaml").build_topology()
    text, _ = mininet_script(topology, name, "x.py")
    compile(text, "x.py", "exec")
    files, _ = kathara_lab(topology, name)
    (tmp_path / "lab.conf").write_text(files["lab.conf"], encoding="utf-8")
    assert len(LabParser.parse(str(tmp_path)).machines) == len(topology.hosts) + len(topology.switches)


def test_what_can_not_be_exported_is_listed_on_stderr_and_in_the_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = tmp_path / "wan.py"
    assert invoke(["topo", str(SCENARIOS / "router-single-mac.yaml"), "--mininet", str(script)]) == 0
    err = capsys.readouterr().err
    assert "not in the export: node router: " in err
    assert "# Not exported: node router: " in script.read_text(encoding="utf-8")


def test_a_topo_command_that_would_write_nothing_is_rejected(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["topo", str(SCENARIOS / "wan.yaml")]) == 2
    assert "nothing to write; name --svg" in capsys.readouterr().err


def test_too_many_hosts_for_an_emulator_are_rejected() -> None:
    crowd = {**LAN, "nodes": {**LAN["nodes"], "r": {"count": 2000}}}
    with pytest.raises(ConfigError, match="2001 hosts are not allowed in an export; 1000 at most"):
        mininet_script(written(**crowd), "", "")
