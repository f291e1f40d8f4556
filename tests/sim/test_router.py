"""Routers, storm control and pause: what they let through, and when."""

from typing import Any

import pytest

from sim.network import Network
from tests.sim.probes import GROUP, Probe, probe_on
from topologies.ethernet import wire_bytes
from topologies.inline import Inline

FAST = 12.5e6
"""100 Mbit/s in bytes per second."""


def network(nodes: dict[str, Any], *links: dict[str, Any], **engine: Any) -> Network:
    """A network of these nodes and links."""
    return Network(Inline.model_validate({"nodes": nodes, "links": links}).build(), seed=1, **engine)


def flood(built: Network, sizes: list[int], gap: float = 0.0, to: str = "b", target: Any = GROUP) -> Probe:
    """Host a sends packets of these sizes, one each `gap` seconds; returns what host `to` receives."""
    listener = probe_on(built, to)
    probe_on(built, "a", [(n * gap, n, size, target, n) for n, size in enumerate(sizes)], listen=False)
    built.run()
    return listener


def rate(probe: Probe, size: int) -> float:
    """Bytes per second of payload between the first and the last packet."""
    times = [when for when, _, _ in probe.heard]
    return size * (len(times) - 1) / (times[-1] - times[0])


def behind_router(**router: Any) -> Network:
    """Return a network of hosts a and b with a router between them."""
    wires = {} if router.get("mac") == "single" else {"rate": "100Mbit", "overhead": "ethernet"}
    nodes = {"a": {}, "b": {}, "g": {"kind": "router", **router}}
    return network(nodes, {"ends": ["a", "g"], **wires}, {"ends": ["g", "b"], **wires})


@pytest.mark.parametrize("size", [1, 64, 1472, 1473, 8192])
def test_ethernet_is_full_at_the_computed_rate(size: int) -> None:
    link = {"rate": "100Mbit", "overhead": "ethernet"}
    heard = flood(network({"a": {}, "b": {}}, {"ends": ["a", "b"], **link}), [size] * 50)
    assert rate(heard, size) == pytest.approx(size / wire_bytes(size) * FAST, rel=1e-9)


@pytest.mark.parametrize("size", [18, 1472, 1473])
def test_a_router_with_one_mac_and_half_duplex_passes_half(size: int) -> None:
    # The load is twice the capacity.
    heard = flood(behind_router(mac="single", duplex="half", rate="100Mbit"), [size] * 400, size / FAST)
    tagged = wire_bytes(size, "ethernet-802.1q")
    # While packets still arrive; afterwards the whole wire is free for those that leave.
    times = [when for when, _, _ in heard.heard if when < 400 * tagged / FAST]
    assert len(times) > 100
    assert size * (len(times) - 1) / (times[-1] - times[0]) == pytest.approx(size / tagged * FAST / 2, rel=1e-6)


def test_a_router_with_one_mac_and_full_duplex_passes_all_one_way() -> None:
    heard = flood(behind_router(mac="single", duplex="full", rate="100Mbit"), [1472] * 100)
    assert rate(heard, 1472) == pytest.approx(1472 / 1542 * FAST, rel=1e-9)


def test_one_mac_of_full_duplex_is_shared_by_the_two_ways() -> None:
    built = behind_router(mac="single", duplex="full", rate="100Mbit")
    probes = [probe_on(built, name, [(n * 1e-6, n, 1472, GROUP, n) for n in range(100)]) for name in ("a", "b")]
    built.run()
    assert [rate(probe, 1472) for probe in probes] == pytest.approx([1472 / 1542 * FAST / 2] * 2, rel=0.02)


def test_the_queues_of_a_single_wire_are_limited_each() -> None:
    built = behind_router(mac="single", duplex="half", rate="100Mbit", queue=5)
    heard = flood(built, [1472] * 100)
    (counts,) = built.nodes()
    # One is transmitted at once and five wait; none is lost on the way out, where the wire is as fast.
    assert (counts.offered, counts.dropped, len(heard.heard)) == (100, 94, 6)


