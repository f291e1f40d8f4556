"""Joining and leaving with latency, pruning, scope, and hosts that take packets in slowly."""

from typing import Any

import pytest

from protocols.machine import Group
from sim.network import Network
from tests.sim.probes import GROUP, Probe, probe_on
from topologies.generators import Star
from topologies.inline import Inline

OTHER = Group("239.0.0.2:1")


def star(receivers: int = 3, **parts: Any) -> Network:
    """A running star."""
    return Network(Star.model_validate({"receivers": receivers, **parts}).build(), seed=1)


def ticking(network: Network, seconds: int, to: Group = GROUP) -> None:
    """The sender says the number of each tenth of a second."""
    probe_on(network, "sender", [(n / 10, n, 100, to, n) for n in range(10 * seconds)], listen=False)


def numbers(probe: Probe) -> list[int]:
    """What it received."""
    return [number for _, number, _ in probe.heard]


def offered(network: Network, near: str, far: str) -> int:
    """Packets offered to a link."""
    return next(counts.offered for counts in network.links() if (counts.near, counts.far) == (near, far))


def test_joining_takes_its_time_to_get_through() -> None:
    network = star(multicast={"join": "250ms"})
    probe = probe_on(network, "r1")
    ticking(network, 1)
    network.run()
    assert numbers(probe) == list(range(3, 10))


def test_a_host_that_leaves_before_its_join_is_complete_receives_nothing() -> None:
    network = star(multicast={"join": "250ms"})
    probe = probe_on(network, "r1")
    ticking(network, 1)
    network.later(0.1, lambda: network.host("r1").leave(GROUP))
    network.run()
    assert numbers(probe) == []


def test_a_host_that_is_stopped_before_its_join_is_complete_does_not_join() -> None:
    network = star(1, multicast={"join": "250ms"})
    probe_on(network, "r1")
    ticking(network, 1)
    network.later(0.1, lambda: network.host("r1").stop())
    network.run()
    assert offered(network, "s1", "r") == 0


def test_after_leaving_packets_still_use_the_link_for_a_while() -> None:
    network = star(1, multicast={"leave": "250ms"})
    probe = probe_on(network, "r1")
    ticking(network, 1)
    network.later(0.45, lambda: network.host("r1").leave(GROUP))
    network.run()
    assert numbers(probe) == [0, 1, 2, 3, 4]
    # Until 0.70 s: 0 to 6.
    assert offered(network, "s1", "r") == 7


@pytest.mark.parametrize(("pruning", "carried"), [(True, 0), (False, 10)])
def test_without_pruning_every_link_carries_every_group(pruning: bool, carried: int) -> None:
    network = star(1, multicast={"pruning": pruning})
    probe = probe_on(network, "r1")
    ticking(network, 1, OTHER)
    network.run()
    assert numbers(probe) == []
    assert offered(network, "s1", "r") == carried


def test_a_stopped_host_leaves_its_groups_and_wakes_no_more() -> None:
    network = star(1)
    probe = probe_on(network, "r1", [(0.2, 1, 100, GROUP, None), (0.8, 2, 100, GROUP, None)])
    ticking(network, 1)
    network.later(0.45, lambda: network.host("r1").stop())
    network.run()
    assert numbers(probe) == [0, 1, 2, 3, 4]
    assert probe.woken == [0.2]


@pytest.mark.parametrize("ttl", [1, 2, 3])
def test_a_multicast_ends_where_its_ttl_does(ttl: int) -> None:
    router = {"kind": "router"}
    line = ["a-g1", "g1-s1", "s1-b", "s1-g2", "g2-s2", "s2-c"]
    nodes = {name: router if name.startswith("g") else {} for link in line for name in link.split("-")}
    network = Network(
        Inline.model_validate({"nodes": nodes, "links": [{"ends": link.split("-")} for link in line]}).build(), seed=1
    )
    probes = [probe_on(network, name) for name in ("b", "c")]
    network.limit_scope("a", ttl)
    probe_on(network, "a").say(7)
    network.run()
    assert [numbers(probe) for probe in probes] == [[7] * (ttl > 1), [7] * (ttl > 2)]


@pytest.mark.parametrize("load", [1.25, 1.05])
def test_a_slow_receiver_loses_what_its_processor_can_not_take(load: float) -> None:
    network = star(2, nodes={"r": {"cpu": "1ms", "buffer": "2kB"}})
    probes = [probe_on(network, name) for name in ("r1", "r2")]
    total = 20_000
    probe_on(network, "sender", [(n * 0.001 / load, n, 100, GROUP, n) for n in range(total)], listen=False)
    network.run()
    for probe in probes:
        # 20 wait in the buffer when it is full.
        assert 1 - (len(probe.heard) - 20) / total == pytest.approx(1 - 1 / load, rel=0.01)
    (counts,) = network.nodes()
    assert counts.offered == 2 * total == counts.dropped + sum(len(probe.heard) for probe in probes)


def test_members_of_a_group_have_processors_of_their_own() -> None:
    network = star(2, link={"down": {"loss": "50%"}}, nodes={"r": {"cpu": "1ms"}})
    probes = [probe_on(network, name) for name in ("r1", "r2")]
    probe_on(network, "sender", [(0.0, n, 100, GROUP, n) for n in range(50)], listen=False)
    network.run()
    for probe in probes:
        # Everything came at once and is taken one by one, whatever the other missed.
        assert [when for when, _, _ in probe.heard] == pytest.approx([0.001 * (n + 1) for n in range(len(probe.heard))])
    assert numbers(probes[0]) != numbers(probes[1])


def test_unicast_goes_through_the_processor_too() -> None:
    network = star(2, nodes={"r": {"cpu": "1ms"}})
    probe = probe_on(network, "r2")
    probe_on(network, "sender", [(0.0, n, 100, "r2", n) for n in range(3)], listen=False)
    network.run()
    assert [when for when, _, _ in probe.heard] == pytest.approx([0.001, 0.002, 0.003])


@pytest.mark.parametrize(("filters", "used"), [(None, 0.01), (1, 0.01), (0, 0.02)])
def test_a_card_without_enough_filters_makes_the_processor_throw_groups_away(filters: int | None, used: float) -> None:
    limits = {"cpu": "1ms"} if filters is None else {"cpu": "1ms", "filters": filters}
    network = star(1, nodes={"r": limits}, multicast={"pruning": False})
    probe = probe_on(network, "r1")
    script = [(n / 10, n, 100, group, n) for n in range(10) for group in (GROUP, OTHER)]
    probe_on(network, "sender", script, listen=False)
    network.run()
    assert numbers(probe) == list(range(10))
    (counts,) = network.nodes()
    assert counts.processor == pytest.approx(used)
