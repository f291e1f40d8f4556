"""Runs one emulation from beginning to end: a private world, the network in it, one process per host, the results."""

import gc
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from emu.capture import Capture, CapturePoint
from emu.doctor import check_kernel, check_tools, run
from emu.faults import Fault, Faults
from emu.foreign_program import ForeignProgram
from emu.health import judged, kernel_drops
from emu.netem import examine_netem
from emu.network import Network
from emu.node import Node, Program, prefer
from emu.node_processes import NodeProcesses, NodeReport, Watch
from emu.plan import Plan, plan
from emu.tap import check_tap
from emu.trunk import TrunkChoice, choose_trunk
from emu.udp import SEGMENTS
from emu.world import inside
from protocols.errors import UnsupportedError, UsageError
from protocols.machine import Codec
from topologies.keys import stream_key
from topologies.spec import Topology

__all__ = ["Emulation", "NodeReport", "emulate"]


@dataclass(frozen=True, slots=True)
class Emulation:
    """Reports by node, what did the impairing on each link, seconds to build it all, seconds from time 0 to the end, and
    whether `over` ended it.

    `health` says whether the links kept up (`emu.health.judged`). `dropped_first` has the identities of first transmissions
    that links in user space lost or damaged, by link as `near-far` and in ascending order; `queued_first` what queues dropped.
    `injected` counts the faults by verb, and `fault_log` says when they began and ended. `captures` counts packets
    by capture point: those written, and those `unseen`, for which the kernel had no room.
    """

    nodes: dict[str, NodeReport]
    impairments: list[dict[str, Any]]
    setup: float
    elapsed: float
    over: bool
    health: dict[str, Any]
    dropped_first: dict[str, list[int]]
    queued_first: dict[str, list[int]]
    injected: dict[str, int]
    fault_log: list[dict[str, Any]]
    captures: dict[str, dict[str, int]]


def emulate(
    topology: Topology,
    programs: Mapping[str, Program | ForeignProgram],
    *,
    codec: Callable[[], Codec],
    port: int,
    duration: float,
    over: Callable[[set[str]], bool],
    seed: int,
    groups: Mapping[str, Sequence[str]] | None = None,
    ttls: Mapping[str, int] | None = None,
    keyed: bool = False,
    faults: Sequence[Fault] = (),
    again: Callable[[str, int], Program | ForeignProgram] | None = None,
    captures: Sequence[CapturePoint] = (),
    watch: Watch | None = None,
    trunk: TrunkChoice = "any",
) -> Emulation:
    """Run a program on each named host until `over` says so of the names that are finished, or for `duration` seconds.

    `groups` are IPv4 addresses with the hosts that send to them or listen: routers carry only these, and all are tried before.
    `ttls` are those of hosts whose multicasts do not go everywhere. `again` gives the program of a host that crashed so often
    before. `watch` is told what every node counted, every second, within the process that runs the emulation.
    `trunk` says how the networks of a router with one MAC share a cable.

    Raises UnsupportedError before anything is started when this machine can't do it. A node that dies does not end the run;
    its report says what happened. With `keyed` all losses are those of the simulator with this `seed`, packet by packet.
    """
    _check_programs(topology, programs)
    check_tools()
    way = choose_trunk(topology, trunk)
    planned = plan(topology, groups, ttls, seed=seed, keyed=keyed, trunk=way)
    if planned.beyond_kernel and not keyed and (netem := examine_netem()) != "none":
        planned = plan(topology, groups, ttls, seed=seed, netem=netem, trunk=way)

    script = _Script(topology, planned, programs, codec, port, duration, over, seed, faults, again, captures, watch)
    answer = inside(script.play)
    answer["nodes"] = {name: NodeReport(**report) for name, report in answer["nodes"].items()}
    return Emulation(**answer)


@dataclass(frozen=True, slots=True)
class _Script:
    """What happens within the private world."""

    topology: Topology
    planned: Plan
    programs: Mapping[str, Program | ForeignProgram]
    codec: Callable[[], Codec]
    port: int
    duration: float
    over: Callable[[set[str]], bool]
    seed: int
    faults: Sequence[Fault]
    again: Callable[[str, int], Program | ForeignProgram] | None
    captures: Sequence[CapturePoint]
    watch: Watch | None

    def play(self) -> dict[str, Any]:
        """Build it, run it, and tell the fields of an Emulation."""
        began = time.monotonic()
        self._check_kernel()
        network = Network(self.planned, self.codec)
        crew = NodeProcesses(self.programs, self.again)
        capture = _open_capture(self.captures, network, self.programs)
        self._fork(crew, network)
        # Faults are to be in time, too.
        prefer()
        happening = Faults(self.faults, network, crew)
        if self.watch is not None:
            crew.look_on(self.watch)
        before, setup = kernel_drops(), time.monotonic() - began
        elapsed, ended = crew.run(self.duration, self.over, None if capture is None else capture.begin)
        crowded = kernel_drops() - before
        captured = {} if capture is None else capture.end()
        carried = network.collect()
        impairments = [{**row, **carried.counts.get(row.get("link", ""), {})} for row in self.planned.report()]
        missed = sum(report.faults.get("receive_drops", 0) for report in crew.reports.values())
        lost = (judged(carried, missed, crowded), carried.dropped, carried.queued)
        return asdict(
            Emulation(crew.reports, impairments, setup, elapsed, ended, *lost, dict(happening.counts), happening.log, captured)
        )

    def _check_kernel(self) -> None:
        check_kernel([*self.planned.features, *(feature for fault in self.faults for feature in fault.needs)])
        if self.planned.beyond_kernel:
            check_tap(self.planned.beyond_kernel)

    def _fork(self, crew: NodeProcesses, network: Network) -> None:
        planned, joining = self.planned, self.topology.multicast.join
        seen = (
            bool(self.captures)
            or bool(self.faults)
            or any(isinstance(program, ForeignProgram) for program in self.programs.values())
        )
        # The children share this process's memory as long as nobody touches it, the collector included.
        gc.freeze()
        for name in self.programs:
            # What is captured, counted for a guest or lost by a fault has to be seen packet by packet.
            burst = 1 if seen or planned.shaped(name) else SEGMENTS
            address, ttl, dice = planned.addresses[name], planned.ttl(name), stream_key(self.topology, self.seed, name)
            crew.fork(Node(name, network.pid(name), address, self.codec, self.port, ttl, burst, dice, joining=joining))


def _check_programs(topology: Topology, programs: Mapping[str, Program | ForeignProgram]) -> None:
    for name in programs:
        topology.member(name)
    if not programs:
        raise UsageError("an emulation needs a program on at least one host")
    if topology.multicast.join and any(isinstance(program, ForeignProgram) for program in programs.values()):
        raise UnsupportedError("multicast.join: a foreign program can't be kept from what it joined; leave it out")


def _open_capture(points: Sequence[CapturePoint], network: Network, hosts: Iterable[str]) -> Capture | None:
    """Begin to listen, if there is anything to capture; hosts then compute the checksums of what they send."""
    if not points:
        return None
    for host in hosts:
        device, pid = network.port(host)
        run(f"ethtool -K {device} tx off", pid=pid)
    return Capture(points, network)
