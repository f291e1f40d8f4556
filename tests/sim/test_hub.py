"""Hubs: one half-duplex medium for all hosts, of which each receives every packet."""

from typing import Any

import pytest

from protocols.errors import ConfigError
from protocols.machine import Address, Group
from protocols.registry import protocol
from sim.network import Network
from tests.sim.probes import GROUP, Probe, probe_on
from tests.sim.runs import Session
from topologies.ethernet import wire_bytes
from topologies.generators import Star
from topologies.inline import Inline
from topologies.spec import Topology

NORM = protocol("norm")
RATE = 1.25e6
"""10 Mbit/s in bytes per second."""
SIZE = 958
"""Payload of a packet of 1000 bytes, which takes 0.8 ms."""


def hub(stations: int, *links: dict[str, Any], ends: dict[str, Any] | None = None, **attributes: Any) -> Network:
    """Return a network of hosts a, b, c, ... on one hub."""
    names = "abcdefgh"[:stations]
    nodes: dict[str, Any] = {name: {} for name in names}
    nodes["h"] = {"kind": "switch", "hub": True, "rate": "10Mbit", **attributes}
    edges = [{"ends": [name, "h"], **(ends or {})} for name in names]
    return Network(Inline.model_validate({"nodes": nodes, "links": [*edges, *links]}).build(), seed=1)


def send(network: Network, name: str, count: int, to: Address = GROUP, gap: float = 0.0, first: int = 0) -> Probe:
    """Let a host send packets."""
    return probe_on(network, name, [(n * gap, first + n, SIZE, to, first + n) for n in range(count)])


def test_everybody_hears_a_multicast_that_is_sent_once() -> None:
    network = hub(5)
    others = [probe_on(network, name) for name in "bcde"]
    send(network, "a", 10)
    network.run()
    for other in others:
        assert [when for when, _, _ in other.heard] == pytest.approx([0.0008 * (n + 1) for n in range(10)])
    (count,) = network.nodes()
    assert (count.node, count.offered, count.dropped) == ("h", 10, 0)


