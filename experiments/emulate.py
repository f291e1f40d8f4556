"""Runs a scenario in Mininet."""

from collections import Counter
from functools import partial
from typing import Any

from emu.launch import NodeReport, emulate
from experiments.cast import Cast, World
from experiments.guests import require
from experiments.metrics import Result
from experiments.program import OnDisk
from experiments.scenario import Scenario
from experiments.seeing import Seeing
from experiments.simulate import codec_of
from protocols.errors import UnsupportedError
from topologies.addressing import endpoint_of_group

__all__ = ["emulate_scenario"]

PORT = 6003


def _refuse(scenario: Scenario) -> None:
    """What only the simulator can do yet."""
    if scenario.traffic:
        raise UnsupportedError("traffic: can't be emulated yet; leave it out or run it in the simulator")


def emulate_scenario(scenario: Scenario, seeing: Seeing | None = None) -> Result:
    """Run it on Mininet hosts. UnsupportedError for what this machine or emulation can't do, before anything is started."""
    if seeing is not None:
        raise UnsupportedError("capture, trace and series: only the simulator writes them; leave them out, or use --on sim")
    if scenario.faults:
        raise UnsupportedError(
            f"faults: Mininet can't do {scenario.faults[0].verb!r} yet; the simulator can (--on sim), or leave the faults out"
        )
    _refuse(scenario)
    require(scenario.foreign)
    topology = scenario.build_topology()
    cast = Cast(scenario, topology, partial(endpoint_of_group, port=PORT), True, OnDisk())
    keyed = scenario.emu.losses == "keyed"
    emulation = emulate(
        topology,
        cast.crew(),
        codec=codec_of(scenario),
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
