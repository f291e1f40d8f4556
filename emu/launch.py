"""Runs one emulation from beginning to end: a private world, the network in it, one process per host, the results."""

import gc
import json
import os
import selectors
import signal
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from math import inf
from typing import Any

from emu.doctor import check_kernel, check_tools
from emu.health import judged
from emu.network import Network
from emu.node import Node, Program, fork_node
from emu.plan import plan
from emu.tap import check_tap
from emu.udp import SEGMENTS
from emu.world import inside
from protocols.errors import UsageError
from protocols.machine import Codec
from topologies.spec import Topology

__all__ = ["Emulation", "NodeReport", "emulate"]

_LEAD = 0.05
"""From the order to begin until the common time 0, so that every node has heard it."""
_PATIENCE = 30.0
"""How long nodes may take to get ready, and to report at the end."""


@dataclass(slots=True)
class NodeReport:
    """What one node came to: its program's `result` (None if it died, then `error` says how), what it sent by kind of
    message, faults as `UdpHost.faults`, CPU seconds, the most bytes resident."""

    result: dict[str, Any] | None = None
    packets: dict[str, int] = field(default_factory=dict)
    octets: dict[str, int] = field(default_factory=dict)
    faults: dict[str, int] = field(default_factory=dict)
    cpu: float = 0.0
    memory: int = 0
    error: str | None = None


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
    programs: Mapping[str, Program],
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
    planned = plan(topology, groups, ttls, seed=seed, keyed=keyed)
    check_tools()

    def work() -> dict[str, Any]:
        check_kernel(planned.features)
        if planned.beyond_kernel:
            check_tap(planned.beyond_kernel)
        network = Network(planned, codec)
        launcher = _Launcher(programs)
        # The children share this process's memory as long as nobody touches it, the collector included.
        gc.freeze()
        for name in programs:
            burst = 1 if planned.shaped(name) else SEGMENTS
            launcher.fork(Node(name, network.pid(name), planned.addresses[name], codec, port, planned.ttl(name), burst, seed))
        elapsed, ended = launcher.run(duration, over)
        carried = network.collect()
        impairments = [{**row, **carried.counts.get(row.get("link", ""), {})} for row in planned.report()]
        health = judged(carried, sum(report.faults.get("receive_drops", 0) for report in launcher.reports.values()))
        return asdict(Emulation(launcher.reports, impairments, elapsed, ended, health, carried.dropped, carried.queued))

    answer = inside(work)
    answer["nodes"] = {name: NodeReport(**report) for name, report in answer["nodes"].items()}
    return Emulation(**answer)


@dataclass(slots=True)
class _Child:
    """A node as the launcher sees it."""

    pid: int
    line: socket.socket
    heard: bytes = b""
    state: str = "new"
    """new, ready, finished, reported or dead."""


class _Launcher:
    """The runner inside the world: everything the nodes say comes through one selector."""

    def __init__(self, programs: Mapping[str, Program]) -> None:
        self._programs = programs
        self._children: dict[str, _Child] = {}
        self.reports = {name: NodeReport() for name in programs}
        self._selector = selectors.DefaultSelector()

    def fork(self, node: Node) -> None:
        """Start the process of a node; it gets ready and waits."""
        ours, theirs = socket.socketpair()
        pid = fork_node(node, self._programs[node.name], theirs)
        theirs.close()
        self._children[node.name] = _Child(pid, ours)
        self._selector.register(ours, selectors.EVENT_READ, node.name)

    def run(self, duration: float, over: Callable[[set[str]], bool]) -> tuple[float, bool]:
        """Begin together, wait, stop, collect: seconds it took, and whether `over` ended it."""
        self._listen(time.monotonic() + _PATIENCE, lambda: not self._named("new"))
        epoch = time.monotonic() + _LEAD
        self._order({"begin": epoch})
        ended = self._listen(epoch + duration, lambda: over(self._named("finished")))
        elapsed = time.monotonic() - epoch
        self._order({"stop": True})
        self._listen(time.monotonic() + _PATIENCE, lambda: not self._living())
        for name in self._living():
            self._bury(name, "did not report in time")
        return elapsed, ended

    def _named(self, state: str) -> set[str]:
        return {name for name, child in self._children.items() if child.state == state}

    def _living(self) -> set[str]:
        return {name for name, child in self._children.items() if child.state not in ("reported", "dead")}

    def _listen(self, until: float, done: Callable[[], bool]) -> bool:
        """Hear the nodes until `done()` or the time `until`; was it `done`?"""
        while not done():
            left = until - time.monotonic()
            if left <= 0 or not self._living():
                return False
            for key, _ in self._selector.select(None if left == inf else left):
                self._hear(key.data)
        return True

    def _order(self, order: dict[str, Any]) -> None:
        for name in sorted(self._living()):
            try:
                self._children[name].line.sendall(json.dumps(order).encode() + b"\n")
            except (BrokenPipeError, ConnectionResetError):
                self._bury(name, "died")

    def _hear(self, name: str) -> None:
        child = self._children[name]
        data = child.line.recv(1 << 16)
        if not data:
            self._bury(name, "died")
            return
        *lines, child.heard = (child.heard + data).split(b"\n")
        for line in lines:
            self._understand(name, json.loads(line))

    def _understand(self, name: str, message: dict[str, Any]) -> None:
        child, report = self._children[name], self.reports[name]
        if "ready" in message:
            child.state = "ready"
        elif "finished" in message:
            child.state = "finished"
        else:
            child.state = "reported"
            report.result, report.error = message.get("result"), message.get("error")
            report.faults, report.cpu = message.get("faults", {}), message.get("cpu", 0.0)
            report.memory = message.get("memory", 0)
            traffic = message.get("traffic", {})
            report.packets, report.octets = traffic.get("packets", {}), traffic.get("octets", {})
            self._selector.unregister(child.line)

    def _bury(self, name: str, what: str) -> None:
        """A node that did not end as agreed: make sure that it ended, and note how."""
        child = self._children[name]
        child.state = "dead"
        self._selector.unregister(child.line)
        os.kill(child.pid, signal.SIGKILL)
        status = os.waitpid(child.pid, 0)[1]
        how = f" by signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) and what == "died" else ""
        self.reports[name].error = what + how
