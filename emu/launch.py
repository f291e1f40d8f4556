"""Runs one emulation from beginning to end: a private world, the network in it, one process per host, the results."""

import gc
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from emu.crew import Crew, NodeReport
from emu.doctor import check_kernel, check_tools
from emu.guest import Guest
from emu.health import judged
from emu.netem import examine_netem
from emu.network import Network
from emu.node import Node, Program
from emu.plan import plan
from emu.tap import check_tap
from emu.udp import SEGMENTS
from emu.world import inside
from protocols.errors import UsageError
from protocols.machine import Codec
from topologies.spec import Topology

__all__ = ["Emulation", "NodeReport", "emulate"]


@dataclass(frozen=True, slots=True)
class Emulation:
    """Reports by node, what did the impairing on each link, seconds from time 0 to the end, and whether `over` ended it.

    `health` says whether the links kept up (`emu.health.judged`). `dropped_first` has the identities of first transmissions
    that links in user space lost or damaged, by link as `near-far` and in ascending order; `queued_first` what queues dropped.
    """

    nodes: dict[str, NodeReport]
    impairments: list[dict[str, Any]]
    elapsed: float
    over: bool
    health: dict[str, Any]
    dropped_first: dict[str, list[int]]
    queued_first: dict[str, list[int]]


def emulate(
    topology: Topology,
    programs: Mapping[str, Program | Guest],
    *,
    codec: Callable[[], Codec],
    port: int,
    duration: float,
    over: Callable[[set[str]], bool],
    seed: int,
    groups: Mapping[str, Sequence[str]] | None = None,
    ttls: Mapping[str, int] | None = None,
    keyed: bool = False,
) -> Emulation:
    """Run a program on each named host until `over` says so of the names that are finished, or for `duration` seconds.

    `groups` are IPv4 addresses with the hosts that send to them or listen: routers carry only these, and all are tried before.
    `ttls` are those of hosts whose multicasts do not go everywhere.

    Raises UnsupportedError before anything is started when this machine can't do it. A node that dies does not end the run;
    its report says what happened. With `keyed` all losses are those of the simulator with this `seed`, packet by packet.
    """
    for name in programs:
        topology.member(name)
    if not programs:
        raise UsageError("an emulation needs a program on at least one host")
    check_tools()
    planned = plan(topology, groups, ttls, seed=seed, keyed=keyed)
    if planned.beyond_kernel and not keyed and (netem := examine_netem()) != "none":
        planned = plan(topology, groups, ttls, seed=seed, netem=netem)

    def work() -> dict[str, Any]:
        check_kernel(planned.features)
        if planned.beyond_kernel:
            check_tap(planned.beyond_kernel)
        network = Network(planned, codec)
        crew = Crew(programs)
        guests = any(isinstance(program, Guest) for program in programs.values())
        # The children share this process's memory as long as nobody touches it, the collector included.
        gc.freeze()
        for name in programs:
            # What guests send and hear is counted on the wire, where packets have to be seen one by one.
            burst = 1 if guests or planned.shaped(name) else SEGMENTS
            crew.fork(Node(name, network.pid(name), planned.addresses[name], codec, port, planned.ttl(name), burst, seed))
        elapsed, ended = crew.run(duration, over)
        carried = network.collect()
        impairments = [{**row, **carried.counts.get(row.get("link", ""), {})} for row in planned.report()]
        health = judged(carried, sum(report.faults.get("receive_drops", 0) for report in crew.reports.values()))
        return asdict(Emulation(crew.reports, impairments, elapsed, ended, health, carried.dropped, carried.queued))

    answer = inside(work)
    answer["nodes"] = {name: NodeReport(**report) for name, report in answer["nodes"].items()}
    return Emulation(**answer)
