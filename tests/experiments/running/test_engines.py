"""Strict and fast engine and encoded messages agree with queues in nodes, several groups, and cross traffic."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.running.run import run
from experiments.scenario.scenario import parse

ROUTERS = st.sampled_from(
    [
        {},
        {"kind": "router", "cpu": "50us"},
        {"kind": "router", "cpu": "1ms", "cpu_byte": "1us", "queue": 3},
        {"storm": "3Mbit", "burst": "6kB"},
        {"pause": True},
    ]
)
HOSTS = st.sampled_from(
    [
        {},
        {"cpu": "200us", "buffer": "4kB"},
        {"cpu": "2ms"},
        {"cpu": "100us", "filters": 0},
        {"cpu": "200us", "cpu_send": "1ms", "buffer": "4kB", "fifo": True},
    ]
)
LINKS = st.fixed_dictionaries(
    {
        "rate": st.sampled_from([None, "5Mbit"]),
        "delay": st.sampled_from(["0ms", "2ms"]),
        "queue": st.sampled_from([None, 4]),
        "down": st.fixed_dictionaries({"loss": st.sampled_from(["0%", "5%"])}),
        "overhead": st.sampled_from([42, "ethernet"]),
    }
)
FLOWS = st.sampled_from(
    [
        [],
        [{"kind": "aimd", "from": "r1_1", "to": "r2_1", "end": "1s"}],
        [{"kind": "poisson", "from": "sender", "to": "r1_2", "rate": "1Mbit", "end": "1s"}],
        [{"kind": "on-off", "from": "r2_2", "to": "sender", "rate": "2Mbit", "end": "1s"}],
    ]
)
RULES = st.sampled_from(
    [{}, {"join": "30ms", "leave": "100ms"}, {"pruning": False}, {"tree": "shared", "core": "s2"}, {"metric": "delay"}]
)
GUESTS = st.sampled_from([[], [{"hosts": ["r1_2"], "join": "100ms"}, {"hosts": ["r2_1"], "leave": "200ms"}]])
WAYS = ({"engine": "fast"}, {"engine": "strict"}, {"wire": "bytes"})
SECOND = {"kind": "file", "from": "r2_2", "size": "10kB", "group": "b", "at": "50ms"}


@settings(deadline=None, max_examples=30, derandomize=True)
@given(s1=ROUTERS, s2=ROUTERS, r=HOSTS, link=LINKS, traffic=FLOWS, rules=RULES, guests=GUESTS, two=st.booleans())
def test_engines_and_encodings_have_the_same_fingerprint(
    s1: Any, s2: Any, r: Any, link: Any, traffic: Any, rules: Any, guests: Any, two: bool
) -> None:
    written = {
        "name": "x",
        "topology": {
            "kind": "chain",
            "switches": 2,
            "receivers": 3,
            "trunk": {"rate": "10Mbit", "delay": "1ms"},
            "link": link,
            "nodes": {"s1": s1, "s2": s2, "r1_": r},
            "multicast": rules,
        },
        "protocol": {"name": "norm", "rate": "3Mbit", "grtt": "20ms", "robust": 3},
        "workload": [{"size": "40kB"}, *([SECOND] if two else [])],
        "traffic": traffic,
        "receivers": guests,
        "duration": "6s",
    }
    assert len({run(parse({**written, **how}, "test")).fingerprint for how in WAYS}) == 1


@settings(deadline=None, max_examples=12, derandomize=True)
@given(
    receivers=st.integers(3, 12),
    senders=st.integers(2, 4),
    loss=st.sampled_from(["0%", "1%", "10%"]),
    parity=st.sampled_from([0, 4]),
    probing=st.sampled_from(["active", "none"]),
    seed=st.integers(1, 1000),
)
def test_several_senders_in_a_group_have_the_same_fingerprint(
    receivers: int, senders: int, loss: str, parity: int, probing: str, seed: int
) -> None:
    names = ["sender", "r1", "r2", "r3"][:senders]
    written = {
        "name": "x",
        "seed": seed,
        "topology": {"kind": "lan", "receivers": receivers, "link": {"rate": "10Mbit", "delay": "2ms", "down": {"loss": loss}}},
        "protocol": {"name": "norm", "rate": "2Mbit", "grtt": "50ms", "block": 16, "parity": parity, "probing": probing},
        "workload": [{"from": name, "size": "60kB"} for name in names],
        "duration": "20s",
    }
    # Encoded messages are handled one by one, since bursts have no encoded form.
    runs = [run(parse({**written, **how}, "test")) for how in WAYS]
    assert all(result.completed for result in runs)
    assert len({result.fingerprint for result in runs}) == 1


@pytest.mark.parametrize("buffer", [0, 1200, 2000])
def test_receivers_without_room_for_parity_have_the_same_fingerprint(buffer: int) -> None:
    protocol = {"rate": "2Mbit", "grtt": "20ms", "segment": 500, "block": 8, "parity": 4, "auto_parity": 2}
    written = {
        "name": "x",
        "topology": {"kind": "star", "receivers": 6, "link": {"delay": "2ms", "down": {"loss": "15%"}}},
        "protocol": {"name": "norm", **protocol, "buffer": buffer},
        "workload": {"size": "40kB"},
        "duration": "6s",
    }
    with_room = {**written, "protocol": {"name": "norm", **protocol}}
    limited = {run(parse({**written, **how}, "test")).fingerprint for how in WAYS}
    assert len(limited) == 1
    assert limited != {run(parse(with_room, "test")).fingerprint}


@pytest.mark.parametrize("source", ["x1", "r1"])
def test_connections_of_cross_traffic_beside_those_of_a_protocol_with_another_framing(source: str) -> None:
    written = {
        "name": "x",
        "topology": {"kind": "dumbbell", "receivers": 3, "link": {"delay": "1ms"}, "bottleneck": {"rate": "2Mbit"}},
        "protocol": {"name": "broker"},
        "nodes": {"r3": {"role": "broker"}},
        "workload": [
            {"kind": "publish", "hosts": ["sender"], "to": "topic:t", "size": 500, "count": 20, "think": "10ms"},
            {"kind": "subscribe", "hosts": ["r1", "r2"], "to": "topic:t"},
        ],
        "traffic": [{"kind": "tcp", "from": source, "to": "y1" if source == "x1" else "sender", "end": "500ms"}],
        "duration": "2s",
    }
    results = [run(parse({**written, **how}, "test")) for how in WAYS]
    assert len({result.fingerprint for result in results}) == 1
    assert all(result.metrics["cross_traffic"][0]["received"] > 10 for result in results)


def test_members_of_a_counted_group_answer_each_other_without_delay() -> None:
    written = {
        "name": "x",
        "seed": 10,
        "topology": {"kind": "lan", "receivers": 4, "link": {"down": {"loss": "40%"}}},
        "protocol": {"name": "bus", "backoff": 0, "holdoff": "1ms"},
        # A member repairs at once what another one requests, and the NACK is on its way to the others.
        "workload": [
            {"kind": "publish", "hosts": ["sender", "r1"], "to": "topic:t", "size": 300, "count": 30, "rate": "saturated"},
            {"kind": "subscribe", "hosts": ["r"], "to": "topic:t"},
        ],
        "duration": "2s",
    }
    assert len({run(parse({**written, **how}, "test")).fingerprint for how in WAYS}) == 1


@pytest.mark.parametrize(("buffer", "block", "parity"), [(0, 20, 1), (1500, 20, 16), (6000, 20, 16)])
def test_a_buffer_too_small_for_the_parity_of_a_block_delays_a_file_and_no_more(buffer: int, block: int, parity: int) -> None:
    written = {
        "name": "x",
        "seed": 75,
        "topology": {"kind": "star", "receivers": 5, "link": {"delay": "5ms", "down": {"loss": "40%"}, "up": {"loss": "10%"}}},
        "protocol": {
            "name": "norm",
            "rate": "5Mbit",
            "segment": 500,
            "block": block,
            "parity": parity,
            "grtt": "50ms",
            "backoff": 1,
            "buffer": buffer,
        },
        "workload": [{"kind": "file", "from": "sender", "size": "60kB"}, {"kind": "file", "from": "r1", "size": "60kB"}],
        "duration": "30s",
    }
    results = [run(parse({**written, **how}, "test")) for how in WAYS]
    assert len({result.fingerprint for result in results}) == 1
    assert results[0].completed
