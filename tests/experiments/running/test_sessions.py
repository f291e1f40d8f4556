"""Runs with several groups, cross traffic, receivers that join late or leave early, routers, and scopes."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from experiments.running.result import Result, Row
from experiments.running.run import run
from experiments.scenario.scenario import parse
from protocols.errors import UnsupportedError

PLAIN: dict[str, Any] = {
    "name": "x",
    "topology": {"kind": "star", "receivers": 4, "link": {"rate": "10Mbit", "down": {"loss": "2%"}}},
    "protocol": {"name": "norm", "rate": "4Mbit", "grtt": "20ms", "robust": 4},
    "workload": {"kind": "file", "size": "100kB"},
    "duration": "60s",
}
TWO_GROUPS: list[dict[str, Any]] = [
    {"kind": "file", "size": "100kB", "group": "a"},
    {"kind": "file", "from": "r1", "size": "50kB", "group": "b", "count": 2},
]
AIMD = {"kind": "aimd", "from": "r1", "to": "r2"}


def result(backend: str = "sim", **parts: Any) -> Result:
    """Run PLAIN with these parts replaced and return the result."""
    return run(parse({**PLAIN, **parts}, "test"), backend)


def rows(found: Result) -> Mapping[str, Row]:
    """Return the rows of receivers by name."""
    return {row.name: row for row in found.receivers}


@pytest.mark.parametrize("wire", ["objects", "bytes"])
def test_a_member_of_two_groups_receives_the_content_of_both(wire: str) -> None:
    found = result(workload=TWO_GROUPS, wire=wire)
    assert found.completed
    assert {name: row.bytes for name, row in rows(found).items()} == {
        "r2": 100_000,
        "r3": 100_000,
        "r4": 100_000,
        "r2@b": 100_000,
        "r3@b": 100_000,
        "r4@b": 100_000,
    }
    assert found.metrics["objects"] == 3


def test_groups_have_the_named_members() -> None:
    members = [{**TWO_GROUPS[0], "members": ["r1", "r2"]}, {**TWO_GROUPS[1], "members": ["sender", "r3"]}]
    found = result(workload=members)
    assert found.completed
    # r1 sends to b and receives a; the sender of a receives b.
    assert list(rows(found)) == ["r1", "r2", "sender@b", "r3@b"]


def test_a_group_of_counted_receivers_has_one_name() -> None:
    assert len(rows(result(workload={"size": 1, "members": ["r"]}))) == 4


def test_a_second_session_on_a_host_does_not_change_random_draws_of_the_first() -> None:
    # On links without limits sessions do not interact; the first is the same with and without the second.
    free = {"kind": "star", "receivers": 4, "link": {"delay": "1ms", "down": {"loss": "5%"}}}
    first = {**TWO_GROUPS[0], "members": ["r1", "r2", "r3"]}
    second = {**TWO_GROUPS[1], "from": "r4", "at": "30s"}
    alone, both = rows(result(topology=free, workload=first)), rows(result(topology=free, workload=[first, second]))
    for name in ("r1", "r2", "r3"):
        # Lost and received packets include those that the sender multicasts while the second session continues.
        assert replace(both[name], loss=0.0, handled=0) == replace(alone[name], loss=0.0, handled=0)


def test_encoded_messages_give_the_same_fingerprint_beside_cross_traffic() -> None:
    objects, octets = (result(traffic=[AIMD], wire=wire) for wire in ("objects", "bytes"))
    assert objects.fingerprint == octets.fingerprint
    assert objects.completed


def test_cross_traffic_is_reported_and_is_no_cost_of_the_protocol() -> None:
    flow = {"kind": "constant", "from": "r1", "to": "r2", "rate": "1Mbit", "size": 958, "begin": "100ms", "end": "300ms"}
    found = result(traffic=[flow])
    (flow,) = found.metrics["cross_traffic"]
    # 125,000 bytes per second are 125 packets of 1000 bytes; 2 % are lost on r2's link.
    assert (flow["kind"], flow["sent"]) == ("constant", 25)
    assert 22 <= flow["received"] <= 25
    assert "cross" not in found.metrics["packets"]
    assert found.metrics["overhead"] < 1.3


def test_cross_traffic_takes_its_rate_from_a_session() -> None:
    slow = {**PLAIN["topology"], "link": {"rate": "4Mbit", "queue": 10}}
    alone = result(topology=slow)
    beside = result(topology=slow, traffic=[{"kind": "constant", "from": "r1", "to": "r2", "rate": "3Mbit"}])
    assert alone.metrics["loss"] == 0.0 == rows(beside)["r4"].loss
    assert (rows(beside)["r2"].loss or 0.0) > 0.2
    assert beside.completed


def test_a_late_receiver_is_expected_to_receive_only_what_follows() -> None:
    works = [{"size": "50kB", "at": at} for at in ("0s", "3s", "6s")]
    found = result(workload=works, receivers=[{"hosts": ["r1"], "join": "2s"}, {"hosts": ["r2"], "join": "4s"}])
    assert found.completed
    by_name = rows(found)
    assert [by_name[name].visitor for name in ("r1", "r2", "r3", "r4")] == [True, True, False, False]
    assert [row.objects for row in found.receivers[2:]] == [3, 3]
    # It may receive more than that: a sender repairs for some time what it has sent.
    assert 2 <= by_name["r1"].objects <= 3
    assert 1 <= by_name["r2"].objects <= 2


def test_a_receiver_that_left_is_not_waited_for() -> None:
    works = [{"size": "50kB", "at": at} for at in ("0s", "3s")]
    found = result(workload=works, receivers=[{"hosts": ["r1", "r2"], "leave": "2s"}])
    assert found.completed
    assert [row.objects for row in found.receivers] == [1, 1, 2, 2]
    again = result(workload=works, receivers=[{"hosts": ["r1", "r2"], "leave": "2s"}], wire="bytes")
    assert again.fingerprint == found.fingerprint


def test_receivers_beyond_the_multicast_scope_receive_nothing() -> None:
    topology = {"kind": "chain", "switches": 2, "nodes": {"s2": {"kind": "router"}}}
    far, near = (result(topology=topology, workload={"size": "20kB", "ttl": ttl}) for ttl in (2, 1))
    assert {name: row.bytes for name, row in rows(far).items()} == {"r1_1": 20_000, "r2_1": 20_000}
    assert {name: row.bytes for name, row in rows(near).items()} == {"r1_1": 20_000}
    assert far.completed
    assert near.completed


def test_nodes_with_a_model_report_their_counters() -> None:
    topology = {
        **PLAIN["topology"],
        "nodes": {"s1": {"kind": "router", "cpu": "100us"}, "r": {"buffer": "64kB", "cpu": "10us"}},
    }
    found = result(topology=topology)
    router, hosts = found.metrics["nodes"]
    assert (router["node"], hosts["node"]) == ("s1", "r")
    assert router["processor"] == pytest.approx(router["offered"] * 100e-6)
    assert hosts["dropped"] == 0


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        ({"traffic": [AIMD]}, "traffic: can't be emulated yet"),
        ({"topology": {**PLAIN["topology"], "nodes": {"s1": {"storm": "1Mbit"}}}}, "node s1: storm can't be emulated yet"),
        ({"topology": {**PLAIN["topology"], "nodes": {"r": {"cpu": "1ms"}}}}, "node r: cpu can't be emulated yet"),
    ],
)
def test_parts_that_cannot_be_emulated_are_refused_by_name(parts: dict[str, Any], text: str) -> None:
    with pytest.raises(UnsupportedError, match=text):
        result("emu", **parts)


def test_keyed_losses_of_segments_are_refused_by_name() -> None:
    parts = {
        "protocol": {"name": "relay"},
        "nodes": {"sender": {"role": "relay"}},
        "workload": [
            {"kind": "publish", "hosts": ["r1"], "to": "topic:1", "size": 100, "rate": 1},
            {"kind": "subscribe", "hosts": ["r2"], "to": "topic:1"},
        ],
        "emu": {"losses": "keyed"},
    }
    with pytest.raises(UnsupportedError, match=r"emu.losses: value 'keyed' can't be emulated with protocol relay"):
        result("emu", **parts)


@pytest.mark.emu
def test_two_groups_run_side_by_side_in_mininet() -> None:
    lan = {"kind": "lan", "receivers": 3, "link": {"down": {"loss": "1%"}}}
    # On a busy machine a process may be late by a few round trips.
    found = result("emu", topology=lan, workload=TWO_GROUPS, protocol={**PLAIN["protocol"], "robust": 20})
    assert found.completed
    assert {name: row.bytes for name, row in rows(found).items()} == {
        "r2": 100_000,
        "r3": 100_000,
        "r2@b": 100_000,
        "r3@b": 100_000,
    }
    assert {row.proof for row in found.receivers} == {"sha256"}


def test_a_crash_stops_and_restarts_everything_on_a_host() -> None:
    slow = {**PLAIN["protocol"], "rate": "400kbit"}
    parts: dict[str, Any] = {
        "protocol": slow,
        "workload": [{**work, "size": "40kB"} for work in TWO_GROUPS],
        "traffic": [{"kind": "constant", "from": "r3", "to": "r2", "rate": "100kbit", "end": "3s"}],
        "receivers": [{"hosts": ["r4"], "join": "200ms"}],
        "faults": [{"at": "300ms", "crash": ["r2", "r4"], "for": "200ms"}],
    }
    found = result(**parts)
    assert found.metrics["injected"]["restart"] == 2
    assert found.metrics["invariants"]["broken"] == 0
    # Packets sent while r2 was down are lost, and it receives the flow again afterwards.
    (flow,) = found.metrics["cross_traffic"]
    assert 0 < flow["received"] < flow["sent"]
    assert {name: row.objects for name, row in rows(found).items() if name.startswith("r2")}.keys() == {"r2", "r2@b"}
    assert result(**parts, engine="strict").fingerprint == found.fingerprint
