"""Roles, publish and subscribe in scenario files: what is wrong is said in one line."""

from copy import deepcopy
from typing import Any

import pytest

from experiments.scenario.cases import load_cases
from experiments.scenario.scenario import Scenario, load, parse, read
from protocols.errors import ConfigError

BASE: dict[str, Any] = {
    "name": "roles",
    "topology": {"kind": "star", "receivers": 2},
    "protocol": {"name": "relay"},
    "nodes": {"r2": {"role": "relay"}},
    "workload": [
        {"kind": "publish", "hosts": ["sender"], "to": "topic:t", "size": "1kB", "rate": "10/s"},
        {"kind": "subscribe", "hosts": ["r1"], "to": "topic:t"},
    ],
}


def changed(**values: Any) -> Scenario:
    return parse({**deepcopy(BASE), **values}, "FILE")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"nodes": {}}, "nodes: nobody takes the role 'relay', which protocol relay needs for workload.0; like nodes: {HOST: "),
        ({"nodes": {"r2": {"role": "rely"}}}, "nodes.r2.role: value 'rely' is not allowed; .*relay"),
        ({"nodes": {"r2": {"role": "publisher"}}}, "nodes.r2.role: value 'publisher' is not allowed; .* by the workload"),
        (
            {"nodes": {"r1": {"role": "relay"}, "r2": {"role": "relay"}}},
            "nodes.r2.role: value 'relay' is not allowed; r1 takes it",
        ),
        ({"nodes": {"r2": {"role": "relay", "ring": 4}}}, "nodes.r2.ring: value 4 is not allowed; role relay has no options"),
        ({"nodes": {"r2": {"role": "relay", "run": "nrl-norm"}}}, "nodes.r2.run: value 'nrl-norm' is not allowed"),
        ({"nodes": {"r2": {"runs": "x"}}}, "nodes.r2.runs: value 'x' is not allowed; unknown key, known here: run, role"),
        ({"nodes": {"r9": {"role": "relay"}}}, "nodes.r9: value 'r9' is not allowed"),
        ({"protocol": {"name": "datagram"}}, "nodes.r2.role: value 'relay' is not allowed; protocol datagram has no further"),
        ({"workload": BASE["workload"][:1]}, "nobody subscribes"),
        ({"workload": {"size": "1MB"}}, "workload.kind: value 'file' is not allowed; protocol relay carries publish"),
        (
            {"workload": [BASE["workload"][0], {**BASE["workload"][1], "selector": "a = 1"}]},
            "workload.1.selector: value 'a = 1' is not allowed; protocol relay has no selectors",
        ),
        ({"workload": [BASE["workload"][0], {**BASE["workload"][1], "hosts": ["x"]}]}, "workload.1.hosts: value 'x'"),
        ({"workload": [{**BASE["workload"][0], "rat": 1}]}, "workload.0.rat: value 1 is not allowed; unknown key, .*rate"),
        ({"workload": {"size": "1MB", "kin": 1}}, "workload.*kin: value 1 is not allowed; unknown key, .*sender|from"),
        ({"workload": [{"kind": "publishes", "hosts": ["sender"]}]}, "workload.0.kind: value 'publishes' is not allowed"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        changed(**values)
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith("FILE: ")


def test_a_scenario_reads_what_it_writes() -> None:
    scenario = changed()
    again = parse(scenario.plain(), "again")
    assert again.plain() == scenario.plain()
    assert again.digest() == scenario.digest()


def test_roles_are_part_of_the_digest_and_programs_named_mcastlab_are_not() -> None:
    norm = {"protocol": {"name": "norm"}}
    assert changed(**norm, nodes={}).digest() == changed(**norm, nodes={"r2": {"run": "mcastlab"}}).digest()
    other = {"r1": {"role": "relay"}}
    assert changed().digest() != changed(nodes=other).digest()


def test_the_order_of_roles_is_part_of_the_digest() -> None:
    data = read("fjm2-three-sites")
    turned = {**data, "nodes": dict(reversed(data["nodes"].items()))}
    assert parse(data, "test").digest() == parse(deepcopy(data), "test").digest() != parse(turned, "test").digest()


def test_a_workload_without_a_kind_sends_files() -> None:
    scenario = changed(protocol={"name": "norm"}, nodes={}, workload={"size": "1MB"})
    assert [work.size for work in scenario.files] == [1_000_000]


def test_a_case_with_another_protocol_leaves_what_that_does_not_have() -> None:
    cases = load_cases("relay-vs-multicast")
    assert cases["relay-2"].protocol.config.queue == 4
    assert cases["norm-2"].nodes == {}
    assert cases["norm-2"].protocol.name == "norm"


def test_a_router_with_a_role_runs_a_machine() -> None:
    nodes = {"p": {}, "g": {"kind": "router"}, "r": {"count": 2}, "s": {"kind": "switch"}}
    links = [{"ends": ["p", "g"]}, {"ends": ["g", "s"]}, {"ends": ["s", "r"]}]
    work = [{**BASE["workload"][0], "hosts": ["p"]}, {**BASE["workload"][1], "hosts": ["r"]}]
    topology = {"kind": "graph", "nodes": nodes, "links": links}
    built = changed(topology=topology, nodes={"g": {"role": "relay"}}, workload=work).build_topology()
    assert built.hosts == ("p", "r1", "r2", "g.host")
    assert built.hosts_of("g") == ["g.host"]
    assert built.router_machines == {"g": "g.host"}


@pytest.mark.parametrize("name", ["relay-vs-multicast", "relay-crash", "tcp-shared", "same-host"])
def test_ready_scenarios_are_valid(name: str) -> None:
    assert load(name).subscriptions
