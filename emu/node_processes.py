"""The node processes of an emulation: start them, begin together, schedule actions, collect reports, leave none behind."""

import json
import os
import selectors
import shutil
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
from emu.node import CRASH, NodeConfig, fork_node
from protocols.hosting import Program

__all__ = ["NodeProcesses", "NodeReport", "ProgressCallback"]

_START_DELAY = 0.05
"""Seconds from sending `begin` until the common time 0, so that every node has received it."""
_REPORT_DELAY = 0.1
"""Seconds to wait for the counters of a second of the run."""
_TIMEOUT = 30.0
"""Seconds that nodes may take to get ready, and to report at the end."""
_DYING = 5.0
"""Seconds that a node may take to report its crash before it restarts."""


@dataclass(slots=True)
class NodeReport:
    """Report of one node.

    `result` is that of its program, `earlier` those before crashes; one that a crash ended has `crashed_at`, in seconds.
    `packets` and `octets` were sent by kind of message, `faults` are those of `UdpHost.faults`, `cpu` is in seconds, `busiest`
    the largest share of half a second in which it ran or waited for a processor, `worked` the seconds of work its machine
    stated, `memory` the largest resident set in bytes, `statistics` has rows with time and statistics. Without a result `error`
    says how the node died.
    """

    result: dict[str, Any] | None = None
    earlier: list[dict[str, Any]] = field(default_factory=list)
    packets: dict[str, int] = field(default_factory=dict)
    octets: dict[str, int] = field(default_factory=dict)
    faults: dict[str, int] = field(default_factory=dict)
    cpu: float = 0.0
    busiest: float = 0.0
    worked: float = 0.0
    memory: int = 0
    statistics: list[dict[str, Any]] = field(default_factory=list)
    error: str | None = None

    def add(self, message: dict[str, Any]) -> None:
        """Add the final report of a process: counts sum over all restarts of the node."""
        if self.result is not None:
            self.earlier.append(self.result)
        self.result, self.error = message.get("result"), message.get("error")
        if self.result is not None and "crashed_at" in message:
            self.result = {**self.result, "crashed_at": message["crashed_at"]}
        self.cpu += message.get("cpu", 0.0)
        self.busiest = max(self.busiest, message.get("busiest", 0.0))
        self.worked += message.get("worked", 0.0)
        self.memory = max(self.memory, message.get("memory", 0))
        self.statistics += message.get("statistics", [])
        traffic = message.get("traffic", {})
        for mine, more in (
            (self.faults, message.get("faults", {})),
            (self.packets, traffic.get("packets", {})),
            (self.octets, traffic.get("octets", {})),
        ):
            for key, count in more.items():
                mine[key] = mine.get(key, 0) + count


ProgressCallback: TypeAlias = Callable[[float, Mapping[str, Mapping[str, float]]], None]
"""Called with the second of the run, and by node the counters until `at`: packets, octets, and those of its machine."""


@dataclass(slots=True)
class _NodeProcess:
    """The launcher's state of a node's process."""

    pid: int
    control: socket.socket
    buffer: bytes = b""
    state: str = "new"
    """new, ready, finished, reported or dead; for a crash dying or, at a decision, held; then down."""


