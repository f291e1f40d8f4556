"""One node of an emulation: a process forked from the launcher, with one program in a host's network namespace.

The program is one of this project on a UdpHost, or a foreign one. Launcher and node exchange JSON lines over a socket pair.
Node to launcher: `ready`, then `finished` when its program is, `counters` if requested, `decided` when it has stopped at the
requested decision, and at the end `result` or `error`.
Launcher to node: `begin` with the common epoch, `stop` at the end, `slow` with a service time and capacity, `counters` with the
period of progress reports in seconds; for a crash the signal CRASH, or `die` to a foreign program.
"""

import json
import os
import resource
import signal
import socket
import tempfile
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from math import inf
from pathlib import Path
from typing import Any

from emu.disk import OpenDisk
from emu.foreign_program import ForeignContext, ForeignProgram
from emu.host import UdpHost
from emu.loop import Loop, new_loop
from emu.memory_limit import limited_memory
from emu.namespaces import enter_network_namespace
from emu.ports import Devices
from emu.processor_load import ProcessorLoad
from emu.statistics_log import StatisticsLog
from emu.udp_options import UdpOptions
from protocols.errors import FailureError, McastlabError
from protocols.framing import Framing
from protocols.hosting import Program
from protocols.machine import Codec
from protocols.rng import Rng
from protocols.tcp.options import TcpOptions

__all__ = ["CRASH", "NodeConfig", "fork_node", "raise_priority"]

CRASH = signal.SIGUSR1
"""A node's process that gets it is killed where it is, between any two of its instructions."""

_PRIORITY = -10
_POLL = 0.02
"""Period in seconds of checking whether the program is finished; programs record the times of results themselves."""


@dataclass(frozen=True, slots=True)
class NodeConfig:
    """Parameters of a node's process: its namespace and its host."""

    name: str
    pid: int
    """A process in the network namespace of the node."""
    address: str
    codec: Callable[[], Codec]
    port: int
    ttl: int
    burst: int
    stream_key: int
    """Key of its random numbers, the same as in the simulator (`topologies.keys.stream_key`)."""
    framing: Callable[[], Framing]
    """Makes the framing of a connection's stream."""
    tcp: TcpOptions | None
    """Options of its connections; None leaves them to the kernel."""
    joining: float = 0.0
    """Seconds from joining a group until its packets arrive."""
    open_disk: OpenDisk | None = None
    """Opens its stable storage, which outlives its processes."""
    ecn: bool = False
    """True for ECN (RFC 3168): packets are sent with ECT(0), and CE marks of received packets are read."""
    disk: Path | None = None
    """The folder of its stable storage."""
    decision: tuple[str, int] | None = None
    """Name and count of the decision of its machine at which the process stops, to be killed."""
    epoch: float = inf
    """Time 0 of the run on the loop's clock if the run has begun already, else inf."""
    devices: Sequence[str] = ()
    """Devices on which it joins groups; none: the one of its address."""
    networks: Mapping[str, str] = field(default_factory=dict)
    """The devices of its networks by their names, if it has several."""
    memory: int | None = None
    """Bytes that its program may allocate after its start; None: no limit."""
    statistics: float | None = None
    """Interval in seconds at which the statistics of its machine are kept; None: they are not."""
    names: Mapping[str, str] = field(default_factory=dict)
    """The addresses of all hosts, for programs that name one."""


def fork_node(node: NodeConfig, program: Program | ForeignProgram, control: socket.socket) -> int:
    """Start the process of a node and return its process id. `control` is the node's end of the socket pair."""
    pid = os.fork()
    if pid == 0:
        try:
            _run(node, program, control)
        finally:
            os._exit(0)
    return pid


def _run(node: NodeConfig, program: Program | ForeignProgram, control: socket.socket) -> None:
    """Run the node until the launcher stops it or ends; then send the report."""
    try:
        enter_network_namespace(node.pid)
        raise_priority()
        report = (
            _run_foreign(node, program, control) if isinstance(program, ForeignProgram) else _run_own(node, program, control)
        )
    except McastlabError as error:
        report = {"error": str(error)}
    except Exception as error:  # noqa: BLE001 - an error of a program is its node's result and does not end the run
        report = {"error": "".join(traceback.format_exception(error)).rstrip()}
    _send(control, report)
    if report.get("killed"):
        # A crash must not close sockets in good order.
        os.kill(os.getpid(), signal.SIGKILL)


def raise_priority() -> None:
    """Raise the scheduling priority of this process (setpriority(2)), where permitted."""
    with suppress(PermissionError):
        os.setpriority(os.PRIO_PROCESS, 0, _PRIORITY)


