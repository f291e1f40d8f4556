"""The search knows messages: what is told, their order, once across sites, requests, and members that leave and come."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from experiments.cli import invoke
from experiments.running.run import run
from experiments.scenario.protocol_modules import find_protocol
from experiments.scenario.scenario import load, parse, read
from experiments.search.plans import random_plan, targets_of
from experiments.search.search import check_run, search
from experiments.zoo.zoo import SCENARIOS
from protocols.errors import ConfigError
from protocols.fjm.config import FjmConfig
from protocols.fjm2 import Fjm2Config
from protocols.rng import Rng
from tests.experiments.search.message_mutants import MUTANTS
from tests.support.registered import register

LAN: dict[str, Any] = {
    "name": "hunt",
    "topology": {"kind": "lan", "receivers": 3, "link": {"rate": "10Mbit", "overhead": "ethernet", "queue": 100}},
    "workload": [
        {"kind": "publish", "hosts": ["sender"], "to": "topic:t", "size": "2kB", "rate": "100/s", "until": "1s"},
        {"kind": "subscribe", "hosts": ["r1", "r2"], "to": "topic:t"},
    ],
    "duration": "60s",
}
SMALL_CACHE = {"cache_min": 2, "cache_max": 10, "rate": "5Mbit", "grtt": "20ms"}
"""Parameters with which a fault of a tenth of a second loses messages for good."""
SITES: dict[str, Any] = {
    "name": "sites",
    "topology": {
        "kind": "graph",
        "nodes": {
            "p": {},
            "v": {},
            "lb": {"kind": "switch"},
            "g": {"kind": "router"},
            "la": {"kind": "switch"},
            "t": {},
            "u": {},
            "r": {},
        },
        "links": [
            {"ends": ends.split("-"), "rate": "10Mbit"} for ends in ("p-lb", "v-lb", "lb-g", "g-la", "t-la", "u-la", "r-la")
        ],
    },
    "workload": [
        {"kind": "publish", "hosts": ["p"], "to": "topic:t", "size": "1kB", "rate": "10/s", "until": "2s"},
        {"kind": "subscribe", "hosts": ["r"], "to": "topic:t"},
    ],
    "nodes": {name: {"role": "tunnel", "hello": "200ms"} for name in ("t", "u", "v")},
    "duration": "60s",
}
"""Two sites, and two tunnels in that of the subscriber."""


@pytest.fixture(autouse=True)
def _mutants_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    register(monkeypatch, MUTANTS)


def on_lan(name: str, **settings: Any) -> dict[str, Any]:
    return {**LAN, "protocol": {"name": name, **settings}}


def on_sites(name: str) -> dict[str, Any]:
    return {**SITES, "protocol": {"name": name, "rate": "5Mbit"}}


FOUND = [
    ("told", on_lan("silent", **SMALL_CACHE)),
    ("told", on_lan("undercounts", **SMALL_CACHE)),
    ("told", on_lan("silent-bus", history="50ms")),
    ("once", on_lan("repeating-bus", history="50ms")),
    ("fifo", on_lan("unordered", order="fifo", rate="5Mbit")),
    ("once", on_sites("relabelling")),
]


@pytest.mark.parametrize(
    ("rule", "data"), FOUND, ids=lambda value: value["protocol"]["name"] if isinstance(value, dict) else ""
)
def test_a_defect_that_concerns_messages_is_found_with_a_single_fault(rule: str, data: dict[str, Any]) -> None:
    found = search(data, "hunt", runs=40, seed=5 if data["protocol"]["name"] == "relabelling" else 3)
    assert found is not None
    assert found.verdict.rule == rule
    assert len(found.scenario["faults"]) == 1
    # What was found is the smallest plan, and breaks the same rule again.
    again = check_run(parse(found.scenario, "found"))
    assert again == found.verdict


SHARED: dict[str, Any] = {
    "kind": "star",
    "receivers": 4,
    "trunk": {"rate": "10Mbit", "down": {"loss": "5%"}},
    "link": {"rate": "10Mbit", "delay": {"model": "uniform", "least": "1ms", "most": "8ms", "order": "fifo"}},
}
"""Subscribers miss the same packets, and hear of it at different times."""


def on_star(name: str) -> dict[str, Any]:
    kind = find_protocol(name).spec.config
    settings = {} if kind is Fjm2Config else {"backoff": "20ms"}
    workload = [LAN["workload"][0], {**LAN["workload"][1], "hosts": ["r1", "r2", "r3"]}]
    nodes = {"r4": {"role": "manager"}} if kind is FjmConfig else {}
    return {**on_lan(name, **settings), "topology": SHARED, "workload": workload, "nodes": nodes}


REQUESTS = [
    *(("suppressed", f"deaf{of}") for of in ("", "-bus", "-fjm")),
    *(("needed", f"greedy{of}") for of in ("", "-bus", "-fjm")),
    *(("merged", f"twice{of}") for of in ("", "-bus")),
    ("answered", "forgetful-bus"),
]


@pytest.mark.parametrize(("rule", "name"), REQUESTS, ids=lambda value: value)
def test_a_defect_that_concerns_requests_is_found_where_packets_are_lost(rule: str, name: str) -> None:
    found = search(on_star(name), "hunt", runs=5, seed=1)
    assert found is not None
    assert found.verdict.rule == rule
    # Faults are not needed for it.
    assert found.scenario["faults"] == []


@pytest.mark.parametrize("name", ["fjm2", "bus", "fjm"])
def test_a_sound_protocol_breaks_no_rule_of_requests_where_packets_are_lost(name: str) -> None:
    assert search(on_star(name), "hunt", runs=4, seed=1) is None


SOUND = [
    on_lan("fjm2", **SMALL_CACHE),
    on_lan("fjm2", order="fifo", **SMALL_CACHE),
    on_lan("bus", history="50ms"),
    {**on_lan("fjm", history="50ms", gap_fault=0), "nodes": {"r3": {"role": "manager"}}},
    {**on_lan("broker"), "nodes": {"r3": {"role": "broker"}}},
    on_sites("fjm2"),
]


@pytest.mark.parametrize("data", SOUND, ids=lambda data: f"{data['protocol']['name']}-{data['protocol'].get('order', '')}")
def test_a_sound_protocol_of_messages_breaks_no_rule(data: dict[str, Any]) -> None:
    assert search(data, "hunt", runs=8, seed=1) is None


def test_both_tunnels_of_a_divided_site_carry_and_every_message_comes_once() -> None:
    apart = {"at": "500ms", "partition": [["t"], ["u"]], "for": "1500ms"}
    result = run(parse({**on_sites("fjm2"), "faults": [apart]}, "sites"))
    assert result.completed
    assert result.violations == []
    servers = result.metrics["servers"]
    assert min(servers[f"tunnel {name}"]["packets_returned"] for name in ("t", "u")) > 5
    verdict = check_run(parse({**on_sites("relabelling"), "faults": [apart]}, "sites"))
    assert verdict is not None
    assert verdict.rule == "once"


def test_losses_are_told_in_any_world_that_goes_on_until_nothing_is_sent() -> None:
    faults = [{"at": "500ms", "partition": [["sender"], "rest"], "for": "300ms"}]
    sound, silent = (run(parse({**on_lan(name, **SMALL_CACHE), "faults": faults}, "x")) for name in ("fjm2", "silent"))
    assert sound.metrics["messages"]["lost"] == silent.metrics["messages"]["lost"] > 0
    assert "told" in sound.metrics["invariants"]["checked"]
    assert sound.violations == []
    assert {row["rule"] for row in silent.violations} == {"told"}


def test_plans_for_messages_have_churn_servers_and_sites() -> None:
    scenario = load("fjm2-three-sites")
    topology = scenario.build_topology()
    targets = targets_of(scenario, topology)
    assert targets.sites == (("p", "t", "ra1", "ra2"), ("q", "rb"), ("rc",))
    assert targets.servers == ("ga.host", "t", "gb.host", "gc.host")
    plans = [random_plan(Rng(key), topology, 2.0, targets) for key in range(300)]
    faults = [fault for plan in plans for fault in plan]
    assert any(fault.get("partition", [None])[0] == ["p", "t", "ra1", "ra2"] for fault in faults)
    assert {fault["churn"][0] for fault in faults if "churn" in fault} == {"p", "q", "ra1", "ra2", "rb", "rc"}
    assert {"ga.host", "gb.host", "gc.host"} <= {fault["crash"] for fault in faults if "crash" in fault}
    for plan in plans[:40]:
        parse({**read("fjm2-three-sites"), "faults": plan}, "plan")


def test_a_member_that_leaves_badly_is_found_and_saved(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, out = tmp_path / "hunt.yaml", tmp_path / "found.yaml"
    file.write_text(yaml.safe_dump(on_lan("bad-leaver")))
    assert invoke(["search", str(file), "--runs", "40", "--out", str(out), "--brief"]) == 1
    assert "broke raises" in capsys.readouterr().out
    assert yaml.safe_load(out.read_text())["faults"][0]["churn"]


def test_requests_are_checked_where_messages_can_be_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, out = SCENARIOS / "shared-loss.yaml", tmp_path / "found.yaml"
    defect = ["--set", "protocol.mutant=no-suppression"]
    assert invoke(["search", str(file), *defect, "--runs", "1", "--out", str(out), "--brief"]) == 1
    told = capsys.readouterr().out
    assert "broke suppressed" in told
    # A run checks no requests, so it is a search that shows it again.
    assert "mcastlab search" in told
    assert invoke(["search", str(out), "--runs", "1", "--out", str(tmp_path / "again.yaml")]) == 1


def test_only_hosts_that_take_part_in_messages_leave_and_come() -> None:
    with pytest.raises(ConfigError, match=r"faults\.0\.churn: value 'r3' is not allowed; hosts with publishers or subscribers"):
        parse({**on_lan("fjm2"), "faults": [{"at": 0, "churn": "r3", "for": 1}]}, "x")
