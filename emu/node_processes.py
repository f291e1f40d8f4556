"""The processes of an emulation: started, begun together, listened to, stopped, and none of them left."""

import json
import os
import selectors
import signal
import socket
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from heapq import heappop, heappush
from math import inf
from typing import Any, TypeAlias

from emu.foreign_program import ForeignProgram
from emu.node import NodeConfig, Program, fork_node

__all__ = ["NodeProcesses", "NodeReport", "ProgressCallback"]

_LEAD = 0.05
"""From the order to begin until the common time 0, so that every node has heard it."""
_DELAY = 0.1
"""What nodes say of a second is there so much later."""
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

    def add(self, message: dict[str, Any]) -> None:
        """What a process told at its end: counts are those of all lives of the node, the result is that of the last."""
        self.result, self.error = message.get("result"), message.get("error")
        self.cpu += message.get("cpu", 0.0)
        self.memory = max(self.memory, message.get("memory", 0))
        traffic = message.get("traffic", {})
        for mine, more in (
            (self.faults, message.get("faults", {})),
            (self.packets, traffic.get("packets", {})),
            (self.octets, traffic.get("octets", {})),
        ):
            for key, count in more.items():
                mine[key] = mine.get(key, 0) + count


ProgressCallback: TypeAlias = Callable[[float, Mapping[str, Mapping[str, float]]], None]
"""Told the second of the run, and what every node counted until `at`: packets, octets, and what its machine counts."""


@dataclass(slots=True)
class _NodeProcess:
    """A node as the launcher sees it."""

    pid: int
    line: socket.socket
    heard: bytes = b""
    state: str = "new"
    """new, ready, finished, reported or dead; after a crash dying, then down."""


