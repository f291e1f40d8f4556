"""The parts of an emulation that faults act on: the network, the node processes, and filters that drop packets."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from emu.network import EmulatedNetwork
from emu.node_processes import NodeProcesses
from emu.requirements import run
from emu.tc import TcProcess

__all__ = ["Filter", "FaultTargets", "Hook"]

Hook: TypeAlias = Literal["ingress", "egress"]
"""Where a filter of a device is: what arrives passes the one, what leaves the other, before its queue."""
_SHOT, _STOLEN = 2, 4
"""Verdicts of tc-bpf(8) that drop a packet: the sender sees the first, and takes the second for sent."""

_FIRST = 100
"""Preference of the first filter of a fault: after that of a router with a machine (`emu.network`), which is for IPv4 only."""
_LOSS_OFFSET = 10_000
"""Added to the preference of filters that replace a link's loss, so that they run after those of faults.

The kernel assigns preferences from 49152 on to filters that state none, such as the links' losses.
"""


class FaultTargets:
    """The network, the node processes, and one running `tc` for each namespace in use."""

    def __init__(self, network: EmulatedNetwork, processes: NodeProcesses) -> None:
        self.network = network
        self.processes = processes
        self._tcs: dict[int | None, TcProcess] = {}
        self._used = 0
        self._prepared: dict[tuple[str, int | None], None] = {}

    def tc(self, pid: int | None) -> TcProcess:
        """Return the `tc` process in the network namespace of process `pid`; None is this process's namespace."""
        if pid not in self._tcs:
            self._tcs[pid] = TcProcess(pid)
        return self._tcs[pid]

    def drop_all(self, device: str, pid: int | None, hook: Hook) -> "Filter":
        """Make a filter that drops every packet at the ingress or egress of a device.

        At the egress that is unnoticed: the kernel's TCP would take a refusal of the device for a full queue.
        """
        return self.filter(device, pid, f"1,6 0 0 {_SHOT if hook == 'ingress' else _STOLEN}", hook)

    def filter(
        self, device: str, pid: int | None, code: str, hook: Hook = "ingress", *, replaces_loss: bool = False
    ) -> "Filter":
        """Make a filter for the ingress or egress of a device; `code` is classic BPF in the notation of tc-bpf(8).

        With `replaces_loss` it runs after the filters of all other faults and instead of the link's loss. It is installed and
        removed once, so that a refusal by the kernel (UnsupportedError) comes before the run.
        """
        tc = self.tc(pid)
        if (device, pid) not in self._prepared:
            self._prepared[device, pid] = None
            if "clsact" not in run(f"tc qdisc show dev {device}", pid=pid):
                tc.run(f"qdisc add dev {device} clsact")
        made = Filter(tc, device, hook, _FIRST + self._used + (_LOSS_OFFSET if replaces_loss else 0), code)
        self._used += 1
        # A refusal by the kernel must come before the run.
        made.install()
        made.remove()
        return made


@dataclass(frozen=True, slots=True)
class Filter:
    """A filter of one device. Filters run in the order of their `preference`, losses of links last."""

    tc: TcProcess
    device: str
    hook: Hook
    preference: int
    code: str

    def install(self) -> None:
        """Start dropping packets."""
        self.tc.run(
            f"filter add dev {self.device} {self.hook} pref {self.preference} protocol all bpf da bytecode '{self.code}'",
        )

    def remove(self) -> None:
        """Stop dropping packets."""
        self.tc.run(f"filter del dev {self.device} {self.hook} pref {self.preference}")
