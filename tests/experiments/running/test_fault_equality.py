"""With any faults, a run depends neither on the engine nor on the encoding of packets."""

from typing import Any

import pytest

from experiments.running.run import run
from experiments.scenario.scenario import parse
from experiments.search.plans import random_plan
from protocols.rng import Rng, key_of
from topologies.spec import Topology

LOSSY = {"rate": "20Mbit", "delay": "2ms", "queue": 20, "down": {"loss": "3%"}, "up": {"loss": "1%"}}
TOPOLOGIES: list[dict[str, Any]] = [
    {"kind": "star", "receivers": 7, "trunk": {"rate": "50Mbit", "delay": "1ms", "queue": 50}, "link": LOSSY},
    {"kind": "tree", "depth": 2, "fanout": 2, "receivers": 6, "trunk": {"delay": "1ms"}, "link": {"down": {"loss": "5%"}}},
    {"kind": "chain", "switches": 3, "receivers": 2, "trunk": {"delay": "5ms", "down": {"loss": "2%"}}, "link": LOSSY},
    {"kind": "lan", "receivers": 5, "link": LOSSY},
]
RADIO = {
    "rate": "2Mbit",
    "queue": {"model": "red"},
    "delay": {"model": "pareto", "least": "5ms", "mean": "8ms"},
    "duplicate": "0.5%",
    "corrupt": "0.2%",
    "mtu": 1000,
    "down": {"loss": {"model": "gilbert-elliott", "p": "1%", "r": "20%", "loss_bad": "50%", "loss_good": "0.1%"}},
}
WAYS: list[dict[str, Any]] = [{"engine": "fast"}, {"engine": "strict"}, {"wire": "bytes"}]


@pytest.mark.parametrize("number", range(24))
def test_random_faults_give_equal_fingerprints_and_break_no_rule(number: int) -> None:
    compare_random_run(number, TOPOLOGIES[number % 4], {"name": "norm", "rate": "8Mbit", "grtt": "30ms", "robust": 4}, "120kB")


# In run 38 a duplicate arrives at a receiver at the same time as the packet that completes its object.
@pytest.mark.parametrize(("number", "name"), [(0, "norm"), (1, "n2"), (2, "srm"), (38, "a"), (4, "n1")])
def test_loss_models_with_memory_give_equal_fingerprints(number: int, name: str) -> None:
    topology = {"kind": "star", "receivers": 4, "trunk": {"rate": "10Mbit", "queue": {"model": "codel"}}, "link": RADIO}
    compare_random_run(number, topology, {"name": name, "rate": "1Mbit"}, "40kB")


@pytest.mark.parametrize("number", range(4))
def test_links_that_change_give_equal_fingerprints(number: int) -> None:
    topology = parse_topology(TOPOLOGIES[number])
    near, far, _ = next(link for link in topology.links if link[0] in topology.switches and link[1] in topology.host_nodes)
    plan: list[dict[str, Any]] = [
        {"at": "20ms", "change": [near, far], "rate": "3Mbit", "loss": "30%", "for": "60ms"},
        {"at": "50ms", "change": ["sender", topology.links[0][1]], "rate": "4Mbit", "for": "40ms"},
        {"at": "60ms", "change": [near, far], "loss": 0},
    ]
    compare_run(number, TOPOLOGIES[number], {"name": "norm", "rate": "8Mbit", "grtt": "30ms", "robust": 4}, "120kB", plan)


def test_a_changed_loss_is_the_same_in_a_group_of_one() -> None:
    topology = {"kind": "star", "receivers": 1, "link": {"rate": "10Mbit"}}
    plan = [{"at": "20ms", "change": ["s1", "r"], "loss": "10%"}]
    compare_run(1, topology, {"name": "norm", "rate": "8Mbit", "grtt": "30ms", "robust": 4}, "120kB", plan)


def parse_topology(topology: dict[str, Any]) -> Topology:
    """Build a topology as a scenario does."""
    return parse(
        {"name": "eq", "topology": topology, "protocol": {"name": "norm"}, "workload": {"size": 1}}, "x"
    ).build_topology()


def compare_random_run(number: int, topology: dict[str, Any], protocol: dict[str, Any], size: str) -> None:
    """Compare a run with random faults across engines and encodings."""
    plan = random_plan(Rng(key_of(9, number)), parse_topology(topology), 1.0)
    compare_run(number, topology, protocol, size, plan)


def compare_run(number: int, topology: dict[str, Any], protocol: dict[str, Any], size: str, plan: list[dict[str, Any]]) -> None:
    """Compare a run with these faults across engines and encodings."""
    base = {
        "name": "eq",
        "seed": number,
        "topology": topology,
        "protocol": protocol,
        "workload": {"size": size},
        "duration": "8s",
    }
    results = [run(parse(base | way | {"faults": plan}, "equal")) for way in WAYS]
    assert len({result.fingerprint for result in results}) == 1
    assert [result.violations for result in results] == [[]] * len(WAYS)


def test_noise_is_not_counted_at_a_host_that_is_cut_off() -> None:
    link = {"rate": "1Mbit", "mtu": 1500, "down": {"loss": "5%"}}
    topology = {"kind": "star", "receivers": 2, "trunk": {"rate": "5Mbit", "delay": "20ms"}, "link": link}
    scenario = {
        "name": "noise",
        "topology": topology,
        "protocol": {"name": "a", "rate": "500kbit"},
        "workload": {"size": "20kB"},
        "duration": "10s",
    }
    cut = {"at": "50ms", "flap": ["s1", "r1"], "for": "400ms"}
    storm = {"at": "100ms", "storm": "sender", "rate": "5Mbit", "for": "20ms"}
    ways: list[dict[str, Any]] = [{"engine": "fast"}, {"engine": "strict"}]
    dropped = [run(parse(scenario | way | {"faults": [cut, storm]}, "x")).metrics["injected"]["dropped"] for way in ways]
    assert dropped[0] == dropped[1]
