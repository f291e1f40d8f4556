"""Runs a scenario in a world: the simulator or Mininet."""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import chain
from math import inf
from typing import Any

from emu.launch import NodeReport, emulate
from experiments.content import Extent, Generated, digest_of
from experiments.metrics import Result, combine, row_of
from experiments.oversight import Oversight
from experiments.program import Job, Node, OnDisk, ReceiverProgram, SenderProgram, Sinks, accounted, in_memory
from experiments.scenario import Scenario
from experiments.seeing import Seeing
from experiments.workload import FileWorkload
from protocols.errors import UnsupportedError, UsageError
from protocols.machine import Content, Group, Source
from protocols.registry import protocol
from sim.network import Network
from sim.watch import WatchedNetwork, Watcher
from topologies.addressing import endpoint_of_group, node_id
from topologies.channels import Perfect, Recorded
from topologies.spec import Topology

__all__ = ["BACKENDS", "run"]

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


class _Cast:
    """Who takes part: a program for each host. `bytes_travel`: contents are real, and so is their SHA-256."""

    def __init__(self, scenario: Scenario, topology: Topology, group: str, bytes_travel: bool, sinks: Sinks) -> None:
        self.scenario = scenario
        self.topology = topology
        self.bytes_travel = bytes_travel
        self.works = {name: _works(scenario, name) for name in scenario.senders}
        self.sources: dict[str, list[Source]] = {}
        self.senders: dict[str, SenderProgram] = {}
        self.receivers: dict[str, ReceiverProgram] = {}
        kind, config, where = protocol(scenario.protocol.name), scenario.protocol.config, Group(group)
        for index, name in enumerate(topology.hosts):
            node = Node(kind, config, index + 1, where)
            if name in self.works:
                self.senders[name] = SenderProgram(node, self._jobs(name))
            else:
                self.receivers[name] = ReceiverProgram(node, sinks)

    def _jobs(self, sender: str) -> list[Job]:
        sources = self.sources[sender] = []
        jobs = []
        for work in self.works[sender]:
            for _ in range(work.count):
                number = len(sources)
                sources.append(self._source(work, sender, number))
                info = f"{self.scenario.name}-{sender}-{number}".encode()
                jobs.append(Job(work.at, Content(sources[-1], info)))
        return jobs

    def _source(self, work: FileWorkload, sender: str, number: int) -> Source:
        return Generated(work.size, self.scenario.seed, sender, number) if self.bytes_travel else Extent(work.size)

    def programs(self) -> Iterator[tuple[str, SenderProgram | ReceiverProgram]]:
        """Every program with the name of its host, receivers first: they listen when the first packet leaves."""
        return chain(self.receivers.items(), self.senders.items())

    def over(self) -> bool:
        """Has every sender finished?"""
        return all(sender.finished() for sender in self.senders.values())

    def result(self, backend: str, told: Mapping[str, Mapping[str, Any]], world: "_World") -> Result:
        """Put together what each node told."""
        expected: dict[tuple[int, int], tuple[int, str | None]] = {}
        for name, sources in self.sources.items():
            node = node_id(self.topology, name)
            for object_id, number in told[name].get("sent", ()):
                source = sources[number]
                expected[node, object_id] = (source.size, digest_of(source) if self.bytes_travel else None)
        rows = tuple(row_of(name, told[name], expected, self.bytes_travel) for name in self.receivers)
        submitted = len(expected) == sum(map(len, self.sources.values()))
        metrics = combine(
            rows=rows,
            senders=[told[name] for name in self.senders],
            packets=world.packets,
            octets=world.octets,
            expected=expected,
            began_at=min(work.at for work in self.scenario.workload),
        )
        return Result(
            scenario=self.scenario.name,
            digest=self.scenario.digest(),
            backend=backend,
            seed=self.scenario.seed,
            completed=submitted and all(row.equal for row in rows),
            fingerprint=world.fingerprint,
            metrics=metrics | world.metrics,
            receivers=rows,
        )


def _works(scenario: Scenario, sender: str) -> list[FileWorkload]:
    return [work for work in scenario.workload if work.sender == sender]


@dataclass(frozen=True, slots=True)
class _World:
    """What the world itself counted: what all hosts sent by kind of message, and metrics of its own."""

    fingerprint: str | None
    packets: Mapping[str, int]
    octets: Mapping[str, int]
    metrics: dict[str, Any]