@pytest.mark.parametrize("senders", [1, 2, 3, 5])
def test_senders_share_the_rate_equally(senders: int) -> None:
    network = hub(senders + 1)
    for number in range(senders):
        send(network, "bcdefgh"[number], 300, "a", first=1000 * number)
    listener = probe_on(network, "a")
    network.run(until=200 * 0.0008)
    assert len(listener.heard) == pytest.approx(200, abs=1)
    for number in range(senders):
        own = [packet for _, packet, _ in listener.heard if packet // 1000 == number]
        assert len(own) == pytest.approx(200 / senders, abs=1)


def test_an_idle_station_leaves_its_share_to_the_others() -> None:
    network = hub(3)
    # One offers a quarter of the rate, and each of its packets waits for one packet in transmission at most.
    listener = probe_on(network, "a")
    send(network, "b", 50, "a", gap=4 * 0.0008)
    send(network, "c", 300, "a", first=1000)
    network.run(until=200 * 0.0008)
    small = [(when, number) for when, number, _ in listener.heard if number < 1000]
    assert len(small) == pytest.approx(50, abs=1)
    assert all(0.0008 <= when - number * 4 * 0.0008 < 3 * 0.0008 for when, number in small)
    assert len(listener.heard) == pytest.approx(200, abs=1)


def test_unicast_between_two_occupies_the_medium_for_all_and_only_one_receives_it() -> None:
    network = hub(4)
    silent, target = probe_on(network, "d"), probe_on(network, "b")
    send(network, "a", 200, "b")
    send(network, "c", 200, "d", first=1000)
    network.run(until=100 * 0.0008)
    assert len(target.heard) + len(silent.heard) == pytest.approx(100, abs=1)
    assert all(number < 1000 for _, number, _ in target.heard)
    assert all(number >= 1000 for _, number, _ in silent.heard)


def test_both_directions_share_the_medium() -> None:
    network = hub(2)
    one, other = send(network, "a", 100, "b"), send(network, "b", 100, "a", first=1000)
    network.run(until=100 * 0.0008)
    assert len(one.heard) + len(other.heard) == pytest.approx(100, abs=1)


def test_a_station_queues_so_many_packets_and_drops_the_rest() -> None:
    network = hub(2, queue=3)
    listener = probe_on(network, "b")
    send(network, "a", 10)
    network.run()
    assert [number for _, number, _ in listener.heard] == [0, 1, 2, 3]
    assert network.nodes()[0].dropped == 6


def test_the_framing_of_the_link_counts() -> None:
    network = hub(2, ends={"overhead": "ethernet"})
    listener = probe_on(network, "b")
    send(network, "a", 10)
    network.run()
    assert listener.heard[-1][0] == pytest.approx(10 * wire_bytes(SIZE) / RATE)


def test_links_add_their_delay_before_and_after_the_medium() -> None:
    network = hub(2, ends={"delay": "5ms"})
    listener = probe_on(network, "b")
    send(network, "a", 1)
    network.run()
    assert listener.heard[0][0] == pytest.approx(0.0108)


def test_a_card_that_filters_too_few_groups_hears_those_of_others_too() -> None:
    nodes = {"a": {}, "b": {}, "c": {"cpu": "1ms", "filters": 0}, "h": {"kind": "switch", "hub": True, "rate": "10Mbit"}}
    built = Inline.model_validate({"nodes": nodes, "links": [{"ends": [name, "h"]} for name in "abc"]}).build()
    network = Network(built, seed=1)
    probe_on(network, "c").ports.leave(GROUP)
    member = probe_on(network, "b")
    network.host("c").join(Group("239.0.0.9:1"))
    send(network, "a", 10)
    network.run()
    assert len(member.heard) == 10
    counts = {row.node: row for row in network.nodes()}
    assert counts["c"].offered == 10


def mixed(receivers: int = 6, loss: str = "2%") -> Topology:
    """Return a sender behind a switch, and a hub with a group of equal receivers and two others."""
    nodes = {
        "sender": {},
        "s": {"kind": "switch"},
        "h": {"kind": "switch", "hub": True, "rate": "20Mbit", "queue": 200},
        "r": {"count": receivers},
        "x": {},
        "y": {},
    }
    links = [
        {"ends": ["sender", "s"], "rate": "50Mbit", "delay": "2ms"},
        {"ends": ["s", "h"], "delay": "1ms", "down": {"loss": loss}},
        {"ends": ["h", "r"], "down": {"loss": loss}},
        {"ends": ["h", "x"], "up": {"loss": loss}},
        {"ends": ["s", "y"], "rate": "50Mbit", "down": {"loss": loss}},
    ]
    return Inline.model_validate({"nodes": nodes, "links": links}).build()


def star_hub(receivers: int, loss: str) -> Topology:
    """Return a star whose switch is a hub."""
    star = {"receivers": receivers, "link": {"delay": "1ms", "down": {"loss": loss}}}
    return Star.model_validate({**star, "nodes": {"s1": {"hub": True, "rate": "20Mbit"}}}).build()


@pytest.mark.parametrize("loss", ["0%", "5%"])
@pytest.mark.parametrize("topology", [mixed, star_hub], ids=["mixed", "star"])
@pytest.mark.parametrize("receivers", [1, 12])
def test_both_engines_run_norm_over_a_hub_alike(topology: Any, receivers: int, loss: str) -> None:
    runs = []
    for engine in ("strict", "fast"):
        session = Session(topology(receivers, loss), NORM, NORM.config(rate=1_000_000.0, grtt=0.05), engine=engine)
        session.send(200_000)
        runs.append(session.run().network)
    assert runs[0].fingerprint() == runs[1].fingerprint()
    assert runs[0].nodes() == runs[1].nodes()
    assert runs[0].links() == runs[1].links()


@pytest.mark.parametrize(
    ("nodes", "link", "words"),
    [
        ({"h": {"hub": True}}, {}, "nodes.h.rate: is missing; a hub needs a rate"),
        ({"h": {"hub": True, "rate": "1Mbit"}}, {"rate": "1Mbit"}, "rate is not allowed; h is a hub and has the rate"),
        ({"h": {"hub": True, "rate": "1Mbit", "pause": True}}, {}, "nodes.h.pause: True is not allowed; not for a hub"),
        ({"h": {"rate": "1Mbit"}}, {}, "nodes.h.rate: 125000.0 is not allowed; only for a hub"),
        ({"a": {"hub": True}}, {}, "nodes.a.hub: True is not allowed; only for a switch, this is a host"),
        ({"h": {"kind": "router", "hub": True}}, {}, "only for a switch, this is a router"),
    ],
)
def test_what_makes_no_hub_is_refused_with_its_key(nodes: dict[str, Any], link: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        Inline.model_validate(
            {"nodes": {"a": {}, "b": {}, "h": {}} | nodes, "links": [{"ends": ["a", "h"], **link}, {"ends": ["h", "b"]}]}
        ).build()


def test_two_hubs_are_not_linked_to_each_other() -> None:
    one = {"kind": "switch", "hub": True, "rate": "10Mbit"}
    edges = [{"ends": ends} for ends in (["a", "h"], ["h", "k"], ["k", "b"])]
    with pytest.raises(ConfigError, match="link h-k: is not allowed between two hubs"):
        Inline.model_validate({"nodes": {"a": {}, "b": {}, "h": one, "k": one}, "links": edges}).build()
