"""Run a scenario in Mininet."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from operator import itemgetter
from typing import Any

from emu.attachment import Attendant
from emu.hold import Hold
from emu.launch import Emulation, NodeReport, emulate
from emu.node_processes import ProgressCallback
from emu.packet_capture import CapturePoint
from experiments.running.authentication import node_codec
from experiments.running.emulated_faults import emulated
from experiments.running.foreign_programs import check_programs
from experiments.running.invariants import check_messages
from experiments.running.lives import join_lives, until_crash
from experiments.running.participants import Participants, WorldCounters
from experiments.running.program import OnDisk
from experiments.running.recording import Recording
from experiments.running.result import Result
from experiments.running.web_registry import WebRegistryProgram
from experiments.scenario.scenario import Scenario
from protocols.admin.registry import make_registry
from protocols.errors import UnsupportedError
from protocols.machine import Codec
from protocols.object_messaging import roles_of
from topologies.addressing import endpoint_of_group

__all__ = ["check_emulated", "emulate_scenario"]

PORT = 6003
CPU_BOUND = 0.9
"""Share of a core above which a node's result is marked."""
_SLOW = "slow_drops"


def check_emulated(scenario: Scenario) -> None:
    """Raise UnsupportedError for a scenario that only the simulator can run, or that needs programs which are not there."""
    if scenario.traffic:
        raise UnsupportedError("traffic: can't be emulated yet; leave it out or run it in the simulator")
    if scenario.emu.losses == "keyed" and scenario.protocol.spec.connected:
        raise UnsupportedError(
            f"emu.losses: value 'keyed' can't be emulated with protocol {scenario.protocol.name}, which uses TCP: "
            "the segments are the kernel's, and no two worlds send the same; losses: any"
        )
    check_programs(scenario.foreign)


def _link_codec(scenario: Scenario) -> Callable[[], Codec]:
    """Return what makes the codec by which links read packets: also those that a role carries in datagrams of its own."""
    spec = scenario.protocol.spec
    roles = (roles_of(spec)[choice.role] for choice in scenario.nodes.values() if choice.role is not None)
    make = next((role.codec for role in roles if role.divides), None)
    return spec.codec if make is None else lambda: make(spec.codec(), {}, lambda: 0.0)


def emulate_scenario(
    scenario: Scenario,
    recording: Recording | None = None,
    watch: ProgressCallback | None = None,
    hold: Hold | None = None,
    attendants: Sequence[Attendant] = (),
) -> Result:
    """Run a scenario on Mininet hosts and return its result.

    `recording` names the captures to write; `watch` is called every second with the counters of the hosts; `hold` holds the
    network before and after the session; `attendants` answer others meanwhile. NotStartedError if `hold` ends it before the
    session. UnsupportedError, before any process starts, for what this machine or the emulation can't do.
    """
    if recording is None:
        return _emulate(scenario, (), watch, hold, attendants)
    with recording.capture_points(scenario.build_topology()) as points:
        return _emulate(scenario, points, watch, hold, attendants)


