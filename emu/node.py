"""What runs inside one Mininet host: a process forked from the warm runner, with one program on one UDP host.

The program is one of ours on a UDP host, or a guest. Launcher and node talk in JSON lines over a socket pair. Node: `ready`,
then `finished` when its program is, at the end one line with `result` or `error`. Launcher: `begin` with the common epoch, at
the end `stop`.
"""

import json
import os
import resource
import socket
import tempfile
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from emu.guest import Guest, Seat
from emu.host import Loop, UdpHost, new_loop
from emu.world import enter_network
from protocols.errors import McastlabError
from protocols.machine import Codec, Host
from protocols.rng import Rng, key_of

__all__ = ["Node", "Program", "fork_node"]

_POLL = 0.02
"""How often a node looks whether its program is finished; programs note the time of what matters themselves."""


class Program(Protocol):
    """What one node does. The same object runs in the simulator."""

    def start(self, host: Host) -> None:
        """Make the machine on the host's ports and run it."""

    def finished(self) -> bool:
        """Everything this node wants is done; it goes on serving others until the run ends."""

    def result(self) -> dict[str, Any]:
        """What to report, JSON-able; asked once, at the end."""


@dataclass(frozen=True, slots=True)
class Node:
    """All a node's process needs: where it lives and how its host is made."""

    name: str
    pid: int
    """A process in the network namespace the node lives in."""
    address: str
    codec: Callable[[], Codec]
    port: int
    ttl: int
    burst: int
    seed: int


def fork_node(node: Node, program: Program | Guest, line: socket.socket) -> int:
    """Start a process for the node and return its number. `line` is the node's end of the socket pair."""
    pid = os.fork()
    if pid == 0:
        try:
            _run(node, program, line)
        finally:
            os._exit(0)
    return pid


def _run(node: Node, program: Program | Guest, line: socket.socket) -> None:
    """Be the node until the launcher says stop or goes away; then report."""
    try:
        enter_network(node.pid)
        report = _lodge(node, program, line) if isinstance(program, Guest) else _live(node, program, line)
    except McastlabError as error:
        report = {"error": str(error)}
    except Exception as error:  # noqa: BLE001 - any error of a program or machine is this node's result, not the end of the run
        report = {"error": "".join(traceback.format_exception(error)).rstrip()}
    _say(line, report)


def _live(node: Node, program: Program, line: socket.socket) -> dict[str, Any]:
    loop = new_loop()
    rng = Rng(key_of(node.seed, "node", node.name))
    host = UdpHost(
        loop,
        node.codec(),
        interface=node.address,
        port=node.port,
        rng=rng,
        ttl=node.ttl,
        burst=node.burst,
        loopback=False,
        held=True,
    )
    try:
        program.start(host)
        before = _cpu()
        _Watch(loop, host.begin, program.finished, line)
        _say(line, {"ready": True})
        loop.run()
        used = _cpu() - before
        traffic = {"packets": host.traffic.packets, "octets": host.traffic.octets}
        return {"result": program.result(), "traffic": traffic, "faults": host.faults, "cpu": used, "memory": _peak()}
    finally:
        host.close()


def _lodge(node: Node, guest: Guest, line: socket.socket) -> dict[str, Any]:
    """Run a guest, whose files are gone with the world at the latest."""
    loop = new_loop()
    with tempfile.TemporaryDirectory(dir="/run") as folder:
        seat = Seat(loop, node.name, node.address, Path(folder), lambda: _say(line, {"ready": True}), node.ttl)
        before = _cpu()
        guest.prepare(seat)
        _Watch(loop, seat.begin, guest.finished, line)
        loop.run()
        guest.close()
        result = guest.result()
        return {"result": result, **result.pop("wire"), "cpu": _cpu() - before, "memory": _peak()}


_WHO = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)


def _cpu() -> float:
    return sum(used.ru_utime + used.ru_stime for used in map(resource.getrusage, _WHO))


def _peak() -> int:
    """The most memory a process here ever had resident, in bytes; what it shares with the runner counts too."""
    return max(resource.getrusage(who).ru_maxrss for who in _WHO) * 1024


def _say(line: socket.socket, message: dict[str, Any]) -> None:
    line.setblocking(True)
    line.sendall(json.dumps(message).encode() + b"\n")


class _Watch:
    """Obeys the launcher and tells it when the program is finished."""

    def __init__(self, loop: Loop, begin: Callable[[float], None], finished: Callable[[], bool], line: socket.socket) -> None:
        self._loop, self._begin, self._finished, self._line = loop, begin, finished, line
        loop.add_reader(line, self._obey)

    def _obey(self) -> None:
        # The two orders are a few bytes each and sent in one piece, so a line is never cut.
        text = self._line.recv(4096)
        for line in text.splitlines() or [b'{"stop": true}']:
            order = json.loads(line)
            if "begin" in order:
                self._begin(order["begin"])
                self._look()
            else:
                self._loop.stop()

    def _look(self) -> None:
        if self._finished():
            _say(self._line, {"finished": True})
        else:
            self._loop.call_later(_POLL, self._look)