@pytest.mark.parametrize("engine", ["fast", "strict"])
@pytest.mark.parametrize("duplex", ["half", "full"])
def test_one_mac_sends_a_copy_to_each_member_of_a_counted_group(duplex: str, engine: str) -> None:
    heard = []
    equal: list[dict[str, Any]] = [{"b": {"count": 3}}, {f"b{n}": {} for n in (1, 2, 3)}]
    for nodes in equal:
        router = {"kind": "router", "mac": "single", "duplex": duplex, "rate": "100Mbit", "queue": 20}
        links = [{"ends": [name, "g"]} for name in ("a", *nodes)]
        built = network({"a": {}, "g": router, **nodes}, *links, engine=engine)
        probes = [probe_on(built, f"b{n}", [(n * 3e-3, n, 700, GROUP, -n)]) for n in (1, 2, 3)]
        probe_on(built, "a", [(n * 2e-4, n, 1472, GROUP, n) for n in range(60)], listen=False)
        built.run()
        heard.append(([probe.heard for probe in probes], [(row.offered, row.dropped) for row in built.nodes()]))
    assert heard[0] == heard[1]
    assert min(map(len, heard[0][0])) < 60


@pytest.mark.parametrize(("pruning", "copies"), [(True, 1), (False, 3)])
def test_one_mac_sends_copies_to_members_that_do_not_listen_without_pruning_alone(pruning: bool, copies: int) -> None:
    router = {"kind": "router", "mac": "single", "duplex": "full", "rate": "100Mbit", "queue": 20}
    nodes, links = {"a": {}, "g": router, "b": {"count": 3}}, [{"ends": ["a", "g"]}, {"ends": ["g", "b"]}]
    data = {"nodes": nodes, "links": links, "multicast": {"pruning": pruning}}
    heard = flood(Network(Inline.model_validate(data).build(), seed=1), [1472] * 100, 1472 / FAST, to="b3")
    assert rate(heard, 1472) == pytest.approx(1472 / wire_bytes(1472, "ethernet-802.1q") * FAST / copies, rel=0.1)


def test_two_macs_are_not_halved() -> None:
    heard = flood(behind_router(cpu="50us"), [1472] * 100)
    assert rate(heard, 1472) == pytest.approx(1472 / 1538 * FAST, rel=1e-9)


def test_a_packet_is_stored_before_it_is_forwarded() -> None:
    heard = flood(behind_router(cpu="50us"), [1472])
    assert heard.heard[0][0] == pytest.approx(2 * 1538 / FAST + 50e-6)


def test_a_slow_processor_is_the_limit_and_loses_what_does_not_fit() -> None:
    built = behind_router(cpu="150us", cpu_byte="100ns", queue=10)
    heard = flood(built, [1000] * 400)
    assert rate(heard, 1000) == pytest.approx(1000 / 250e-6, rel=1e-9)
    (counts,) = built.nodes()
    assert counts.node == "g"
    assert counts.offered == 400 == counts.dropped + len(heard.heard)
    # The link brings one each 85.28 us, the processor takes one each 250 us; 11 more are on hand at the end.
    assert counts.dropped == pytest.approx(400 * (1 - 85.28 / 250) - 11, abs=3)


def stormy(**switch: Any) -> Network:
    """a and b on a switch with storm control."""
    nodes = {"a": {}, "b": {}, "s": {"kind": "switch", **switch}}
    return network(nodes, {"ends": ["a", "s"], "rate": "100Mbit"}, {"ends": ["s", "b"], "rate": "100Mbit"})


def test_storm_control_lets_so_much_multicast_in_and_a_burst_at_first() -> None:
    built = stormy(storm="8Mbit", burst="10kB")
    # 958 + 42 = 1000 bytes each 0.5 ms are 2 MB/s for a second; 1 MB/s comes in, and the bucket at once.
    heard = flood(built, [958] * 2000, 0.0005)
    assert len(heard.heard) == pytest.approx(1000 + 10, abs=2)
    (counts,) = built.nodes()
    assert (counts.offered, counts.filtered) == (2000, 2000 - len(heard.heard))


