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
from emu.namespaces import enter_network_namespace
from protocols.errors import McastlabError
from protocols.machine import Codec, Host
from protocols.rng import Rng

__all__ = ["NodeConfig", "Program", "fork_node", "raise_priority"]

_PRIORITY = -10
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
class NodeConfig:
    """All a node's process needs: where it lives and how its host is made."""

    name: str
    pid: int
    """A process in the network namespace the node lives in."""
    address: str
    codec: Callable[[], Codec]
    port: int
    ttl: int
    burst: int
    rng_key: int
    """The key of its stream of random numbers (`topologies.keys.dice_key`): the simulator's."""
    joining: float = 0.0
    """From joining a group until its packets come."""
    epoch: float = inf
    """Where the run began already: the loop's time that counts as 0."""


def fork_node(node: NodeConfig, program: Program | ForeignProgram, control: socket.socket) -> int:
    """Start a process for the node and return its number. `line` is the node's end of the socket pair."""
    pid = os.fork()
    if pid == 0:
        try:
            _run(node, program, control)
        finally:
            os._exit(0)
    return pid


def _run(node: NodeConfig, program: Program | ForeignProgram, control: socket.socket) -> None:
    """Be the node until the launcher says stop or goes away; then report."""
    try:
        enter_network_namespace(node.pid)
        raise_priority()
        report = (
            _run_foreign(node, program, control) if isinstance(program, ForeignProgram) else _run_own(node, program, control)
        )
    except McastlabError as error:
        report = {"error": str(error)}
    except Exception as error:  # noqa: BLE001 - any error of a program or machine is this node's result, not the end of the run
        report = {"error": "".join(traceback.format_exception(error)).rstrip()}
    _send(control, report)
    if report.get("killed"):
        # What crashes says goodbye to the launcher and to nobody else.
        os.kill(os.getpid(), signal.SIGKILL)


def raise_priority() -> None:
    """Let this process come before what else the machine does, where that is allowed."""
    with suppress(PermissionError):
        os.setpriority(os.PRIO_PROCESS, 0, _PRIORITY)


def _run_own(node: NodeConfig, program: Program, control: socket.socket) -> dict[str, Any]:
    loop = new_loop()
    host = UdpHost(
        loop,
        node.codec(),
        interface=node.address,
        port=node.port,
        rng=Rng(node.rng_key),
        ttl=node.ttl,
        burst=node.burst,
        loopback=False,
        held=True,
        joining=node.joining,
    )
    try:
        report_counters = partial(_report_counters, loop, control, host.counters, lambda: host.now)
        orders: dict[str, Callable[[Any], None]] = {
            "begin": host.begin,
            "slow": lambda argument: host.read_at(*argument),
            "live": report_counters,
        }
        connection = _LauncherConnection(loop, control, node.epoch, program.finished, orders)
        program.start(host)
        before = _cpu()
        _send(control, {"ready": True})
        loop.run()
        used = _cpu() - before
        traffic = {"packets": host.traffic.packets, "octets": host.traffic.octets}
        report = {"result": program.result(), "traffic": traffic, "faults": host.faults, "cpu": used, "memory": _peak()}
        return report | {"killed": connection.killed}
    finally:
        host.close()


def _run_foreign(node: NodeConfig, program: ForeignProgram, control: socket.socket) -> dict[str, Any]:
    """Run a guest, whose files are gone with the world at the latest."""
    loop = new_loop()
    with tempfile.TemporaryDirectory(dir="/run") as folder:
        context = ForeignContext(loop, node.name, node.address, Path(folder), lambda: _send(control, {"ready": True}), node.ttl)
        before = _cpu()
        report_counters = partial(_report_counters, loop, control, program.counters, lambda: context.now)
        connection = _LauncherConnection(
            loop, control, node.epoch, program.finished, {"begin": context.begin, "live": report_counters}
        )
        program.prepare(context)
        loop.run()
        if connection.killed:
            program.kill()
        else:
            program.close()
        result = program.result()
        report = {"result": result, **result.pop("wire"), "cpu": _cpu() - before, "memory": _peak()}
        return report | {"killed": connection.killed}


_USAGES = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)


def _cpu() -> float:
    return sum(used.ru_utime + used.ru_stime for used in map(resource.getrusage, _USAGES))


def _peak() -> int:
    """The most memory a process here ever had resident, in bytes; what it shares with the runner counts too."""
    return max(resource.getrusage(usage).ru_maxrss for usage in _USAGES) * 1024


def _send(control: socket.socket, message: dict[str, Any]) -> None:
    control.setblocking(True)
    control.sendall(json.dumps(message).encode() + b"\n")


def _report_counters(
    loop: Loop, control: socket.socket, counters: Callable[[], dict[str, int]], clock: Callable[[], float], period: float
) -> None:
    """Say now, and whenever another `period` of the run is over, what was counted so far."""
    now = clock()
    _send(control, {"census": {**counters(), "at": now}})
    loop.call_later(period - now % period, _report_counters, loop, control, counters, clock, period)


class _LauncherConnection:
    """Obeys the launcher and tells it when the program is finished. `orders` are done with what comes with them."""

    def __init__(
        self,
        loop: Loop,
        control: socket.socket,
        epoch: float,
        finished: Callable[[], bool],
        orders: Mapping[str, Callable[[Any], None]],
    ) -> None:
        self._loop, self._control, self._finished, self._orders = loop, control, finished, orders
        self.killed = False
        loop.add_reader(control, self._on_order)
        if epoch < inf:
            self._execute("begin", epoch)

    def _on_order(self) -> None:
        # Orders are a few bytes each and sent in one piece, so a line is never cut.
        text = self._control.recv(4096)
        for control in text.splitlines() or [b'{"stop": true}']:
            for name, argument in json.loads(control).items():
                self._execute(name, argument)

    def _execute(self, name: str, argument: Any) -> None:
        if name in ("stop", "die"):
            self.killed = name == "die"
            self._loop.stop()
        else:
            self._orders[name](argument)
            if name == "begin":
                self._poll_finished()

    def _poll_finished(self) -> None:
        if self._finished():
            _send(self._control, {"finished": True})
        else:
            self._loop.call_later(_POLL, self._poll_finished)
