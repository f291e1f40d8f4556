"""The processes of an emulation: started, begun together, listened to, stopped, and none of them left."""

import json
import os
import selectors
import signal
import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Any

from emu.guest import Guest
from emu.node import Node, Program, fork_node

__all__ = ["Crew", "NodeReport"]

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


@dataclass(slots=True)
class _Child:
    """A node as the launcher sees it."""

    pid: int
    line: socket.socket
    heard: bytes = b""
    state: str = "new"
    """new, ready, finished, reported or dead."""


class Crew:
    """All nodes of an emulation, as the runner inside the world sees them: what they say comes through one selector."""

    def __init__(self, programs: Mapping[str, Program | Guest]) -> None:
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
