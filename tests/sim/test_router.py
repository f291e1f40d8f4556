"""Routers, storm control and pause: what they let through, and when."""

from math import inf
from typing import Any

import pytest

from sim.network import Network
from tests.sim.probes import Probe, probe_on
from topologies.ethernet import wire_bytes
from topologies.inline import Inline

FAST = 12.5e6
"""100 Mbit/s in bytes per second."""


def network(nodes: dict[str, Any], *links: dict[str, Any]) -> Network:
    """A network of these nodes and links."""
    return Network(Inline.model_validate({"kind": "graph", "nodes": nodes, "links": links}).build(), seed=1)


def flood(built: Network, sizes: list[int], gap: float = 0.0, to: str = "b") -> Probe:
    """Host a sends packets of these sizes, one each `gap`; what host `to` hears."""
    listener = probe_on(built, to)
    probe_on(built, "a", [(n * gap, n, size, listener_group(), n) for n, size in enumerate(sizes)], listen=False)
    built.run(until=inf)
    return listener


def listener_group() -> Any:
    """The group all probes are in."""
    from tests.sim.probes import GROUP

    return GROUP


def rate(probe: Probe, size: int) -> float:
    """Bytes per second of payload between the first and the last packet."""
    times = [when for when, _, _ in probe.heard]
    return size * (len(times) - 1) / (times[-1] - times[0])


def behind_router(**router: Any) -> Network:
    """a - router - b."""
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
    built = behind_router(mac="single", duplex="half", rate="100Mbit")
    # At twice of what it can.
    heard = flood(built, [size] * 400, size / FAST)
    tagged = wire_bytes(size, "ethernet-802.1q")
    # While packets still come in; afterwards the whole wire is free for those that go out.
    times = [when for when, _, _ in heard.heard if when < 400 * tagged / FAST]
    assert len(times) > 100
    assert size * (len(times) - 1) / (times[-1] - times[0]) == pytest.approx(size / tagged * FAST / 2, rel=0.01)


def test_a_router_with_one_mac_and_full_duplex_passes_all_one_way() -> None:
    heard = flood(behind_router(mac="single", duplex="full", rate="100Mbit"), [1472] * 100)
    assert rate(heard, 1472) == pytest.approx(1472 / 1542 * FAST, rel=1e-9)


def test_two_macs_are_not_halved() -> None:
    heard = flood(behind_router(cpu="50us"), [1472] * 100)
    assert rate(heard, 1472) == pytest.approx(1472 / 1538 * FAST, rel=1e-9)


def test_a_slow_processor_is_the_limit_and_loses_what_does_not_fit() -> None:
    built = behind_router(cpu="150us", cpu_byte="100ns", queue=10)
    heard = flood(built, [1000] * 400)
    assert rate(heard, 1000) == pytest.approx(1000 / 250e-6, rel=1e-9)
    (counts,) = built.nodes()
    assert counts.node == "g"
    assert counts.offered == 400 == counts.dropped + len(heard.heard)
    # The link brings one each 85.28 us, the processor takes one each 250 us.
    assert counts.dropped / 400 == pytest.approx(1 - 1066 * 8 / 100 / 250, abs=0.03)