class NodeProcesses:
    """All node processes, served by one selector in the launcher.

    `respawn(host, crashes)` makes the program of a host that restarts.
    """

    def __init__(
        self,
        programs: Mapping[str, Program | ForeignProgram],
        respawn: Callable[[str, int], Program | ForeignProgram] | None = None,
    ) -> None:
        self._programs = programs
        self._respawn = respawn
        self._nodes: dict[str, NodeConfig] = {}
        self.on_decision: dict[str, Callable[[], None]] = {}
        """By node: called when its machine made the decision of `NodeConfig.decision`, and its process waits to be killed."""
        self.on_start: Callable[[str, int], None] = lambda name, pid: None
        """Called with the name and the process id of each process that starts."""
        self._crashes: Counter[str] = Counter()
        self._processes: dict[str, _NodeProcess] = {}
        self.reports = {name: NodeReport() for name in programs}
        self._selector = selectors.DefaultSelector()
        self._actions: list[tuple[float, int, Callable[[], None]]] = []
        self._scheduled = 0
        self._counters: dict[str, dict[str, float]] = {}
        self.epoch = inf
        """Time 0 of the run on the monotonic clock, in seconds."""

    def fork(self, node: NodeConfig) -> None:
        """Start the process of a node, which gets ready and waits."""
        self._nodes[node.name] = node
        self._start(node, self._programs[node.name], "new")

    def _start(self, node: NodeConfig, program: Program | ForeignProgram, state: str) -> None:
        local, remote = socket.socketpair()
        pid = fork_node(node, program, remote)
        remote.close()
        self.on_start(node.name, pid)
        self._processes[node.name] = _NodeProcess(pid, local, state=state)
        self.attend(local, partial(self._on_readable, node.name))

    def attend(self, connection: socket.socket, action: Callable[[], None]) -> None:
        """Call `action()` whenever a connection is readable."""
        self._selector.register(connection, selectors.EVENT_READ, action)

    def get_ready(self) -> None:
        """Wait until every node is ready to begin."""
        self._run_until(time.monotonic() + _TIMEOUT, lambda: not self._in_state("new"))

    def serve_until(self, done: Callable[[], bool]) -> None:
        """Serve all connections outside of the run until `done()`."""
        while not done():
            self._serve(inf)

    def schedule(self, when: float, action: Callable[[], None]) -> None:
        """Call `action()` at `when` seconds of the run, if it lasts that long."""
        self._scheduled += 1
        heappush(self._actions, (when, self._scheduled, action))

    def crash(self, name: str) -> None:
        """Kill the process of a node where it is; does nothing if it does not run."""
        process = self._processes.get(name)
        if process is None or process.state not in ("ready", "finished", "held"):
            return
        process.state = "dying"
        if isinstance(self._programs[name], ForeignProgram):
            self._send(name, {"die": True})
        else:
            os.kill(process.pid, CRASH)

    def restart(self, name: str) -> None:
        """Start a new process for a node that crashed, once that has reported, without any state; does nothing if it runs."""
        process = self._processes.get(name)
        if process is None or process.state not in ("dying", "down"):
            return
        until = time.monotonic() + _DYING
        while process.state == "dying" and (left := until - time.monotonic()) > 0:
            self._serve(left)
        if process.state == "dying":
            self._reap(name, "did not die in time")
        assert self._respawn is not None
        self._crashes[name] += 1
        self._nodes[name] = replace(self._nodes[name], decision=None)
        program = self._respawn(name, self._crashes[name])
        self._start(replace(self._nodes[name], epoch=self.epoch), program, "ready")

    def lose_disk(self, name: str) -> None:
        """Remove what a node stored; its process does not run."""
        folder = self._nodes[name].disk
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)

    def send(self, name: str, order: dict[str, Any]) -> None:
        """Send an order to a node, if it runs."""
        if name in self._running():
            self._send(name, order)

    def report_progress(self, progress: ProgressCallback) -> None:
        """Have all nodes report their counters every second of the run, and call `progress` with them."""

        def report(second: int = 0) -> None:
            if second == 0:
                self._send_to_all({"counters": 1.0})
            else:
                progress(float(second), self._counters)
            self.schedule(second + 1 + _REPORT_DELAY, partial(report, second + 1))

        self.schedule(0.0, report)

    def run(
        self, duration: float, over: Callable[[set[str]], bool], begin: Callable[[float], None] | None = None
    ) -> tuple[float, bool]:
        """Run from the common epoch until `over(names of finished nodes)` or for `duration` seconds; stop, collect reports.

        `begin` is called with the epoch before time 0. Returns the seconds it took, and whether `over` ended it.
        """
        self.get_ready()
        self.epoch = epoch = time.monotonic() + _START_DELAY
        if begin is not None:
            begin(epoch)
        self._send_to_all({"begin": epoch})
        # A node that reports before it was told to end has failed, and never finishes.
        ended = self._run_until(epoch + duration, lambda: over(self._in_state("finished", "reported", "dead")))
        # All hosts may have failed before.
        elapsed = max(time.monotonic() - epoch, 0.0)
        self._actions.clear()
        self._send_to_all({"stop": True})
        self._run_until(time.monotonic() + _TIMEOUT, lambda: not self._running())
        for name in self._running():
            self._reap(name, "did not report in time")
        return elapsed, ended

    def _in_state(self, *states: str) -> set[str]:
        return {name for name, process in self._processes.items() if process.state in states}

    def _running(self) -> set[str]:
        return {name for name, process in self._processes.items() if process.state not in ("reported", "dead", "down", "held")}

    def _run_until(self, until: float, done: Callable[[], bool]) -> bool:
        """Serve nodes and run actions until `done()` or the monotonic time `until`; returns whether it was `done()`."""
        while not done():
            self._run_actions()
            left = until - time.monotonic()
            if left <= 0 or not (self._running() or self._actions):
                return False
            if self._actions:
                left = min(left, max(0.0, self.epoch + self._actions[0][0] - time.monotonic()))
            self._serve(left)
        return True

    def _serve(self, timeout: float) -> None:
        """Do what is due for readable connections, after waiting for one for at most `timeout` seconds (inf: no limit)."""
        for key, _ in self._selector.select(None if timeout == inf else timeout):
            key.data()

    def _run_actions(self) -> None:
        """Run the actions that are due; none is before the epoch."""
        while self._actions and self.epoch + self._actions[0][0] <= time.monotonic():
            heappop(self._actions)[2]()

    def _send_to_all(self, order: dict[str, Any]) -> None:
        for name in sorted(self._running()):
            if self._processes[name].state != "dying":
                self._send(name, order)

    def _send(self, name: str, order: dict[str, Any]) -> None:
        try:
            self._processes[name].control.sendall(json.dumps(order).encode() + b"\n")
        except (BrokenPipeError, ConnectionResetError):
            self._reap(name, "died")

    def _on_readable(self, name: str) -> None:
        process = self._processes[name]
        data = process.control.recv(1 << 16)
        if not data:
            self._reap(name, "died")
            return
        *lines, process.buffer = (process.buffer + data).split(b"\n")
        for line in lines:
            self._handle(name, json.loads(line))

    def _handle(self, name: str, message: dict[str, Any]) -> None:
        process = self._processes[name]
        if "ready" in message:
            process.state = "ready" if process.state == "new" else process.state
        elif "counters" in message:
            self._counters[name] = message["counters"]
        elif "finished" in message:
            process.state = "finished" if process.state == "ready" else process.state
        elif "decided" in message:
            process.state = "held"
            self.on_decision[name]()
        else:
            self.reports[name].add(message)
            self._selector.unregister(process.control)
            process.state = "down" if process.state == "dying" else "reported"
            if process.state == "down":
                os.waitpid(process.pid, 0)

    def _reap(self, name: str, reason: str) -> None:
        """Kill and reap a process that did not end in order, and record how it ended."""
        process = self._processes[name]
        process.state = "dead"
        self._selector.unregister(process.control)
        os.kill(process.pid, signal.SIGKILL)
        status = os.waitpid(process.pid, 0)[1]
        cause = f" by signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) and reason == "died" else ""
        self.reports[name].error = reason + cause