def test_storm_control_leaves_unicast_alone() -> None:
    heard = flood(stormy(storm="8Mbit", burst="10kB"), [958] * 200, 0.0005, target="b")
    assert len(heard.heard) == 200


@pytest.mark.parametrize("engine", ["strict", "fast"])
def test_storm_control_limits_each_member_of_a_group_by_itself(engine: str) -> None:
    nodes = {"a": {}, "m": {"count": 4}, "s": {"kind": "switch", "storm": "8Mbit", "burst": "2kB"}}
    built = network(nodes, {"ends": ["a", "s"]}, {"ends": ["s", "m"], "rate": "100Mbit"}, engine=engine)
    heard = probe_on(built, "a")
    for member in range(1, 5):
        probe_on(built, f"m{member}", [(0.0, 10 * member + n, 958, GROUP, None) for n in range(3)])
    built.run()
    # Two packets of 1000 bytes are the burst, and the third is filtered 80 us later, of each member.
    assert sorted(number for _, number, _ in heard.heard) == [10 * member + n for member in range(1, 5) for n in range(2)]
    (counts,) = built.nodes()
    assert (counts.offered, counts.filtered) == (12, 4)


def slow_exit(**switch: Any) -> Network:
    """a on a fast link, b on a slow one with a short queue."""
    nodes = {"a": {}, "b": {}, "s": {"kind": "switch", **switch}}
    fast, slow = {"ends": ["a", "s"], "rate": "100Mbit", "delay": "1ms"}, {"ends": ["s", "b"], "rate": "10Mbit", "queue": 20}
    return network(nodes, fast, slow)


def test_a_switch_that_pauses_loses_nothing_and_is_as_fast_as_its_slowest_link() -> None:
    lossy, paused = slow_exit(), slow_exit(pause=True)
    without, heard = flood(lossy, [958] * 300), flood(paused, [958] * 300)
    assert len(without.heard) < 100
    assert [number for _, number, _ in heard.heard] == list(range(300))
    assert {link.dropped for link in paused.links()} == {0}
    assert rate(heard, 1000) == pytest.approx(1.25e6, rel=0.01)


def test_pauses_spread_backwards_and_still_nothing_is_lost() -> None:
    nodes = {"a": {}, "b": {}, "s": {"kind": "switch", "pause": True}, "t": {"kind": "switch", "pause": True}}
    built = network(
        nodes,
        {"ends": ["a", "s"], "rate": "100Mbit"},
        {"ends": ["s", "t"], "rate": "50Mbit", "queue": 10},
        {"ends": ["t", "b"], "rate": "5Mbit", "queue": 10},
    )
    heard = flood(built, [958] * 200)
    assert [number for _, number, _ in heard.heard] == list(range(200))
    assert rate(heard, 1000) == pytest.approx(625_000, rel=0.01)


def test_a_host_that_pauses_its_link_is_not_overrun() -> None:
    def built(pause: bool) -> Network:
        host = {"cpu": "1ms", "buffer": "10kB", "pause": pause}
        return network(
            {"a": {}, "b": host, "s": {"kind": "switch"}}, {"ends": ["a", "s"]}, {"ends": ["s", "b"], "rate": "100Mbit"}
        )

    assert len(flood(built(False), [958] * 100).heard) < 25
    heard = flood(built(True), [958] * 100)
    assert [number for _, number, _ in heard.heard] == list(range(100))
    assert rate(heard, 1) == pytest.approx(1000, rel=1e-6)


def test_a_framed_queue_that_goes_its_own_way_still_frames() -> None:
    nodes = {"a": {}, "s": {}, "r": {"kind": "host", "count": 3}}
    built = network(nodes, {"ends": ["a", "s"]}, {"ends": ["s", "r"], "rate": "100Mbit", "overhead": "ethernet", "queue": 50})
    listener = probe_on(built, "r2")
    script = [(0.0, n, 18, to, n) for n in range(10) for to in ("r2", GROUP)]
    probe_on(built, "a", script, listen=False)
    built.run()
    assert [when for when, _, _ in listener.heard] == pytest.approx([84 * (n + 1) / FAST for n in range(20)])
