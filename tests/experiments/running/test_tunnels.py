"""Sites joined by tunnels: every message once at every subscriber, whatever loops there are and whichever tunnel dies."""

from pathlib import Path
from typing import Any

import pytest

from experiments.running.run import run
from experiments.running.simulate import simulate
from experiments.scenario.ready import find_scenario
from experiments.scenario.scenario import load
from protocols.errors import ConfigError
from protocols.machine import Group, Packet
from protocols.norm.messages import Ack, Command, Data, Nack
from sim.watch import Watcher

SINGLE, THREE = find_scenario(Path("fjm2-wan-single")), find_scenario(Path("fjm2-three-sites"))
PLAIN = ("workload.0.properties={}", "workload.0.priority=4", "workload.0.count=300")
DUAL = (
    "topology.nodes.g1={kind: router, mac: dual, queue: 200, cpu: 20us}",
    "topology.links.1={ends: [l1, g1], rate: 100Mbit, overhead: ethernet, queue: 100}",
    "topology.links.2={ends: [g1, w], rate: 100Mbit, overhead: ethernet, queue: 100}",
)
TUNNELS = ("ga", "t", "gb", "gc")
SEVERAL = ("nodes.ga.site=1", "nodes.t.site=99")
"""Two tunnels of one site that take it for two: both serve, so there are loops."""
SITE_OF = dict.fromkeys(("p", "ra1", "ra2", "ga", "t"), "a") | dict.fromkeys(("q", "rb", "gb"), "b") | {"rc": "c", "gc": "c"}


def single(*sets: str) -> Any:
    """Run two sites with one publisher in the simulator."""
    return simulate(load(SINGLE, (*PLAIN, *sets)))


def three(*sets: str, until: float = 2.0) -> Any:
    """Run three sites with two publishers in the simulator."""
    return simulate(load(THREE, (f"workload.0.until={until}s", *sets)))


class HomeWatcher(Watcher):
    """Notes the packets of a site that a tunnel multicasts in it: nodes are told by their ids, which their hosts send first."""

    def __init__(self) -> None:
        self._site_of: dict[int, str] = {}
        self.home: list[tuple[str, str]] = []
        self.away = 0

    def sent(self, now: float, host: str, packet: Packet, number: int) -> None:
        """Compare the site of the node with that of the tunnel."""
        message = packet.message
        if not isinstance(packet.to, Group) or not isinstance(message, (Data, Nack, Ack, Command)):
            return
        node = message.source_id if isinstance(message, (Nack, Ack)) else message.origin.source_id
        site = SITE_OF[host.removesuffix(".host")]
        if host.removesuffix(".host") not in TUNNELS:
            self._site_of[node] = site
        elif self._site_of[node] == site:
            self.home.append((host, message.kind))
        else:
            self.away += 1


def assert_once(result: Any) -> None:
    """Check that every message came once to every subscriber."""
    messages = result.metrics["messages"]
    assert messages["delivered"] == messages["due"] > 0
    assert (messages["lost"], messages["missing"], messages["repeated"]) == (0, 0, 0)
    assert result.metrics["invariants"]["violations"] == []


def test_messages_cross_a_wan_and_worlds_of_the_simulator_agree() -> None:
    runs = [single(), single("engine=strict"), single("wire=bytes")]
    assert_once(runs[0])
    assert len({each.fingerprint for each in runs}) == 1


@pytest.mark.parametrize("sets", [(), DUAL], ids=["single", "dual"])
def test_every_message_comes_once_through_one_adapter_or_two(sets: tuple[str, ...]) -> None:
    assert_once(single(*sets, "protocol.rate=30Mbit"))


@pytest.mark.parametrize("sets", [(), SEVERAL], ids=["quiet", "several"])
def test_no_packet_comes_back_to_its_site(sets: tuple[str, ...]) -> None:
    watcher = HomeWatcher()
    result = simulate(load(THREE, ("workload.0.until=2s", *sets)), [watcher])
    assert_once(result)
    assert watcher.home == []
    assert watcher.away > result.metrics["packets"]["data"] / 2


def test_multicasts_do_not_cross_a_router_by_themselves() -> None:
    scenario = load(SINGLE, (*PLAIN, "nodes={g1: {role: tunnel, lan: l1}}", "duration=3s"))
    assert simulate(scenario).metrics["messages"]["delivered"] == 0


