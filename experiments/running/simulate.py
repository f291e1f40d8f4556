"""Run a scenario in the simulator."""

import gc
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from functools import cache, partial
from math import ceil
from typing import Any

from experiments.running.authentication import simulated_codec
from experiments.running.instruments import Instruments
from experiments.running.participants import Participants, WorldCounters
from experiments.running.program import accounted, in_memory
from experiments.running.recording import Recording
from experiments.running.result import Result
from experiments.running.run_progress import RunProgress
from experiments.scenario.fault_schedule import DecisionWatcher
from experiments.scenario.scenario import Scenario
from protocols.errors import UnsupportedError
from protocols.machine import Codec, Group
from sim.network import Network
from sim.watch import WatchedNetwork, Watcher
from topologies.impairments import impairment
from topologies.spec import Topology

__all__ = ["check_simulated", "simulate", "simulate_recorded"]


FIRST_THRESHOLD, NO_FULL_COLLECTION = 50_000, 1 << 30


def simulate_recorded(scenario: Scenario, recording: Recording | None = None, progress: RunProgress | None = None) -> Result:
    """Run a scenario in the simulator and write the files that `recording` names."""
    if recording is None:
        return simulate(scenario, progress=progress)
    with recording.watchers(scenario, scenario.build_topology()) as records:
        result = simulate(scenario, records.watchers, progress)
    result.metrics.update(records.metrics())
    return result


def simulate(scenario: Scenario, watchers: Sequence[Watcher] = (), progress: RunProgress | None = None) -> Result:
    """Run a scenario in the simulator; `watchers` are called at events of links and hosts, `progress` follows it.

    UnsupportedError for foreign programs.
    """
    check_simulated(scenario)
    with _without_full_collections():
        return _simulate(scenario, watchers, progress)


@cache
def _move_to_oldest_generation() -> None:
    """Move all objects to the oldest generation of the garbage collector, which is not searched during a run.

    Once in a process: later runs leave few objects in the others, and `get_freeze_count` takes 20 ms for a million objects.
    """
    if not gc.get_freeze_count():
        gc.freeze()
        gc.unfreeze()


@contextmanager
def _without_full_collections() -> Iterator[None]:
    """Search only objects that the run makes for cycles, and of them only the young ones.

    A search of all objects of a million hosts takes seconds, in which no signal is handled; and a run makes hardly a cycle.
    """
    _move_to_oldest_generation()
    thresholds = gc.get_threshold()
    gc.set_threshold(max(thresholds[0], FIRST_THRESHOLD), thresholds[1], NO_FULL_COLLECTION)
    try:
        yield
    finally:
        # Else the next object made would begin a full collection, while an interrupted run is left.
        gc.collect(1)
        gc.set_threshold(*thresholds)


def _simulate(scenario: Scenario, watchers: Sequence[Watcher], progress: RunProgress | None) -> Result:
    topology = scenario.build_topology()
    real, codec = scenario.wire == "bytes", simulated_codec(scenario.protocol.spec, scenario.protocol.config)
    participants = Participants(
        scenario, topology, str, real, in_memory if real else accounted, fast=scenario.engine != "strict", packets=codec
    )
    began = time.process_time()
    decisions = DecisionWatcher(scenario.faults) if any(fault.when for fault in scenario.faults) else None
    if decisions is not None:
        watchers = [*watchers, decisions]
    network = _network(scenario, topology, codec if real else None, watchers, participants.groups())
    instruments = Instruments(
        scenario, network, dict(participants.programs()), participants.machine_programs(), participants.parties, decisions
    )
    for name, program in participants.programs():
        program.start(network.host(name))
    if progress is not None:
        progress.begin(network, instruments.storm)
    try:
        statistics = _run(network, scenario, partial(participants.over, instruments.failed))
    finally:
        # After an error, the records up to it are completed as well.
        if isinstance(network, WatchedNetwork):
            network.end()
    results = {name: program.result() for name, program in participants.programs()}
    parts = participants.parts(results)
    used = time.process_time() - began
    result = participants.result(
        "sim",
        results,
        WorldCounters(
            network.fingerprint(),
            dict(network.traffic.packets),
            dict(network.traffic.octets),
            _measured(network, used) | instruments.metrics(parts),
        ),
    )
    concluded = instruments.conclude(
        result, parts, participants.ledger, participants.over(instruments.failed), participants.ledger_at
    )
    return replace(concluded, statistics=statistics)


def _run(network: Network, scenario: Scenario, over: Callable[[], bool]) -> list[dict[str, Any]] | None:
    """Run the network until it is `over`; return the statistics of all hosts at the scenario's interval, and at the end."""
    interval, duration, rows = scenario.statistics, scenario.duration, list[dict[str, Any]]()
    if interval is None:
        network.run(until=duration, over=over)
        return None
    for step in range(1, ceil(duration / interval) + 1):
        network.run(until=min(step * interval, duration), over=over)
        for name in network.topology.hosts:
            rows.append({"time": network.now, "host": name, "statistics": network.host(name).snapshot().plain()})
        if over():
            break
    return rows


def _network(
    scenario: Scenario,
    topology: Topology,
    codec: Callable[[], Codec] | None,
    watchers: Sequence[Watcher],
    groups: Mapping[str, Collection[str]],
) -> Network:
    """Build the network of a scenario; `codec` is for messages that are encoded on the way, `groups` are hosts by address."""
    make = partial(WatchedNetwork, watchers=watchers) if watchers else Network
    network = make(
        topology,
        seed=scenario.seed,
        codec=codec,
        engine=scenario.engine,
        connections=scenario.connections.options(),
        framing=scenario.protocol.spec.framing,
    )
    for host, ttl in scenario.scopes.items():
        network.limit_scope(host, ttl)
    for address, hosts in groups.items():
        network.confine(Group(address), hosts)
    return network


def check_simulated(scenario: Scenario) -> None:
    """Raise UnsupportedError for a scenario with foreign programs."""
    for name in scenario.foreign:
        raise UnsupportedError(
            f"nodes.{name}.run: the simulator runs mcastlab's own programs only; leave it out, or use --on emu"
        )


def _measured(network: Network, cpu: float) -> dict[str, Any]:
    """Return the metrics of the network, by the names the emulation uses; `cpu` is the CPU time of the run in seconds."""
    return {
        "duration": network.env.now,
        "events": network.events,
        "cpu_s": cpu,
        "peak_memory": None,
        "impairments": _simulated(network),
        "nodes": [asdict(counts) for counts in network.nodes()],
        "faults": {},
        **_processors(network),
    }


def _processors(network: Network) -> dict[str, Any]:
    """Return what the processors did of hosts whose machines stated work."""
    now = network.env.now
    rows = [asdict(counts) | {"utilisation": counts.busy / now if now else 0.0} for counts in network.processors()]
    return {"processors": rows} if rows else {}


_COUNTS = ("offered", "dropped", "lost")
_RARE = ("corrupt", "marked", "duplicated")


def _simulated(network: Network) -> list[dict[str, Any]]:
    """Return parameters and counters of each impaired link, by the keys of the emulation's report."""
    rows = []
    for counts in network.links():
        link = network.topology.link(counts.near, counts.far)
        row = impairment(f"{counts.near}-{counts.far}", link, "simulator")
        if len(row) > 1:
            met = asdict(counts)
            rows.append(row | {key: met[key] for key in _COUNTS} | {key: met[key] for key in _RARE if met[key]})
    return rows
