"""Links: queueing, serialisation and propagation, one by one and in groups."""

from collections.abc import Sequence
from typing import Any, cast
from unittest.mock import patch

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocols.machine import Address
from sim import link
from sim.flight import Arrivals, Flight, Route
from sim.link import Link, LinkGroup
from sim.network import Network
from tests.sim.probes import GROUP, Note, probe_on
from topologies.ethernet import wire_bytes
from topologies.generators import Star
from topologies.spec import Graph, LinkSpec, NodeSpec, Topology


class Nowhere:
    """A destination that must not receive anything."""

    def arrive(self, flight: Flight, lost_by: Sequence[int], now: float) -> None:
        """Fail: the tests look at times only."""
        raise AssertionError


def arrival_times(spec: LinkSpec, offers: Sequence[tuple[float, int]]) -> list[float | None]:
    """When packets, offered to a link as (time, size), arrive; None for those dropped."""
    link, route, found = Link(spec, Nowhere(), 1), Route(cast(Any, None), GROUP, "", ()), []
    for number, (now, size) in enumerate(offers):
        arrivals: Arrivals = {}
        link.carry(Flight(Note(number), None, size, 0, "sender", route, 0), now, arrivals)
        found.append(next(iter(arrivals), None))
    return found


def test_a_packet_arrives_after_queueing_serialisation_and_propagation() -> None:
    # 1000 + 42 bytes at 10420 bytes per second take 0.1 s.
    times = arrival_times(LinkSpec(rate=10_420.0, delay=0.5), [(now, 1000) for now in (0.0, 0.0, 0.05, 1.0)])
    assert times == pytest.approx([0.6, 0.7, 0.8, 1.6])


def test_a_perfect_link_takes_no_time() -> None:
    assert arrival_times(LinkSpec(), [(now, 1000) for now in (0.0, 0.0, 3.0)]) == [0.0, 0.0, 3.0]


def test_exact_framing_counts_every_byte_on_the_wire() -> None:
    spec = LinkSpec(rate=1000.0, overhead="ethernet")
    assert arrival_times(spec, [(0.0, 1), (10.0, 100)]) == pytest.approx([0.084, 10.0 + wire_bytes(100) / 1000])


@pytest.mark.parametrize("limit", [0, 1, 3])
def test_a_full_queue_drops_packets_behind_the_one_in_transmission(limit: int) -> None:
    times = arrival_times(LinkSpec(rate=100.0, queue=limit, overhead=0), [(0.0, 100)] * 6)
    assert times == [1.0 + n if n <= limit else None for n in range(6)]


def star(count: int, **link: Any) -> Topology:
    """A star with a counted group."""
    return Star.model_validate({"kind": "star", "receivers": count, "link": link}).build()


def plain_star(count: int, spec: LinkSpec) -> Topology:
    """The same star with every receiver a node of its own."""
    graph: Graph = nx.DiGraph()
    graph.add_node("sender", node=NodeSpec("host"))
    graph.add_node("s1", node=NodeSpec("switch"))
    names = ["sender", *(f"r{n}" for n in range(1, count + 1))]
    for name in names:
        if name != "sender":
            graph.add_node(name, node=NodeSpec("host"))
        own = LinkSpec() if name == "sender" else spec
        graph.add_edge(name, "s1", link=own)
        graph.add_edge("s1", name, link=own)
    return Topology(graph)


WHO = ["sender", "r1", "r2", "r3", "r4"]
TALK = st.lists(
    st.tuples(
        st.sampled_from([0.0, 0.2, 0.7, 1.5, 4.0, 9.0]),
        st.sampled_from(WHO),
        st.sampled_from(["group", "group", "group", *WHO]),
        st.sampled_from([58, 158, 358]),
    ),
    max_size=25,
)


def heard(topology: Topology, talk: list[tuple[float, str, str, int]]) -> dict[str, list[tuple[float, int, Address]]]:
    """Return what each host received, and when."""
    network = Network(topology, seed=1)
    scripts: dict[str, list[tuple[float, int, int, Address, int | None]]] = {name: [] for name in WHO}
    now = 0.0
    for number, (gap, who, to, size) in enumerate(talk):
        now += gap
        if to != who:
            scripts[who].append((now, number, size, GROUP if to == "group" else to, number))
    probes = {name: probe_on(network, name, scripts[name]) for name in WHO}
    network.run()
    return {name: sorted(probe.heard, key=lambda line: line[:2]) for name, probe in probes.items()}


@settings(deadline=None, max_examples=150)
@given(TALK, st.sampled_from([None, 0, 2]), st.sampled_from([0, 64]))
def test_a_counted_group_behaves_as_its_members_would_one_by_one(
    talk: list[tuple[float, str, str, int]], queue: int | None, few: int
) -> None:
    spec = LinkSpec(rate=100.0, delay=0.25, queue=queue)
    with patch.object(link, "MOST_IDLE", few):
        grouped = heard(star(4, rate=800, delay=0.25, queue=queue), talk)
    assert grouped == heard(plain_star(4, spec), talk)


def test_members_that_saw_other_traffic_are_equal_again_when_idle() -> None:
    network = Network(star(3, rate=800, delay=0), seed=1)
    (group,) = network.inlets("r1")
    assert isinstance(group, LinkGroup)
    probes = [probe_on(network, name) for name in ("sender", "r1", "r2", "r3")]
    network.host("r2").call(lambda now: probes[2].say(1, 58))
    network.run(1.5)
    assert list(group.separate_queues) == [1]
    network.host("sender").call(lambda now: probes[0].say(2, 58))
    network.run(60.0)
    network.host("sender").call(lambda now: probes[0].say(3, 58))
    assert [len(probe.heard) for probe in probes] == [1, 2, 1, 2]
    network.run(90.0)
    assert list(group.separate_queues) == []


def test_drops_and_losses_are_counted_per_link_and_per_member() -> None:
    topology = star(3, rate=800, queue=0, down={"loss": "100%"})
    network = Network(topology, seed=1)
    sender = probe_on(network, "sender", [(0.0, n, 58, GROUP, n) for n in range(4)])
    for name in ("r1", "r2", "r3"):
        probe_on(network, name)
    network.run()
    down = next(link for link in network.links() if (link.near, link.far) == ("s1", "r"))
    # One is sent and lost, three find the one in service and no place to wait.
    assert (down.offered, down.dropped, down.lost) == (12, 9, 3)
    assert [network.lost(name) for name in ("r1", "r2", "r3")] == [4, 4, 4]
    assert network.lost("sender") == 0
    assert sender.heard == []
