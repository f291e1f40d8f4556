"""What runs inside one Mininet host: a process forked from the warm runner, with one program on one UDP host.

The program is one of ours on a UDP host, or a guest. Launcher and node talk in JSON lines over a socket pair. Node: `ready`,
then `finished` when its program is, at the end one line with `result` or `error`. Launcher: `begin` with the common epoch, at
the end `stop`, or before `die` for a crash, `slow` for an application that needs
time, `live` for counts every so many seconds.
"""

import json
import os
import resource
import signal
import socket
import tempfile
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from math import inf
from pathlib import Path
from typing import Any, Protocol

from emu.foreign_program import ForeignContext, ForeignProgram
from emu.host import Loop, UdpHost, new_loop
from emu.world import enter_network
from protocols.errors import McastlabError
from protocols.hosting import PortsHost
from protocols.machine import Codec
from protocols.rng import Rng

__all__ = ["Node", "Program", "fork_node", "prefer"]

_PRIORITY = -10
_POLL = 0.02
"""How often a node looks whether its program is finished; programs note the time of what matters themselves."""


class Program(Protocol):
    """What one node does. The same object runs in the simulator."""

    def start(self, host: PortsHost) -> None:
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
    dice: int
    """The key of its stream of random numbers (`topologies.keys.dice_key`): the simulator's."""
    joining: float = 0.0
    """From joining a group until its packets come."""
    epoch: float = inf
    """Where the run began already: the loop's time that counts as 0."""


def fork_node(node: Node, program: Program | ForeignProgram, line: socket.socket) -> int:
    """Start a process for the node and return its number. `line` is the node's end of the socket pair."""
    pid = os.fork()
    if pid == 0:
        try:
            _run(node, program, line)
        finally:
            os._exit(0)
    return pid


def _run(node: Node, program: Program | ForeignProgram, line: socket.socket) -> None:
    """Be the node until the launcher says stop or goes away; then report."""
    try:
        enter_network(node.pid)
        prefer()
        report = _lodge(node, program, line) if isinstance(program, ForeignProgram) else _live(node, program, line)
    except McastlabError as error:
        report = {"error": str(error)}
    except Exception as error:  # noqa: BLE001 - any error of a program or machine is this node's result, not the end of the run
        report = {"error": "".join(traceback.format_exception(error)).rstrip()}
    _say(line, report)
    if report.get("killed"):
        # What crashes says goodbye to the launcher and to nobody else.
        os.kill(os.getpid(), signal.SIGKILL)


def prefer() -> None:
    """Let this process come before what else the machine does, where that is allowed."""
    with suppress(PermissionError):
        os.setpriority(os.PRIO_PROCESS, 0, _PRIORITY)


def _live(node: Node, program: Program, line: socket.socket) -> dict[str, Any]:
    loop = new_loop()
    host = UdpHost(
        loop,
        node.codec(),
        interface=node.address,
        port=node.port,
        rng=Rng(node.dice),
        ttl=node.ttl,
        burst=node.burst,
        loopback=False,
        held=True,
        joining=node.joining,
    )
    try:
        live = partial(_tell, loop, line, host.census, lambda: host.now)
        orders: dict[str, Callable[[Any], None]] = {"begin": host.begin, "slow": lambda how: host.read_at(*how), "live": live}
        watch = _Watch(loop, line, node.epoch, program.finished, orders)
        program.start(host)
        before = _cpu()
        _say(line, {"ready": True})
        loop.run()
        used = _cpu() - before
        traffic = {"packets": host.traffic.packets, "octets": host.traffic.octets}
        told = {"result": program.result(), "traffic": traffic, "faults": host.faults, "cpu": used, "memory": _peak()}
        return told | {"killed": watch.killed}
    finally:
        host.close()


def _lodge(node: Node, guest: ForeignProgram, line: socket.socket) -> dict[str, Any]:
    """Run a guest, whose files are gone with the world at the latest."""
    loop = new_loop()
    with tempfile.TemporaryDirectory(dir="/run") as folder:
        seat = ForeignContext(loop, node.name, node.address, Path(folder), lambda: _say(line, {"ready": True}), node.ttl)
        before = _cpu()
        live = partial(_tell, loop, line, guest.census, lambda: seat.now)
        watch = _Watch(loop, line, node.epoch, guest.finished, {"begin": seat.begin, "live": live})
        guest.prepare(seat)
        loop.run()
        if watch.killed:
            guest.kill()
        else:
            guest.close()
        result = guest.result()
        told = {"result": result, **result.pop("wire"), "cpu": _cpu() - before, "memory": _peak()}
        return told | {"killed": watch.killed}


_WHO = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)


def _cpu() -> float:
    return sum(used.ru_utime + used.ru_stime for used in map(resource.getrusage, _WHO))


def _peak() -> int:
    """The most memory a process here ever had resident, in bytes; what it shares with the runner counts too."""
    return max(resource.getrusage(who).ru_maxrss for who in _WHO) * 1024


def _say(line: socket.socket, message: dict[str, Any]) -> None:
    line.setblocking(True)
    line.sendall(json.dumps(message).encode() + b"\n")


def _tell(
    loop: Loop, line: socket.socket, census: Callable[[], dict[str, int]], clock: Callable[[], float], period: float
) -> None:
    """Say now, and whenever another `period` of the run is over, what was counted so far."""
    now = clock()
    _say(line, {"census": {**census(), "at": now}})
    loop.call_later(period - now % period, _tell, loop, line, census, clock, period)


class _Watch:
    """Obeys the launcher and tells it when the program is finished. `orders` are done with what comes with them."""

    def __init__(
        self,
        loop: Loop,
        line: socket.socket,
        epoch: float,
        finished: Callable[[], bool],
        orders: Mapping[str, Callable[[Any], None]],
    ) -> None:
        self._loop, self._line, self._finished, self._orders = loop, line, finished, orders
        self.killed = False
        loop.add_reader(line, self._obey)
        if epoch < inf:
            self._do("begin", epoch)

    def _obey(self) -> None:
        # Orders are a few bytes each and sent in one piece, so a line is never cut.
        text = self._line.recv(4096)
        for line in text.splitlines() or [b'{"stop": true}']:
            for name, how in json.loads(line).items():
                self._do(name, how)

    def _do(self, name: str, how: Any) -> None:
        if name in ("stop", "die"):
            self.killed = name == "die"
            self._loop.stop()
        else:
            self._orders[name](how)
            if name == "begin":
                self._look()

    def _look(self) -> None:
        if self._finished():
            _say(self._line, {"finished": True})
        else:
            self._loop.call_later(_POLL, self._look)
