"""Benchmark cases besides the star: networks and traffic in which fewer deliveries can be grouped."""

from typing import Any

from benchmarks.yardsticks import Measure, bare_loop, best, timed
from experiments.running.participants import Participants
from experiments.running.program import accounted
from experiments.scenario.scenario import parse
from sim.network import Network

__all__ = ["CASES", "measure_cases"]

_LINK = {"rate": "100Mbit", "delay": "5ms"}
_LOSSY = {**_LINK, "down": {"loss": "1%"}}
_NORM = {"name": "norm", "rate": "10Mbit", "grtt": "100ms", "gsize": 100, "parity": 16}

CASES: dict[str, tuple[int, dict[str, Any]]] = {
    "many senders": (
        300_000,
        {
            "topology": {"kind": "lan", "receivers": 50, "link": _LOSSY},
            "workload": [{"from": name} for name in ("sender", *(f"r{n}" for n in range(1, 8)))],
        },
    ),
    "cross traffic": (
        1_500_000,
        {
            "topology": {
                "kind": "dumbbell",
                "receivers": 50,
                "pairs": 2,
                "link": _LOSSY,
                "bottleneck": {"rate": "20Mbit", "delay": "5ms", "queue": 100},
            },
            "workload": [{"from": "sender"}],
            "traffic": [
                {"kind": "poisson", "from": "x1", "to": "y1", "rate": "3Mbit", "size": 700},
                {"kind": "aimd", "from": "x2", "to": "y2"},
            ],
        },
    ),
    "random tree": (
        1_500_000,
        {
            "topology": {"kind": "waxman", "seed": 1, "switches": 20, "receivers": 5, "trunk": _LINK, "link": _LOSSY},
            "workload": [{"from": "sender"}],
        },
    ),
    "multicast NACKs": (
        1_500_000,
        {
            "topology": {"kind": "star", "receivers": 1000, "trunk": {**_LINK, "down": {"loss": "3%"}}, "link": _LINK},
            "protocol": {**_NORM, "gsize": 10, "parity": 0},
            "workload": [{"from": "sender"}],
        },
    ),
}
"""Bytes that each sender sends, and the scenario, of each case."""


def measure_cases(share: float = 1.0, times: int = 3) -> dict[str, dict[str, float]]:
    """Return for each case nanoseconds per delivery, SimPy events per packet, and the ratio to a bare loop.

    `share` scales the content, `times` is the number of runs, of which the fastest counts.
    """
    bare = best(bare_loop, 100, 2000)
    found = {}
    for name, (size, data) in CASES.items():
        known = min((measure(name, data, round(size * share)) for _ in range(times)), key=lambda one: one.each)
        found[name] = {
            "ns_per_delivery": round(known.each * 1e9, 1),
            "events_per_packet": round(known.events / known.packets, 2),
            "deliveries_per_packet": round(known.deliveries / known.packets, 1),
            "ratio_bare_loop": round(known.each / bare.each, 1),
        }
    return found


def measure(name: str, data: dict[str, Any], size: int) -> Measure:
    """Run a case once; asserts that every receiver gets everything."""
    work = [{"kind": "file", "size": size, **one} for one in data["workload"]]
    common = {"name": name.replace(" ", "-"), "seed": 1, "protocol": _NORM, "duration": "600s"}
    scenario = parse({**common, **data, "workload": work}, name)
    topology = scenario.build_topology()
    participants = Participants(scenario, topology, str, False, accounted, fast=True)
    network = Network(topology, seed=scenario.seed)
    for host, program in participants.programs():
        program.start(network.host(host))
    cpu = timed(lambda: network.run(until=scenario.duration, over=participants.over))
    assert participants.over(), f"{name} did not end"
    return Measure(cpu, network.deliveries, network.events, sum(network.traffic.packets.values()))
