"""Packets scheduled ahead on trees with several groups of hosts, lossy inner links, and links that other traffic uses."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.running.participants import Participants
from experiments.running.program import accounted
from experiments.scenario.scenario import parse
from protocols.machine import Group
from sim.faults import Faults
from sim.network import Network

GROUP = Group("239.0.0.1:6003")
TRUNK = {"rate": "20Mbit", "delay": "3ms"}
CROSS: list[dict[str, Any]] = [
    {"kind": "poisson", "from": "x1", "to": "y1", "rate": "1Mbit", "size": 700},
    {"kind": "aimd", "from": "x2", "to": "y2", "end": "1s"},
]

Change = Callable[[Network], None]


def waxman(receivers: int = 4, link: dict[str, Any] | None = None, **trunk: Any) -> dict[str, Any]:
    """A random network of six switches with receivers on each; 1 % loss on the last hops."""
    link = {"rate": "20Mbit", "delay": "1ms", "down": {"loss": "1%"}} if link is None else link
    return {"kind": "waxman", "seed": 4, "switches": 6, "receivers": receivers, "trunk": {**TRUNK, **trunk}, "link": link}


def dumbbell(receivers: int = 6, **bottleneck: Any) -> dict[str, Any]:
    """A bottleneck of 4 Mbit/s with two pairs of hosts for cross traffic."""
    line = {"rate": "4Mbit", "delay": "5ms", "queue": 20, **bottleneck}
    link = {"rate": "20Mbit", "delay": "1ms", "down": {"loss": "1%"}}
    return {"kind": "dumbbell", "receivers": receivers, "pairs": 2, "bottleneck": line, "link": link}


def build(engine: str, topology: dict[str, Any], **written: Any) -> tuple[Network, Participants]:
    """A NORM session of 2 Mbit/s, ready to run."""
    protocol = {"name": "norm", "rate": "2Mbit", "grtt": "50ms", "gsize": 20, "parity": 8, **written.pop("protocol", {})}
    data = {"name": "x", "seed": 1, "duration": "8s", "workload": [{"size": "150kB"}], "topology": topology, **written}
    scenario = parse({**data, "protocol": protocol}, "x")
    built = scenario.build_topology()
    participants = Participants(scenario, built, str, False, accounted, fast=engine == "fast")
    network = Network(built, seed=scenario.seed, engine=engine)
    for host, program in participants.programs():
        program.start(network.host(host))
    return network, participants


def outcome(engine: str, topology: dict[str, Any], changes: tuple[tuple[float, Change], ...] = (), **written: Any) -> Any:
    """Return all results of a run."""
    network, participants = build(engine, topology, **written)
    for when, change in changes:
        network.later(when, partial(change, network))
    network.run(8.0, participants.over)
    return network.fingerprint(), network.deliveries, network.links(), network.nodes(), dict(network.traffic.octets)


def events_per_packet(topology: dict[str, Any], **written: Any) -> float:
    """Return the SimPy events per packet sent in the fast engine."""
    network, participants = build("fast", topology, **written)
    network.run(60.0, participants.over)
    assert participants.over()
    return network.events / sum(network.traffic.packets.values())


def links(*losses: str) -> Any:
    """Attributes of links, of which some queue, drop or lose packets."""
    return st.fixed_dictionaries(
        {
            "rate": st.sampled_from([None, "3Mbit", "10Mbit", "100Mbit"]),
            "delay": st.sampled_from(["0ms", "0.1ms", "5ms", "40ms"]),
            "queue": st.sampled_from([None, 0, 3, 100]),
            "loss": st.sampled_from(losses),
        }
    )


PROTOCOL = st.fixed_dictionaries(
    {
        "rate": st.sampled_from(["1Mbit", "2.5Mbit"]),
        "grtt": st.sampled_from(["20ms", "300ms"]),
        "block": st.sampled_from([4, 16, 64]),
        "parity": st.sampled_from([0, 2, 16]),
        "backoff": st.sampled_from([0, 4]),
        "probing": st.sampled_from(["active", "passive", "none"]),
    }
)


@settings(deadline=None, max_examples=20, derandomize=True)
@given(
    seed=st.integers(0, 1000),
    switches=st.integers(2, 7),
    receivers=st.sampled_from([1, 2, 5]),
    trunk=links("0%", "0.5%", "5%", "30%"),
    link=links("0%", "1%", "10%"),
    protocol=PROTOCOL,
)
def test_random_trees_with_inner_losses_have_the_results_of_the_strict_engine(
    seed: int, switches: int, receivers: int, trunk: dict[str, Any], link: dict[str, Any], protocol: dict[str, Any]
) -> None:
    topology = {"kind": "waxman", "seed": seed, "switches": switches, "receivers": receivers, "trunk": trunk, "link": link}
    written: dict[str, Any] = {"seed": seed, "protocol": protocol, "workload": [{"size": "60kB"}]}
    assert outcome("fast", topology, **written) == outcome("strict", topology, **written)


@settings(deadline=None, max_examples=18, derandomize=True)
@given(
    receivers=st.sampled_from([1, 3, 8]),
    bottleneck=links("0%", "1%"),
    rate=st.sampled_from(["2Mbit", "3.9Mbit", "4Mbit", "10Mbit"]),
    flows=st.sampled_from([[], CROSS[:1], CROSS[1:], CROSS, [{**CROSS[0], "from": "y1", "to": "r1"}]]),
    protocol=PROTOCOL,
    seed=st.integers(0, 1000),
)
def test_bottlenecks_with_cross_traffic_have_the_results_of_the_strict_engine(
    receivers: int, bottleneck: dict[str, Any], rate: str, flows: list[Any], protocol: dict[str, Any], seed: int
) -> None:
    topology = dumbbell(receivers, **bottleneck)
    written: dict[str, Any] = {
        "seed": seed,
        "protocol": {**protocol, "rate": rate},
        "traffic": flows,
        "workload": [{"size": "60kB"}],
    }
    assert outcome("fast", topology, **written) == outcome("strict", topology, **written)


def _partition(network: Network) -> None:
    undo = Faults(network).partition([["r2_1", "r2_2"], "rest"])
    network.later(network.now + 0.1, undo)


def _leave(network: Network) -> None:
    for name in ("r3_1", "r3_2", "r4_1"):
        network.host(name).leave(GROUP)


def _join_again(network: Network) -> None:
    for name in ("r3_1", "r3_2"):
        network.host(name).leave(GROUP)
        network.host(name).join(GROUP)


def _stop(network: Network) -> None:
    network.host("r2_1").stop()


@pytest.mark.parametrize("change", [_partition, _leave, _join_again, _stop])
@pytest.mark.parametrize("trunk", [{}, {"loss": "3%"}, {"rate": "3Mbit", "delay": "0.1ms"}], ids=["plain", "lossy", "slow"])
@pytest.mark.parametrize("when", [0.2, 0.20531, 0.4217])
def test_faults_and_membership_during_a_burst_have_the_same_effect(change: Change, trunk: dict[str, Any], when: float) -> None:
    topology = waxman(2, **trunk)
    runs = [outcome(engine, topology, ((when, change),)) for engine in ("fast", "strict")]
    assert runs[0] == runs[1]


@pytest.mark.parametrize("topology", [waxman(loss="2%"), {"kind": "wan", "sites": 3, "receivers": 2}], ids=["waxman", "wan"])
def test_reading_counters_at_any_time_shows_the_present(topology: dict[str, Any]) -> None:
    networks = [build(engine, topology)[0] for engine in ("fast", "strict")]
    for step in range(1, 120):
        rows = []
        for network in networks:
            network.run(0.0071 * step)
            rows.append((network.deliveries, network.links(), network.nodes(), network.fingerprint()))
        assert rows[0] == rows[1]


def test_a_drop_at_a_contested_bottleneck_is_read_at_its_time() -> None:
    parts: dict[str, Any] = {"traffic": CROSS, "protocol": {"rate": "3.5Mbit"}}
    networks = [build(engine, dumbbell(queue=3), **parts)[0] for engine in ("fast", "strict")]
    for step in range(1, 120):
        rows = []
        for network in networks:
            network.run(0.0093 * step)
            rows.append((network.deliveries, network.links()))
        assert rows[0] == rows[1]
    assert sum(row.dropped for row in networks[0].links()) > 10


@pytest.mark.parametrize(
    ("bottleneck", "receivers", "seed", "protocol"),
    [
        (
            {"rate": "3Mbit", "delay": "0.1ms", "queue": None, "loss": "1%"},
            1,
            380600,
            {"rate": "2Mbit", "block": 64, "backoff": 4},
        ),
        (
            {"rate": "10Mbit", "delay": "0ms", "queue": None},
            3,
            443365,
            {"rate": "3.9Mbit", "block": 4, "backoff": 0, "probing": "active"},
        ),
    ],
)
def test_a_packet_posted_before_a_link_is_contested_may_still_wait_there(
    bottleneck: dict[str, Any], receivers: int, seed: int, protocol: dict[str, Any]
) -> None:
    written: dict[str, Any] = {
        "seed": seed,
        "protocol": {"grtt": "20ms", "parity": 0, "probing": "passive", **protocol},
        "traffic": CROSS[:1],
        "workload": [{"size": "60kB"}],
    }
    topology = dumbbell(receivers, **bottleneck)
    assert outcome("fast", topology, **written) == outcome("strict", topology, **written)


@pytest.mark.parametrize("seed", range(4))
def test_feedback_that_takes_no_time_is_behind_the_packet_that_it_answers_on_every_link(seed: int) -> None:
    topology = {
        "kind": "graph",
        "nodes": {"s1": {"kind": "switch"}, "s2": {"kind": "switch"}, "ra": {"count": 10}, "rb": {"count": 3}, "sender": {}},
        "links": [
            {"ends": ["s1", "s2"], "delay": "5ms", "down": {"loss": "1%"}},
            {"ends": ["sender", "s1"], "rate": "100Mbit", "delay": "0.01ms", "down": {"loss": "15%"}},
            {"ends": ["s1", "ra"]},
            {"ends": ["s1", "rb"], "rate": "10Mbit", "down": {"loss": "1%"}},
        ],
    }
    written: dict[str, Any] = {
        "seed": seed,
        "protocol": {"rate": "1Mbit", "grtt": "10ms", "gsize": 1000, "block": 16, "parity": 0, "backoff": 0},
        "workload": [{"size": "120kB", "at": "100ms"}],
    }
    assert outcome("fast", topology, **written) == outcome("strict", topology, **written)


def test_a_packet_on_a_tree_costs_no_event_per_link() -> None:
    # Strict: one for each of 13 links, 24 receivers and the sender's timer.
    assert events_per_packet(waxman(), workload=[{"size": "1MB"}]) < 5


def test_a_loss_on_an_inner_link_does_not_cost_an_event_per_link_either() -> None:
    assert events_per_packet(waxman(loss="0.5%"), workload=[{"size": "1MB"}]) < 5


def test_a_single_receiver_per_leaf_is_no_special_case() -> None:
    assert events_per_packet(waxman(1), workload=[{"size": "1MB"}]) < 4


def test_a_queue_that_cross_traffic_fills_costs_the_session_no_events() -> None:
    topology = dumbbell(rate="8Mbit")
    written: dict[str, Any] = {"workload": [{"size": "1MB"}], "traffic": CROSS[:1]}
    network, participants = build("fast", topology, **written)
    network.run(60.0, participants.over)
    # A packet of cross traffic is four events: the timer, both switches and the receiver.
    assert network.events < 4 * network.traffic.packets["cross"] + network.traffic.packets["data"]