def _emulate(
    scenario: Scenario,
    points: Sequence[CapturePoint],
    watch: ProgressCallback | None,
    hold: Hold | None,
    attendants: Sequence[Attendant],
) -> Result:
    check_emulated(scenario)
    topology = scenario.build_topology()
    participants = Participants(
        scenario, topology, partial(endpoint_of_group, port=PORT), True, OnDisk(), servers={make_registry: WebRegistryProgram}
    )
    keyed, protocol = scenario.emu.losses == "keyed", scenario.protocol
    emulation = emulate(
        topology,
        participants.all_programs(),
        codec=_link_codec(scenario),
        node_codec=node_codec(protocol.spec, protocol.config),
        framing=protocol.spec.framing,
        ecn=protocol.spec.uses_ecn(protocol.config),
        tcp=scenario.connections.options() if protocol.spec.connected else None,
        port=PORT,
        duration=scenario.duration,
        over=participants.senders.issubset,
        seed=scenario.seed,
        keyed=keyed,
        exact=scenario.emu.rates == "exact",
        trunk=scenario.emu.trunk,
        disk=scenario.emu.disk,
        faults=emulated(scenario.all_faults, topology, participants.foreign_hosts),
        respawn=participants.restarted,
        captures=points,
        progress=watch,
        groups={address.rpartition(":")[0]: hosts for address, hosts in participants.groups().items()},
        title=scenario.name,
        hold=hold,
        ttls=scenario.scopes,
        statistics=scenario.statistics,
        attendants=attendants,
    )
    metrics = _measured(emulation) | ({"captures": emulation.captures} if points else {})
    if keyed:
        metrics |= {"dropped_first": emulation.dropped_first, "queued_first": emulation.queued_first}
    result = participants.result("emu", _results(emulation), WorldCounters(None, *_traffic(emulation), metrics))
    if participants.ledger is not None:
        result.metrics["invariants"] = check_messages(participants.ledger)
    return result if scenario.statistics is None else replace(result, statistics=_statistics(emulation))


def _results(emulation: Emulation) -> dict[str, Mapping[str, Any]]:
    """Return the result of each node over all its lives, or its fault."""
    return {
        name: join_lives(list(map(until_crash, [*node.earlier, node.result])))
        if node.result is not None
        else {"fault": node.error}
        for name, node in emulation.nodes.items()
    }


def _statistics(emulation: Emulation) -> list[dict[str, Any]]:
    """Return the statistics that all nodes kept, in the order of their times."""
    rows = [{"time": row["time"], "host": name, **row} for name, node in emulation.nodes.items() for row in node.statistics]
    return sorted(rows, key=itemgetter("time"))


def _traffic(emulation: Emulation) -> tuple[Counter[str], Counter[str]]:
    """Return the packets and bytes that all nodes sent, by kind of message."""
    packets, octets = Counter[str](), Counter[str]()
    for node in emulation.nodes.values():
        packets.update(node.packets)
        octets.update(node.octets)
    return packets, octets


def _measured(emulation: Emulation) -> dict[str, Any]:
    nodes = emulation.nodes
    return {
        "setup": emulation.setup,
        "duration": emulation.elapsed,
        "events": None,
        "cpu_s": sum(node.cpu for node in nodes.values()),
        "peak_memory": max(node.memory for node in nodes.values()),
        "impairments": emulation.impairments,
        "nodes": emulation.node_counts,
        "health": emulation.health,
        **_processors(emulation),
        "injected": emulation.injected | _slow_drops(nodes.values()),
        "fault_log": emulation.fault_log,
        "faults": {name: faults for name, node in nodes.items() if (faults := _faults(node))},
    }


def _processors(emulation: Emulation) -> dict[str, Any]:
    """Return the work that machines stated, and the nodes whose results a busy core of this machine may have limited."""
    nodes, elapsed = emulation.nodes, emulation.elapsed
    worked = [{"host": name, "busy": node.worked} for name, node in nodes.items() if node.worked]
    # A program that publishes for a part of the run is limited in that part only.
    bound = [name for name, node in nodes.items() if node.busiest > CPU_BOUND or node.cpu > CPU_BOUND * elapsed]
    return ({"processors": worked} if worked else {}) | ({"cpu_bound": bound} if bound else {})


def _slow_drops(nodes: Iterable[NodeReport]) -> dict[str, int]:
    """Return the packets dropped at full buffers of slow applications; the emulation counts no other losses by faults."""
    dropped = sum(node.faults.get(_SLOW, 0) for node in nodes)
    return {_SLOW: dropped} if dropped else {}


def _faults(node: NodeReport) -> dict[str, Any]:
    """Return the error counters of a node that are not 0, and the error that ended it, if any."""
    found: dict[str, Any] = {key: count for key, count in node.faults.items() if count and key != _SLOW}
    return found if node.error is None else {**found, "error": node.error}