@pytest.mark.parametrize("cut", ["nothing", "site", "tunnels", "memory"])
def test_loops_end_whichever_cut_is_switched_off(cut: str) -> None:
    result = three(*SEVERAL, *(f"nodes.{name}.without={cut}" for name in TUNNELS))
    assert_once(result)
    # Each packet reaches the other two sites and is carried back by none, or by few.
    assert result.metrics["packets"]["tunnel"] < 8 * result.metrics["packets"]["data"]


@pytest.mark.parametrize(
    "sets", [SEVERAL, ("faults=[{at: 1s, crash: t, for: 500ms}, {at: 1.2s, partition: [[ga], rest], for: 1s}]",)]
)
def test_loops_and_changes_of_tunnels_run_alike_in_both_engines(sets: tuple[str, ...]) -> None:
    assert three(*sets).fingerprint == three(*sets, "engine=strict").fingerprint


def test_a_second_tunnel_of_a_site_is_quiet() -> None:
    one, both = three(), three(*SEVERAL)
    assert both.metrics["packets"]["tunnel"] > 1.3 * one.metrics["packets"]["tunnel"]


@pytest.mark.parametrize("name", TUNNELS)
def test_the_crash_of_a_tunnel_loses_no_message_that_is_cached(name: str) -> None:
    assert_once(three(f"faults=[{{at: 1s, crash: {name}, for: 1s}}]"))


def test_what_is_sent_with_keys_arrives(tmp_path: Path) -> None:
    keys = tmp_path / "keys"
    keys.write_text("1 " + "ab" * 32 + "\n")
    keys.chmod(0o600)
    sets = (f"nodes.g1.key_file={keys}", f"nodes.g2.key_file={keys}")
    with pytest.raises(ConfigError, match="may be at most 1396"):
        single(*sets)
    runs = [single(*sets, "protocol.segment=1396"), single(*sets, "protocol.segment=1396", "wire=bytes")]
    assert_once(runs[0])
    assert runs[0].fingerprint == runs[1].fingerprint != single("protocol.segment=1396").fingerprint


def test_one_half_duplex_adapter_carries_less_than_half_of_its_rate() -> None:
    # F17: at most 47.73 Mbit/s; 45 are offered, of which headers are a twentieth.
    result = single("workload.0.count=600", "protocol.rate=45Mbit")
    assert 40 < result.metrics["goodput_mbit_s"] < 47.73


def test_two_adapters_are_not_halved() -> None:
    # F18.
    assert single(*DUAL, "workload.0.count=600").metrics["goodput_mbit_s"] >= 85


@pytest.mark.parametrize("microseconds", [200, 800])
def test_a_slow_processor_bounds_what_a_tunnel_carries(microseconds: int) -> None:
    # F19: 1 / cost packets per second, of which a message of 4 kB needs three.
    most = 4000 * 8 / 3 / microseconds
    offered = 0.99 * most * 4145 / 4000
    cost = (*DUAL, f"nodes.g1.work={microseconds}us")
    result = single(*cost, f"protocol.rate={offered}Mbit")
    assert result.metrics["goodput_mbit_s"] == pytest.approx(most, rel=0.05)
    (processor,) = result.metrics["processors"]
    assert processor["host"] == "g1.host"
    # More than that overflows the ring.
    too_much = single(*cost, f"protocol.rate={2 * most}Mbit")
    assert too_much.metrics["servers"]["tunnel g1.host"]["ring_dropped"] > 100


@pytest.mark.parametrize(("queue", "backoff"), [(20, 0), (200, 4)])
def test_brakes_turn_overshoot_into_goodput(queue: int, backoff: int) -> None:
    # F16: without brakes every packet beyond half of the adapter's rate is dropped, and repaired.
    sets = ("workload.0.count=3000", f"topology.nodes.g1.queue={queue}", f"protocol.backoff={backoff}")
    free, braked = single(*sets, "protocol.braking=false"), single(*sets, "nodes.g1.brake=true", "nodes.g2.brake=true")
    for result in (free, braked):
        assert_once(result)
    dropped = [
        next(node["dropped"] / node["offered"] for node in result.metrics["nodes"] if node["node"] == "g1")
        for result in (free, braked)
    ]
    assert dropped[0] > 0.05
    assert dropped[1] < 0.01
    assert braked.metrics["goodput_mbit_s"] > free.metrics["goodput_mbit_s"]


