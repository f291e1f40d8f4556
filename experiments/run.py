"""Runs a scenario in a world: the simulator or Mininet."""

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

from emu.launch import NodeReport, emulate
from experiments.cast import Cast, World
from experiments.metrics import Result
from experiments.oversight import Oversight
from experiments.program import OnDisk, accounted, in_memory
from experiments.scenario import Scenario
from experiments.seeing import Seeing
from protocols.cross import Mixed
from protocols.errors import UnsupportedError, UsageError
from protocols.machine import Codec
from protocols.registry import protocol
from sim.network import Network
from sim.watch import WatchedNetwork, Watcher
from topologies.addressing import endpoint_of_group
from topologies.impairments import impairment

__all__ = ["BACKENDS", "run", "simulate"]

PORT = 6003


def run(scenario: Scenario, backend: str = "sim", seeing: Seeing | None = None) -> Result:
    """Run the scenario and say what came out. It is over when every sender is finished, or at its `duration`.

    `seeing` says what is written down meanwhile, which only the simulator can. UsageError for an unknown backend,
    UnsupportedError when this machine can't do what the scenario asks.
    """
    if backend not in BACKENDS:
        raise UsageError(f"backend: {backend!r} is not allowed; one of {', '.join(BACKENDS)}")
    if seeing is None:
        return BACKENDS[backend](scenario)
    if backend != "sim":
        raise UnsupportedError("capture, trace and series: only the simulator writes them; leave them out, or use --on sim")
    return _watch(scenario, seeing)


def _watch(scenario: Scenario, seeing: Seeing) -> Result:
    with seeing.watchers(scenario, scenario.build_topology()) as watchers:
        return simulate(scenario, watchers)


def simulate(scenario: Scenario, watchers: Sequence[Watcher] = ()) -> Result:
    """Run the scenario in the simulator, with watchers looking on."""
    topology = scenario.build_topology()
    real = scenario.wire == "bytes"
    cast = Cast(scenario, topology, str, real, in_memory if real else accounted)
    began = time.process_time()
    make = partial(WatchedNetwork, watchers=watchers) if watchers else Network
    network = make(topology, seed=scenario.seed, codec=_codec(scenario) if real else None, engine=scenario.engine)
    for work in scenario.workload:
        if work.ttl is not None:
            network.limit_scope(work.sender, work.ttl)
    oversight = Oversight(scenario, network, dict(cast.programs()), cast.players())
    for name, program in cast.programs():
        program.start(network.host(name))
    try:
        network.run(until=scenario.duration, over=cast.over)
    finally:
        # What led to a failure is worth seeing too.
        if isinstance(network, WatchedNetwork):
            network.end()
    told = {name: program.result() for name, program in cast.programs()}
    parts = cast.parts(told)
    used = time.process_time() - began
    result = cast.result(
        "sim",
        told,
        World(
            network.fingerprint(),
            dict(network.traffic.packets),
            dict(network.traffic.octets),
            _measured(network, used) | oversight.metrics(parts),
        ),
    )
    return oversight.conclude(result, parts, finished=cast.over())


def _measured(network: Network, cpu: float) -> dict[str, Any]:
    """What a simulated network came to, under the names the emulation uses; `cpu` seconds were spent."""
    return {
        "duration": network.env.now,
        "events": network.events,
        "cpu_s": cpu,
        "peak_memory": None,
        "impairments": _simulated(network),
        "nodes": [asdict(counts) for counts in network.nodes()],
        "faults": {},
    }


_COUNTS = ("offered", "dropped", "lost")
_RARE = ("corrupt", "marked", "duplicated")


def _codec(scenario: Scenario) -> Callable[[], Codec]:
    """Of the protocol, and of cross traffic where there is some."""
    codec = protocol(scenario.protocol.name).codec
    return (lambda: Mixed(codec())) if scenario.traffic else codec


def _simulated(network: Network) -> list[dict[str, Any]]:
    """What the simulator did on each link that does anything, with the keys of the emulator's report, and how often."""
    rows = []
    for counts in network.links():
        link = network.topology.link(counts.near, counts.far)
        row = impairment(f"{counts.near}-{counts.far}", link, "simulator")
        if len(row) > 1:
            met = asdict(counts)
            rows.append(row | {key: met[key] for key in _COUNTS} | {key: met[key] for key in _RARE if met[key]})
    return rows


def _refuse(scenario: Scenario) -> None:
    """What only the simulator can do yet."""
    for key in ("traffic", "receivers"):
        if getattr(scenario, key):
            raise UnsupportedError(f"{key}: can't be emulated yet; leave it out or run it in the simulator")


def _emulate(scenario: Scenario) -> Result:
    if scenario.faults:
        raise UnsupportedError(
            f"faults: Mininet can't do {scenario.faults[0].verb!r} yet; the simulator can (--on sim), or leave the faults out"
        )
    topology = scenario.build_topology()
    _refuse(scenario)
    cast = Cast(scenario, topology, partial(endpoint_of_group, port=PORT), True, OnDisk())
    keyed = scenario.emu.losses == "keyed"
    emulation = emulate(
        topology,
        dict(cast.programs()),
        codec=_codec(scenario),
        port=PORT,
        duration=scenario.duration,
        over=cast.senders.issubset,
        seed=scenario.seed,
        keyed=keyed,
        groups=cast.groups(),
        ttls={work.sender: work.ttl for work in scenario.workload if work.ttl is not None},
    )
    nodes = emulation.nodes
    told = {name: node.result if node.result is not None else {"fault": node.error} for name, node in nodes.items()}
    packets, octets = Counter[str](), Counter[str]()
    for node in nodes.values():
        packets.update(node.packets)
        octets.update(node.octets)
    metrics = {
        "duration": emulation.elapsed,
        "events": None,
        "cpu_s": sum(node.cpu for node in nodes.values()),
        "peak_memory": max(node.memory for node in nodes.values()),
        "impairments": emulation.impairments,
        "health": emulation.health,
        **({"dropped_first": emulation.dropped_first, "queued_first": emulation.queued_first} if keyed else {}),
        "faults": {name: faults for name, node in nodes.items() if (faults := _faults(node))},
    }
    return cast.result("emu", told, World(None, packets, octets, metrics))


def _faults(node: NodeReport) -> dict[str, Any]:
    """What went wrong at a node, without what did not."""
    found: dict[str, Any] = {key: count for key, count in node.faults.items() if count}
    return found if node.error is None else {**found, "error": node.error}


BACKENDS: dict[str, Callable[[Scenario], Result]] = {"sim": simulate, "emu": _emulate}
