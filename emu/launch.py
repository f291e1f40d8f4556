"""Runs one emulation from beginning to end: a private world, the network in it, one process per host, the results."""

import gc
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from emu.crew import Crew, NodeReport
from emu.doctor import check_kernel, check_tools
from emu.guest import Guest
from emu.network import Network, plan
from emu.node import Node, Program
from emu.udp import SEGMENTS
from emu.world import inside
from protocols.errors import UsageError
from protocols.machine import Codec
from topologies.spec import Topology

__all__ = ["Emulation", "NodeReport", "emulate"]


@dataclass(frozen=True, slots=True)
class Emulation:
    """Reports by node, what did the impairing on each link, seconds from time 0 to the end, and whether `over` ended it."""

    nodes: dict[str, NodeReport]
    impairments: list[dict[str, Any]]
    elapsed: float
    over: bool


def emulate(
    topology: Topology,
    programs: Mapping[str, Program | Guest],
    *,
    codec: Callable[[], Codec],
    port: int,
    duration: float,
    over: Callable[[set[str]], bool],
    seed: int,
    ttl: int = 1,
) -> Emulation:
    """Run a program on each named host until `over` says so of the names that are finished, or for `duration` seconds.

    Raises UnsupportedError before anything is started when this machine can't do it. A node that dies does not end the run;
    its report says what happened.
    """
    for name in programs:
        topology.member(name)
    if not programs:
        raise UsageError("an emulation needs a program on at least one host")
    planned = plan(topology)
    check_tools()

    def work() -> dict[str, Any]:
        check_kernel(planned.features)
        network = Network(planned)
        crew = Crew(programs)
        guests = any(isinstance(program, Guest) for program in programs.values())
        # The children share this process's memory as long as nobody touches it, the collector included.
        gc.freeze()
        for name in programs:
            # What guests send and hear is counted on the wire, where packets have to be seen one by one.
            burst = 1 if guests or planned.shaped(name) else SEGMENTS
            crew.fork(Node(name, network.pid(name), planned.addresses[name], codec, port, ttl, burst, seed))
        elapsed, ended = crew.run(duration, over)
        return asdict(Emulation(crew.reports, planned.report(), elapsed, ended))

    answer = inside(work)
    answer["nodes"] = {name: NodeReport(**report) for name, report in answer["nodes"].items()}
    return Emulation(**answer)