class NodeProcesses:
    """All nodes of an emulation, as the runner inside the world sees them: what they say comes through one selector."""

    def __init__(
        self,
        programs: Mapping[str, Program | ForeignProgram],
        respawn: Callable[[str, int], Program | ForeignProgram] | None = None,
    ) -> None:
        self._programs = programs
        self._respawn = respawn
        self._nodes: dict[str, NodeConfig] = {}
        self._lives: Counter[str] = Counter()
        self._processes: dict[str, _NodeProcess] = {}
        self.reports = {name: NodeReport() for name in programs}
        self._selector = selectors.DefaultSelector()
        self._acts: list[tuple[float, int, Callable[[], None]]] = []
        self._planned = 0
        self._counters: dict[str, dict[str, float]] = {}
        self.epoch = inf
        """The monotonic clock's time 0 of the run."""

    def fork(self, node: NodeConfig) -> None:
        """Start the process of a node; it gets ready and waits."""
        self._nodes[node.name] = node
        self._start(node, self._programs[node.name], "new")

    def _start(self, node: NodeConfig, program: Program | ForeignProgram, state: str) -> None:
        ours, theirs = socket.socketpair()
        pid = fork_node(node, program, theirs)
        theirs.close()
        self._processes[node.name] = _NodeProcess(pid, ours, state=state)
        self._selector.register(ours, selectors.EVENT_READ, node.name)

    def at(self, when: float, action: Callable[[], None]) -> None:
        """Have `action()` done at `when` seconds of the run, if it lasts so long."""
        self._planned += 1
        heappush(self._acts, (when, self._planned, action))

    def crash(self, name: str) -> None:
        """Kill the process of a node, which tells before what it has; nothing happens to one that is not there."""
        child = self._processes.get(name)
        if child is not None and child.state in ("ready", "finished"):
            child.state = "dying"
            self._say(name, {"die": True})

    def restart(self, name: str) -> None:
        """Start a process for a node that crashed, which knows nothing; nothing happens to one that runs."""
        child = self._processes.get(name)
        if child is None or child.state not in ("dying", "down"):
            return
        if child.state == "dying":
            self._bury(name, "did not die in time")
        assert self._respawn is not None
        self._lives[name] += 1
        program = self._respawn(name, self._lives[name])
        self._start(replace(self._nodes[name], epoch=self.epoch), program, "ready")

    def tell(self, name: str, order: dict[str, Any]) -> None:
        """Give a node an order while it runs."""
        if name in self._living():
            self._say(name, order)

    def report_progress(self, watch: ProgressCallback) -> None:
        """Have all nodes say every second of the run what they counted, and tell `watch`."""

        def look(second: int = 0) -> None:
            if second == 0:
                self._order({"live": 1.0})
            else:
                watch(float(second), self._counters)
            self.at(second + 1 + _DELAY, partial(look, second + 1))

        self.at(0.0, look)

    def run(
        self, duration: float, over: Callable[[set[str]], bool], begin: Callable[[float], None] | None = None
    ) -> tuple[float, bool]:
        """Begin together, wait, stop, collect: seconds it took, and whether `over` ended it. `begin` is told the epoch."""
        self._listen(time.monotonic() + _PATIENCE, lambda: not self._named("new"))
        self.epoch = epoch = time.monotonic() + _LEAD
        if begin is not None:
            begin(epoch)
        self._order({"begin": epoch})
        ended = self._listen(epoch + duration, lambda: over(self._named("finished")))
        elapsed = time.monotonic() - epoch
        self._acts.clear()
        self._order({"stop": True})
        self._listen(time.monotonic() + _PATIENCE, lambda: not self._living())
        for name in self._living():
            self._bury(name, "did not report in time")
        return elapsed, ended

    def _named(self, state: str) -> set[str]:
        return {name for name, child in self._processes.items() if child.state == state}

    def _living(self) -> set[str]:
        return {name for name, child in self._processes.items() if child.state not in ("reported", "dead", "down")}

    def _listen(self, until: float, done: Callable[[], bool]) -> bool:
        """Hear the nodes, and act when it is time, until `done()` or the time `until`; was it `done`?"""
        while not done():
            self._act()
            left = until - time.monotonic()
            if left <= 0 or not (self._living() or self._acts):
                return False
            if self._acts:
                left = min(left, max(0.0, self.epoch + self._acts[0][0] - time.monotonic()))
            for key, _ in self._selector.select(None if left == inf else left):
                self._hear(key.data)
        return True

    def _act(self) -> None:
        """Do what is due; before the run began nothing is."""
        while self._acts and self.epoch + self._acts[0][0] <= time.monotonic():
            heappop(self._acts)[2]()

    def _order(self, order: dict[str, Any]) -> None:
        for name in sorted(self._living()):
            if self._processes[name].state != "dying":
                self._say(name, order)

    def _say(self, name: str, order: dict[str, Any]) -> None:
        try:
            self._processes[name].line.sendall(json.dumps(order).encode() + b"\n")
        except (BrokenPipeError, ConnectionResetError):
            self._bury(name, "died")

    def _hear(self, name: str) -> None:
        child = self._processes[name]
        data = child.line.recv(1 << 16)
        if not data:
            self._bury(name, "died")
            return
        *lines, child.heard = (child.heard + data).split(b"\n")
        for line in lines:
            self._understand(name, json.loads(line))

    def _understand(self, name: str, message: dict[str, Any]) -> None:
        child = self._processes[name]
        if "ready" in message:
            child.state = "ready" if child.state == "new" else child.state
        elif "census" in message:
            self._counters[name] = message["census"]
        elif "finished" in message:
            child.state = "finished" if child.state == "ready" else child.state
        else:
            child.state = "down" if child.state == "dying" else "reported"
            self.reports[name].add(message)
            self._selector.unregister(child.line)
            if child.state == "down":
                os.waitpid(child.pid, 0)

    def _bury(self, name: str, what: str) -> None:
        """A node that did not end as agreed: make sure that it ended, and note how."""
        child = self._processes[name]
        child.state = "dead"
        self._selector.unregister(child.line)
        os.kill(child.pid, signal.SIGKILL)
        status = os.waitpid(child.pid, 0)[1]
        how = f" by signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) and what == "died" else ""
        self.reports[name].error = what + how
