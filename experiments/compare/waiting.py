"""State how long each protocol waits before it requests a repair: where round trips are short, this decides completion times.

The waits follow from parameters whose defaults suit different networks, and `compare` does not change them.
"""

from collections.abc import Callable, Mapping
from math import ceil, log10
from typing import Any

import networkx as nx

from experiments.scenario.protocol_choice import ProtocolChoice
from experiments.scenario.scenario import Scenario
from topologies.spec import UDP_OVERHEAD, LinkSpec, Topology
from topologies.units import format_duration

__all__ = ["longest_wait", "notes_on_waits", "round_trip_time"]

LEAST_GRTT = 1e-3
"""The smallest initial GRTT in seconds that NORM's configuration allows."""
MUCH = 4.0
"""Ratio of NORM's initial GRTT to the round-trip time of the network from which on it is pointed out."""

WAITS: dict[str, tuple[Callable[[Any], float], str]] = {
    "norm": (lambda config: config.backoff * config.grtt, "backoff x grtt"),
    "a": (lambda config: config.timeout, "timeout"),
    "n1": (lambda config: 0.0, "at once"),
    "n2": (lambda config: config.window, "window"),
    "srm": (lambda config: (config.c1 + config.c2) * config.distance, "(c1 + c2) x distance"),
}
"""Longest wait in seconds by protocol, and the parameters it follows from."""


def longest_wait(choice: ProtocolChoice) -> float | None:
    """Return the longest time in seconds from the detection of a loss to the first request; None for a protocol from outside.

    Protocol A has no requests; for it this is the time until the sender repeats a packet.
    """
    return WAITS[choice.name][0](choice.config) if choice.name in WAITS else None


def round_trip_time(scenario: Scenario) -> float:
    """Return the longest time in seconds, without queues, of a full data packet to a host and of an empty answer back."""
    topology, size = scenario.build_topology(), scenario.segment + UDP_OVERHEAD
    there = _graph(topology, lambda link: _delay(link) + size / link.rate)
    back = _graph(topology, _delay).reverse()
    longest = 0.0
    for sender in dict.fromkeys(topology.member(name).node for name in scenario.senders):
        times = [nx.single_source_dijkstra_path_length(graph, sender, weight="time") for graph in (there, back)]
        longest = max([longest, *(times[0][node] + times[1][node] for node in topology.host_nodes)])
    return longest


def _graph(topology: Topology, time: Callable[[LinkSpec], float]) -> "nx.DiGraph[str]":
    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_edges_from((near, far, {"time": time(link)}) for near, far, link in topology.links)
    return graph


def _delay(link: LinkSpec) -> float:
    return link.delay if link.jitter is None else link.jitter.sample(0.5, 0)


def notes_on_waits(scenarios: Mapping[str, Scenario]) -> list[str]:
    """Return sentences for below a comparison: the wait of each protocol, and NORM's where it does not suit the network.

    Round-trip times are those of the first scenario.
    """
    protocols = {name: scenario.protocol for name, scenario in scenarios.items()}
    known = {name: wait for name, choice in protocols.items() if (wait := longest_wait(choice)) is not None}
    if not known:
        return []
    waits = ", ".join(f"{name} {_duration(wait)} ({WAITS[protocols[name].name][1]})" for name, wait in known.items())
    trip = round_trip_time(next(iter(scenarios.values())))
    found = [f"longest wait before a repair is requested: {waits}; round-trip time of this network: {_duration(trip)}"]
    for name, choice in protocols.items():
        if choice.name == "norm":
            found += _note_on_grtt(name, choice.config, trip)
    return found


def _note_on_grtt(name: str, config: Any, trip: float) -> list[str]:
    """Return a sentence if the initial GRTT is much longer than the round-trip time and back-offs depend on it."""
    suitable = max(LEAST_GRTT, trip)
    if not config.backoff or config.grtt <= MUCH * suitable:
        return []
    times = f", {config.grtt / trip:.0f} times the round-trip time" if trip else ""
    return [
        f"{name} starts with a GRTT of {_duration(config.grtt)}{times}, and "
        "lowers it by at most 10 % at a probe; its back-offs are multiples of it, and make short transfers long; "
        f"--with {name}.grtt={_duration(suitable)} starts with a value for this network"
    ]


def _duration(seconds: float) -> str:
    """Format a duration, rounded up to two significant digits."""
    if seconds == 0:
        return "0s"
    unit = 10.0 ** (ceil(log10(seconds)) - 2)
    return format_duration(float(f"{ceil(seconds / unit - 1e-9) * unit:.3g}"))