@pytest.mark.parametrize("backoff", [0, 4])
def test_brakes_pay_where_a_queue_holds_half_a_second(backoff: int) -> None:
    # A tenth of all rates: the queue hides the overshoot until it is full, and tells of losses as late.
    sets = (
        *("workload.0.count=400", f"protocol.backoff={backoff}", "protocol.rate=9Mbit"),
        "topology.nodes.g1={kind: router, mac: single, duplex: half, rate: 10Mbit, cpu: 20us, queue: 200}",
        *(f"topology.links.{number}.rate=10Mbit" for number in (0, 3, 4, 5)),
    )
    free, braked = single(*sets, "protocol.braking=false"), single(*sets, "nodes.g1.brake=true")
    for result in (free, braked):
        assert_once(result)
    (node,) = (node for node in braked.metrics["nodes"] if node["node"] == "g1")
    assert node["dropped"] < 0.01 * node["offered"]
    assert braked.metrics["goodput_mbit_s"] > max(4.2, 1.1 * free.metrics["goodput_mbit_s"])


def test_a_publisher_may_ignore_brakes() -> None:
    ignored = single("nodes.g1.brake=true", "protocol.braking=false")
    free = single("protocol.braking=false")
    assert ignored.metrics["goodput_mbit_s"] == pytest.approx(free.metrics["goodput_mbit_s"], rel=0.1)


@pytest.mark.parametrize(
    ("sets", "words"),
    [
        (["nodes.g1={role: tunnel}"], "nodes.g1.lan: value '' is not allowed; a router has several networks: one of l1, w"),
        (["nodes.g1.lan=nowhere"], "nodes.g1.lan: value 'nowhere' is not allowed"),
        (["nodes.g1.ring=0"], "nodes.g1.ring: value 0 is not allowed; a whole number from 1"),
        (["nodes.g1.pace=fast"], "nodes.g1.pace: value 'fast' is not allowed"),
        (["protocol.segment=1440"], "protocol.segment, which is 1440, may be at most 1420"),
        (["nodes.g1.hops=16"], "nodes.g1.hops: value 16 is not allowed"),
    ],
)
def test_bad_values_are_named(sets: list[str], words: str) -> None:
    with pytest.raises(ConfigError, match=r"^[^\n]*$") as caught:
        load(SINGLE, sets)
    assert words in str(caught.value)


@pytest.mark.emu
@pytest.mark.parametrize("name", ["twin/fjm2-wan-half", "twin/fjm2-wan-dual"])
def test_a_wan_between_two_sites_in_mininet(name: str) -> None:
    """With one adapter that every packet passes twice, and with two and a loss of 2 % on the way."""
    result = run(load(find_scenario(Path(name)), ("workload.0.count=150",)), "emu")
    messages = result.metrics["messages"]
    assert messages["delivered"] == messages["due"] == 300
    assert (messages["lost"], messages["missing"], messages["repeated"]) == (0, 0, 0)


KILLS = "faults=[{at: 1s, crash: ga, for: 1s}, {at: 3s, crash: gb, for: 1s}, {at: 5s, crash: gc, for: 1s}]"
"""The tunnel of each site in turn: its process is killed, and another one begins after a second."""


CUT = "faults=[{at: 1s, partition: [[ga], rest], for: 500ms}, {at: 2s, flap: [w, gb], for: 100ms, times: 2}]"
"""Faults at routers with tunnels: the first site is cut off, and the link of the second fails twice."""


@pytest.mark.emu
@pytest.mark.parametrize(("until", "sets"), [(3, ()), (7, (KILLS,)), (3, (CUT,)), (3, SEVERAL)])
def test_three_sites_in_mininet(until: float, sets: tuple[str, ...]) -> None:
    result = run(load(THREE, (f"workload.0.until={until}s", *sets)), "emu")
    messages = result.metrics["messages"]
    assert messages["delivered"] == messages["due"] > 0
    assert (messages["lost"], messages["missing"], messages["repeated"]) == (0, 0, 0)
