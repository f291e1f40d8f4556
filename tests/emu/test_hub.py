"""Hubs in Mininet share their rate as simulated ones do."""

from typing import Any

import pytest

from emu.hub_shaping import HubShape
from emu.launch import emulate
from emu.multicast_reach import expected_reach
from emu.plan import plan_emulation
from protocols.errors import UnsupportedError
from protocols.hosting import Program
from sim.network import Network
from tests.emu.flows import Filling, Measuring
from tests.emu.number_protocol import GROUP, PORT, NumberCodec, ReceivingProgram, SendingProgram
from topologies.addressing import host_address
from topologies.inline import Inline
from topologies.spec import Topology

RATE = 4e6
"""Bits per second."""
SIZE = 1000
SECONDS = 1.5


def topology(stations: int = 4, **link: Any) -> Topology:
    """Return hosts a, b, c, ... on a hub, and z behind a switch."""
    names = "abcdefgh"[:stations]
    hub = {"kind": "switch", "hub": True, "rate": "4Mbit", "queue": 30}
    nodes = {name: {} for name in names} | {"h": hub, "s": {"kind": "switch"}, "z": {}}
    links = [{"ends": [name, "h"], **link} for name in names] + [{"ends": ["h", "s"]}, {"ends": ["s", "z"]}]
    return Inline.model_validate({"nodes": nodes, "links": links}).build()


def programs(senders: int) -> dict[str, Program]:
    """Let hosts b, c, ... send twice what the hub carries in all, and all others listen."""
    rate = 2 * RATE / 8 / SIZE / senders
    sending: dict[str, Program] = {name: SendingProgram(100_000, rate, size=SIZE) for name in "bcde"[:senders]}
    return {"a": ReceivingProgram(), **sending, "z": ReceivingProgram()}


def throughput(result: dict[str, Any]) -> float:
    """Return the share of the rate that packets took between the first and the last, with 42 bytes of headers."""
    return (len(result["numbers"]) - 1) * (SIZE + 42) * 8 / float(result["seconds"]) / RATE


def simulated(built: Topology, senders: int) -> float:
    """Return what a host on the hub receives."""
    network = Network(built, seed=1)
    made = programs(senders)
    for name, program in made.items():
        program.start(network.host(name))
    network.run(SECONDS)
    return throughput(made["a"].result())


def emulated(built: Topology, senders: int) -> dict[str, Any]:
    """Return the results of all hosts in Mininet."""
    made = programs(senders)
    run = emulate(
        built,
        made,
        codec=NumberCodec,
        port=PORT,
        duration=SECONDS,
        over=lambda finished: False,
        seed=1,
        groups={GROUP.name.partition(":")[0]: list(made)},
    )
    assert all(node.error is None for node in run.nodes.values())
    (row,) = [row for row in run.impairments if row.get("node") == "h"]
    assert (row["hub"], row["rate"], row["queue"]) == (True, RATE / 8, 30)
    return {name: node.result for name, node in run.nodes.items()}


@pytest.mark.parametrize("senders", [1, 3])
def test_a_simulated_hub_carries_its_rate(senders: int) -> None:
    assert simulated(topology(), senders) == pytest.approx(1.0, rel=0.02)


@pytest.mark.emu
@pytest.mark.timed
@pytest.mark.parametrize(("senders", "link"), [(1, {}), (3, {}), (2, {"delay": "2ms"})])
def test_senders_on_an_emulated_hub_share_its_rate(senders: int, link: dict[str, Any]) -> None:
    built = topology(**link)
    expected = simulated(built, senders)
    found: dict[str, Any] = {}
    heard: list[float] = []
    # A busy machine sends less, so the best of some runs counts; none may exceed the rate.
    while len(heard) < 4 and not any(value == pytest.approx(expected, rel=0.1) for value in heard):
        found = emulated(built, senders)
        heard.append(throughput(found["a"]))
        # A bucket is full at first, and packets that wait for a busy receiver arrive together.
        assert heard[-1] < 1.03 * expected
    assert max(heard) == pytest.approx(expected, rel=0.1)
    # Every host receives it once; on a busy machine hosts stop at different times.
    total = len(found["a"]["numbers"])
    assert len(found["z"]["numbers"]) == pytest.approx(total, rel=0.06)
    # Each sender receives the packets of the others, and all have equal shares.
    others = [found[name]["received"] for name in "bcde"[:senders]]
    assert sum(others) == pytest.approx((senders - 1) * total, rel=0.06)
    assert max(others) - min(others) < 0.1 * total


def goodput_of_two_flows() -> list[float]:
    """Return what b receives from a, and z from c, in bits per second, in Mininet."""
    built = topology()
    address = {name: (host_address(built, name), PORT) for name in built.hosts}
    end = 2 * SECONDS
    run = emulate(
        built,
        {"a": Filling(address["b"]), "b": Measuring(end), "c": Filling(address["z"]), "z": Measuring(end)},
        codec=NumberCodec,
        port=PORT,
        duration=10.0,
        over=lambda finished: {"b", "z"} <= finished,
        seed=1,
    )
    assert all(node.error is None for node in run.nodes.values())
    return [8 * float(run.nodes[name].result["goodput"]) for name in "bz"]  # type: ignore[index]


@pytest.mark.emu
@pytest.mark.timed
def test_unicast_between_two_takes_the_rate_from_the_others() -> None:
    shares: list[float] = []
    # A machine that stops for a moment makes one of the flows time out, so the fairest of some runs counts.
    while len(shares) < 4 and not any(share > 0.3 for share in shares):
        goodput = goodput_of_two_flows()
        # Two flows and their acknowledgements; the queues of their own stations lose segments in slow start.
        assert sum(goodput) < 0.97 * RATE
        shares.append(min(goodput) / RATE)
    assert max(shares) > 0.3


def test_all_hosts_of_a_counted_group_on_a_hub_hear_what_is_for_one() -> None:
    nodes = {"a": {}, "b": {"count": 3}, "h": {"kind": "switch", "hub": True, "rate": "4Mbit"}}
    built = Inline.model_validate({"nodes": nodes, "links": [{"ends": [name, "h"]} for name in "ab"]}).build()
    found = expected_reach(built, "a", "239.1.2.3", ["a", "b1"], 255)
    assert found.required == {"b1"}
    assert found.allowed == {"b1", "b2", "b3"}


def test_the_addresses_behind_each_station_are_known() -> None:
    (hub,) = plan_emulation(topology(2)).hubs
    assert isinstance(hub, HubShape)
    assert [len(addresses) for addresses in hub.stations] == [1, 1, 1]
    assert len({address for addresses in hub.stations for address in addresses}) == 3


def test_links_of_different_framing_into_a_hub_are_refused() -> None:
    nodes = {"a": {}, "b": {}, "h": {"kind": "switch", "hub": True, "rate": "4Mbit"}}
    links = [{"ends": ["a", "h"], "overhead": "ethernet"}, {"ends": ["b", "h"]}]
    with pytest.raises(UnsupportedError, match="node h: links of different overhead into a hub"):
        plan_emulation(Inline.model_validate({"nodes": nodes, "links": links}).build())


def test_a_hub_whose_stations_have_no_queue_is_refused() -> None:
    nodes = {"a": {}, "b": {}, "h": {"kind": "switch", "hub": True, "rate": "4Mbit", "queue": 0}}
    links = [{"ends": ["a", "h"]}, {"ends": ["b", "h"]}]
    with pytest.raises(UnsupportedError, match="node h: queue 0 can't be emulated; 1 to 2147483647, or use the simulator"):
        plan_emulation(Inline.model_validate({"nodes": nodes, "links": links}).build())