def _watch(scenario: Scenario, seeing: Seeing) -> Result:
    with seeing.watchers(scenario, scenario.build_topology()) as watchers:
        return _simulate(scenario, watchers)


def _simulate(scenario: Scenario, watchers: Sequence[Watcher] = ()) -> Result:
    topology = scenario.build_topology()
    real = scenario.wire == "bytes"
    cast = _Cast(scenario, topology, scenario.workload[0].group, real, in_memory if real else accounted)
    began = time.process_time()
    make = partial(WatchedNetwork, watchers=watchers) if watchers else Network
    codec = protocol(scenario.protocol.name).codec if real else None
    network = make(topology, seed=scenario.seed, codec=codec, engine=scenario.engine)
    oversight = Oversight(scenario, network, dict(cast.programs()))
    for name, program in cast.programs():
        program.start(network.host(name))
    try:
        network.run(until=scenario.duration, over=cast.over)
    finally:
        # What led to a failure is worth seeing too.
        if isinstance(network, WatchedNetwork):
            network.end()
    told = {name: program.result() for name, program in cast.programs()}
    used = time.process_time() - began
    result = cast.result(
        "sim",
        told,
        _World(
            network.fingerprint(),
            dict(network.traffic.packets),
            dict(network.traffic.octets),
            {
                "duration": network.env.now,
                "events": network.events,
                "cpu_s": used,
                "impairments": _simulated(network),
                "faults": {},
                **oversight.metrics(told),
            },
        ),
    )
    return oversight.conclude(result, told, finished=cast.over())


_OTHERS = ("duplicate", "corrupt", "bit_errors", "mtu")
_COUNTS = ("offered", "dropped", "lost")
_RARE = ("corrupt", "marked", "duplicated")


def _simulated(network: Network) -> list[dict[str, Any]]:
    """What the simulator did on each link that does anything, with the keys of the emulator's report, and how often."""
    rows = []
    for counts in network.links():
        link = network.topology.link(counts.near, counts.far)
        row: dict[str, Any] = {"link": f"{counts.near}-{counts.far}"}
        if link.rate < inf:
            queue = link.queue if link.discipline is None else link.discipline.model_dump()
            row |= {"rate": link.rate, "queue": queue, "rate_by": "simulator"}
        if link.delay or link.jitter is not None:
            row |= {"delay": link.delay if link.jitter is None else link.jitter.model_dump(), "delay_by": "simulator"}
        if not isinstance(link.loss, Perfect):
            row |= {
                "loss": str(link.loss) if isinstance(link.loss, Recorded) else link.loss.model_dump(),
                "loss_by": "simulator",
            }
        others = {key: value for key in _OTHERS if (value := getattr(link, key))}
        if others:
            row |= {"others": others, "others_by": "simulator"}
        if len(row) > 1:
            met = asdict(counts)
            rows.append(row | {key: met[key] for key in _COUNTS} | {key: met[key] for key in _RARE if met[key]})
    return rows


def _emulate(scenario: Scenario) -> Result:
    if scenario.faults:
        raise UnsupportedError(
            f"faults: Mininet can't do {scenario.faults[0].verb!r} yet; the simulator can (--on sim), or leave the faults out"
        )
    topology = scenario.build_topology()
    cast = _Cast(scenario, topology, endpoint_of_group(scenario.workload[0].group, PORT), True, OnDisk())
    senders = set(scenario.senders)
    emulation = emulate(
        topology,
        dict(cast.programs()),
        codec=protocol(scenario.protocol.name).codec,
        port=PORT,
        duration=scenario.duration,
        over=senders.issubset,
        seed=scenario.seed,
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
        "impairments": emulation.impairments,
        "faults": {name: faults for name, node in nodes.items() if (faults := _faults(node))},
    }
    return cast.result("emu", told, _World(None, packets, octets, metrics))


def _faults(node: NodeReport) -> dict[str, Any]:
    """What went wrong at a node, without what did not."""
    found: dict[str, Any] = {key: count for key, count in node.faults.items() if count}
    return found if node.error is None else {**found, "error": node.error}


BACKENDS: dict[str, Callable[[Scenario], Result]] = {"sim": _simulate, "emu": _emulate}
