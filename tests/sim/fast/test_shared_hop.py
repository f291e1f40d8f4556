"""Packets of several senders scheduled ahead on links they share: the results are those of the strict engine at any time."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.cases import CASES, OURS
from benchmarks.cases import run as measure
from experiments.running.participants import Participants
from experiments.running.program import accounted
from experiments.scenario.scenario import parse
from sim.fast.lookahead import Lookahead
from sim.fast.tree import Branch
from sim.network import Network

LINKS = st.fixed_dictionaries(
    {
        "rate": st.sampled_from([None, "100Mbit", "10Mbit"]),
        "delay": st.sampled_from(["0ms", "0.01ms", "1ms", "5ms"]),
        "queue": st.sampled_from([None, None, None, 20]),
        "down": st.fixed_dictionaries({"loss": st.sampled_from(["0%", "1%", "5%", "40%"])}),
        "up": st.fixed_dictionaries({"loss": st.sampled_from(["0%", "0%", "2%"])}),
    }
)
PROTOCOL = {"name": "norm", "rate": "4Mbit", "grtt": "50ms", "block": 16}
PARAMETERS = st.fixed_dictionaries(
    {
        "rate": st.sampled_from(["1Mbit", "4Mbit"]),
        "block": st.sampled_from([4, 16, 64]),
        "parity": st.sampled_from([0, 4, 16]),
        "backoff": st.sampled_from([0, 4]),
    }
)
WORK = st.tuples(st.sampled_from([8000, 60_000]), st.sampled_from(["0s", "0s", "10ms", "100ms"]))
MEMBERS = ["sender", *(f"r{number}" for number in range(1, 8))]
CROSS = st.sampled_from([[], [{"kind": "poisson", "from": "sender", "to": "r8", "rate": "1Mbit", "size": 700}]])


def works(names: list[str], what: list[tuple[int, str]]) -> list[dict[str, Any]]:
    """Return the workload of the first hosts of a list."""
    return [{"from": name, "size": size, "at": at} for name, (size, at) in zip(names, what, strict=False)]


def lan(link: dict[str, Any], workload: list[dict[str, Any]], size: int = 12, **more: Any) -> dict[str, Any]:
    """Return a scenario of a LAN."""
    topology = {"kind": "lan", "receivers": size, "link": link}
    return {"name": "shared", "topology": topology, "protocol": PROTOCOL, "workload": workload, "duration": "4s", **more}


def network_of(written: dict[str, Any], engine: str) -> Network:
    """Return the network of a scenario with its programs started."""
    scenario = parse(written, "shared")
    topology = scenario.build_topology()
    network = Network(topology, seed=scenario.seed, engine=engine)
    participants = Participants(scenario, topology, str, False, accounted, fast=engine == "fast")
    for name, program in participants.programs():
        program.start(network.host(name))
    return network


def assert_same(written: dict[str, Any], step: float = 0.0713) -> None:
    """Assert that deliveries and counts of links are those of the strict engine at many times, and the fingerprint."""
    fast, strict = (network_of(written, engine) for engine in ("fast", "strict"))
    for number in range(12):
        for network in (fast, strict):
            network.run(step * number)
        assert fast.deliveries == strict.deliveries
        assert fast.links() == strict.links()
    for network in (fast, strict):
        network.run(4.0)
    assert fast.fingerprint() == strict.fingerprint()


@settings(deadline=None, max_examples=16, derandomize=True)
@given(LINKS, PARAMETERS, st.permutations(MEMBERS), st.lists(WORK, min_size=1, max_size=8), CROSS, st.integers(0, 2**32))
def test_senders_of_one_lan(
    link: dict[str, Any], parameters: dict[str, Any], names: list[str], what: list[Any], traffic: list[Any], seed: int
) -> None:
    assert_same(lan(link, works(names, what), protocol={**PROTOCOL, **parameters}, traffic=traffic, seed=seed))


@settings(deadline=None, max_examples=12, derandomize=True)
@given(
    st.lists(LINKS, min_size=6, max_size=6),
    st.permutations(["a1", "a2", "b1", "c"]),
    st.lists(WORK, min_size=2, max_size=4),
    st.integers(0, 2**32),
)
def test_senders_on_two_switches(links: list[dict[str, Any]], names: list[str], what: list[Any], seed: int) -> None:
    hosts = {
        "sender": {"kind": "host"},
        "c": {"kind": "host"},
        "a": {"kind": "host", "count": 5},
        "b": {"kind": "host", "count": 9},
    }
    nodes = {"s1": {"kind": "switch"}, "s2": {"kind": "switch"}, **hosts}
    ends = [("sender", "s1"), ("c", "s1"), ("s1", "a"), ("s1", "s2"), ("s2", "b")]
    topology = {
        "kind": "graph",
        "nodes": nodes,
        "links": [{"ends": each, **link} for each, link in zip(ends, links, strict=False)],
    }
    assert_same(lan({}, works(["sender", *names], what), topology=topology, seed=seed))


LOSSY = {"rate": "100Mbit", "delay": "5ms", "down": {"loss": "5%"}}


def test_the_only_receiver_joins_while_all_others_send() -> None:
    joining = [{"hosts": ["r8"], "join": "60ms"}]
    assert_same(lan(LOSSY, works(MEMBERS, [(60_000, "0s")] * 8), 8, receivers=joining))


def test_a_receiver_stops_while_packets_of_several_senders_are_in_flight() -> None:
    leaving = [{"hosts": ["r9"], "leave": "60ms"}]
    assert_same(lan(LOSSY, works(MEMBERS, [(60_000, "0s")] * 3), receivers=leaving))


def test_a_link_on_which_packets_begin_to_wait_has_an_arrival_posted() -> None:
    link = {"rate": "10Mbit", "delay": "5ms", "down": {"loss": "1%"}, "up": {"loss": "2%"}}
    protocol = {**PROTOCOL, "rate": "1Mbit", "block": 4, "parity": 16, "backoff": 0, "probing": "passive"}
    assert_same(lan(link, works(["r2"], [(60_000, "100ms")]), 8, protocol=protocol, seed=3655031217))


def test_packets_go_on_by_themselves_while_the_links_of_receivers_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    """A receiver's own NACK is not on its link."""
    singled, single_out = [], Lookahead.single_out

    def counted(self: Lookahead, number: int, branch: Branch) -> bool:
        singled.append(number)
        return single_out(self, number, branch)

    monkeypatch.setattr(Lookahead, "single_out", counted)
    assert_same(lan({**LOSSY, "rate": "40Mbit"}, works(MEMBERS, [(120_000, f"{0.3 * number}ms") for number in range(8)])))
    assert singled


@pytest.mark.parametrize("senders", [1, 2, 8])
def test_most_packets_of_several_senders_are_no_events(senders: int) -> None:
    case = CASES["senders8"]
    outcome = measure(OURS, replace(case, senders=case.senders[:senders]).scenario(10, 500))
    assert outcome.events < 0.6 * outcome.packets