def _run_own(node: NodeConfig, program: Program, control: socket.socket) -> dict[str, Any]:
    loop = new_loop()
    host = UdpHost(
        loop,
        node.codec(),
        make_codec=node.codec,
        interface=node.address,
        port=node.port,
        rng=Rng(node.stream_key),
        options=UdpOptions(ttl=node.ttl, loopback=False, ecn=node.ecn),
        burst=node.burst,
        held=True,
        joining=node.joining,
        devices=Devices(node.devices, node.networks),
        open_disk=node.open_disk,
        names={name: (address, node.port) for name, address in node.names.items()},
        framing=node.framing,
        tcp=node.tcp,
    )
    try:
        report_counters = partial(_report_counters, loop, control, host.counters, lambda: host.now)
        orders: dict[str, Callable[[Any], None]] = {
            "begin": host.begin,
            "slow": lambda argument: host.read_at(*argument),
            "counters": report_counters,
        }
        _LauncherConnection(loop, control, node.epoch, program.finished, orders)
        before = _cpu()
        log, load = StatisticsLog(host, node.statistics), ProcessorLoad(loop)
        if node.decision is not None:
            host.trace = _stopping(node.decision, lambda: _send(control, {"decided": True}))
        signal.signal(CRASH, lambda number, frame: _die(control, lambda: _last_report(host, program, log.rows), before))
        program.start(host)
        log.begin()
        with limited_memory(node.memory):
            _send(control, {"ready": True})
            failure = _run_loop(loop, node.memory)
        signal.signal(CRASH, signal.SIG_IGN)
        return _report(host, program, log.end()) | _used(before) | {"busiest": load.largest} | failure
    finally:
        host.close()


def _run_loop(loop: Loop, memory: int | None) -> dict[str, Any]:
    """Run a loop until it is stopped. Returns the part of the report about a program that failed, which is killed then."""
    try:
        loop.run()
    except MemoryError:
        return {"error": f"out of memory: it has {(memory or 0) / 1e6:g} MB", "killed": True}
    except FailureError as error:
        return {"error": str(error), "killed": True}
    return {}


def _report(host: UdpHost, program: Program, statistics: Sequence[Any]) -> dict[str, Any]:
    """Return the report of a process, with its `statistics`."""
    return {
        "result": program.result(),
        "traffic": {"packets": host.traffic.packets, "octets": host.traffic.octets},
        "faults": host.faults,
        "worked": host.worked,
        "statistics": statistics,
    }


def _last_report(host: UdpHost, program: Program, statistics: Sequence[Any]) -> dict[str, Any]:
    """Return the report of a process whose host crashes now."""
    return _report(host, program, statistics) | {"crashed_at": host.now}


def _used(before: float) -> dict[str, Any]:
    """Return CPU time and memory of a process that had used `before` seconds of CPU time before its program began."""
    return {"cpu": _cpu() - before, "memory": _peak()}


def _die(control: socket.socket, report: Callable[[], dict[str, Any]], before: float) -> None:
    """Kill this process by SIGKILL. A copy of it that is made at this point (fork(2)) reports what it had done.

    The copy closes the sockets at once, so that the kernel does with them what it does for a killed process.
    """
    used = _used(before)
    if os.fork():
        os.kill(os.getpid(), signal.SIGKILL)
    kept = control.fileno()
    os.closerange(3, kept)
    os.closerange(kept + 1, os.sysconf("SC_OPEN_MAX"))
    try:
        _send(control, report() | used)
    finally:
        os._exit(0)


def _stopping(decision: tuple[str, int], report: Callable[[], None]) -> Callable[[str, object], None]:
    """Return a trace function that calls `report()` at a decision and then waits to be killed, within the machine's input."""
    wanted, count = decision
    left = count

    def trace(name: str, detail: object) -> None:
        nonlocal left
        del detail
        left -= name == wanted
        if name == wanted and left == 0:
            report()
            while True:
                signal.pause()

    return trace


def _run_foreign(node: NodeConfig, program: ForeignProgram, control: socket.socket) -> dict[str, Any]:
    """Run a foreign program in a temporary folder on /run, which vanishes with the mount namespace at the latest."""
    loop = new_loop()
    with tempfile.TemporaryDirectory(dir="/run") as folder:
        context = ForeignContext(loop, node.name, node.address, Path(folder), lambda: _send(control, {"ready": True}), node.ttl)
        before = _cpu()
        report_counters = partial(_report_counters, loop, control, program.counters, lambda: context.now)
        connection = _LauncherConnection(
            loop, control, node.epoch, program.finished, {"begin": context.begin, "counters": report_counters}
        )
        program.prepare(context)
        loop.run()
        if connection.killed:
            program.kill()
        else:
            program.close()
        result = program.result()
        report = {"result": result, **result.pop("meter"), "cpu": _cpu() - before, "memory": _peak()}
        return report | {"killed": connection.killed}


_SELF_AND_CHILDREN = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)


def _cpu() -> float:
    return sum(used.ru_utime + used.ru_stime for used in map(resource.getrusage, _SELF_AND_CHILDREN))


def _peak() -> int:
    """Return the largest resident set of this process or a child, in bytes; pages shared with the launcher count too."""
    return max(resource.getrusage(who).ru_maxrss for who in _SELF_AND_CHILDREN) * 1024


def _send(control: socket.socket, message: dict[str, Any]) -> None:
    control.setblocking(True)
    control.sendall(json.dumps(message).encode() + b"\n")


def _report_counters(
    loop: Loop, control: socket.socket, counters: Callable[[], dict[str, int]], clock: Callable[[], float], period: float
) -> None:
    """Send the counters now and every `period` seconds of the run."""
    now = clock()
    _send(control, {"counters": {**counters(), "at": now}})
    loop.call_later(period - now % period, _report_counters, loop, control, counters, clock, period)


class _LauncherConnection:
    """Execute the launcher's orders and report when the program is finished.

    `orders` maps an order to the function that takes its argument.
    """

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
        # Orders are short and sent by one system call, so lines arrive whole.
        text = self._control.recv(4096)
        for line in text.splitlines() or [b'{"stop": true}']:
            for name, argument in json.loads(line).items():
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
