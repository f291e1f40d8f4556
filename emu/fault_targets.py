"""What faults act on, and the filters that throw packets away for them."""

from dataclasses import dataclass

from emu.network import EmulatedNetwork
from emu.node_processes import NodeProcesses
from emu.requirements import run
from emu.tc import TcProcess

__all__ = ["Filter", "FaultTargets"]

_LOSS_OFFSET = 10_000
"""Filters of links come after those of faults; the kernel gives places from 49152 on to filters that name none."""


class FaultTargets:
    """What faults act on: the network, the processes of the nodes, and a waiting `tc` in every namespace concerned."""

    def __init__(self, network: EmulatedNetwork, processes: NodeProcesses) -> None:
        self.network = network
        self.processes = processes
        self._tcs: dict[int | None, TcProcess] = {}
        self._used = 0
        self._prepared: dict[tuple[str, int | None], None] = {}

    def tc(self, pid: int | None) -> TcProcess:
        """The `tc` in the namespace of a process; None for this one."""
        if pid not in self._tcs:
            self._tcs[pid] = TcProcess(pid)
        return self._tcs[pid]

    def filter(self, device: str, pid: int | None, code: str, replaces_loss: bool = False) -> "Filter":
        """A filter at the ingress of a device, ready to be put in: after all others, and in place of the link's loss, if it
        is `deciding` what becomes of every packet.
        """
        tc = self.tc(pid)
        if (device, pid) not in self._prepared:
            self._prepared[device, pid] = None
            if "clsact" not in run(f"tc qdisc show dev {device}", pid=pid):
                tc.run(f"qdisc add dev {device} clsact")
        self._used += 1
        made = Filter(tc, device, self._used + (_LOSS_OFFSET if replaces_loss else 0), code)
        # What the kernel does not take is refused now and not in the middle of the run.
        made.install()
        made.remove()
        return made


@dataclass(frozen=True, slots=True)
class Filter:
    """One filter of one device; those of lower `place` come first, and losses of links after all of them."""

    tc: TcProcess
    device: str
    preference: int
    code: str

    def install(self) -> None:
        """From now on it throws packets away."""
        self.tc.run(
            f"filter add dev {self.device} ingress pref {self.preference} protocol all bpf da bytecode '{self.code}'",
        )

    def remove(self) -> None:
        """And now not any more."""
        self.tc.run(f"filter del dev {self.device} ingress pref {self.preference}")
