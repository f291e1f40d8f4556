"""What goes wrong in an emulated network, at times: partitions, links that are down or change, crashes, slow readers.

Filters in the kernel throw packets away where they arrive. What they need is made ready before the run, so that a fault takes a
moment only. The log says when each really began and ended.
"""

import socket
import struct
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import inf
from typing import Any

from emu.fault_targets import FaultTargets, Filter
from emu.network import EmulatedNetwork
from emu.node_processes import NodeProcesses
from emu.requirements import LOSS
from emu.shaping import LinkShape
from emu.tc import TcProcess
from protocols.errors import UnsupportedError

__all__ = ["LinkChange", "HostCrash", "LinkOutage", "InjectedFault", "FaultInjector", "NetworkPartition", "SlowApplication"]

_DROP_ALL = "1,6 0 0 2"
"""Classic BPF: throw everything away."""


def _drop_sources(addresses: Sequence[str]) -> str:
    """Classic BPF: throw away what these IPv4 addresses sent, and let the filters after this one decide on the rest."""
    numbers = [struct.unpack("!I", socket.inet_aton(address))[0] for address in addresses]
    steps = ["32 0 0 26", *(step for number in numbers for step in (f"21 0 1 {number}", "6 0 0 2")), "6 0 0 4294967295"]
    return f"{len(steps)},{','.join(steps)}"


@dataclass(slots=True)
class InjectedFault(ABC):
    """Something that goes wrong `at` a time for `lasts` seconds, None: to the end of the run. `what` tells people."""

    verb: str
    description: str
    at: float
    duration: float | None

    @abstractmethod
    def prepare(self, targets: FaultTargets) -> None:
        """Before the run: get ready. UnsupportedError for what the kernel does not take."""

    @abstractmethod
    def begin(self) -> None:
        """It goes wrong now."""

    @abstractmethod
    def end(self) -> None:
        """It is over."""

    @property
    def count(self) -> int:
        """As how many it counts."""
        return 1

    @property
    def features(self) -> list[str]:
        """The kernel features it takes, as `emu.requirements.KERNEL` calls them."""
        return []


class _FilterFault(InjectedFault):
    """Packets are thrown away by filters."""

    _filters: list[Filter]

    @property
    def features(self) -> list[str]:
        """Filters like those that lose packets."""
        return ["loss"]

    def begin(self) -> None:
        """Put the filters in."""
        for installed in self._filters:
            installed.install()

    def end(self) -> None:
        """Take them out."""
        for installed in self._filters:
            installed.remove()


class NetworkPartition(_FilterFault):
    """Hosts don't hear others: `deaf` names each host with those whose packets it does not get."""

    def __init__(
        self, description: str, at: float, duration: float | None, blocked: Sequence[tuple[str, Sequence[str]]]
    ) -> None:
        super().__init__("partition", description, at, duration)
        self._blocked = blocked

    def prepare(self, targets: FaultTargets) -> None:
        """A filter before each of the hosts, where packets arrive."""
        address = targets.network.address
        self._filters = [
            targets.filter(*targets.network.port(host), _drop_sources([address(name) for name in names]))
            for host, names in self._blocked
        ]


class LinkOutage(_FilterFault):
    """Links between pairs of neighbours carry nothing."""

    def __init__(self, description: str, at: float, duration: float | None, pairs: Sequence[tuple[str, str]]) -> None:
        super().__init__("flap", description, at, duration)
        self._pairs = pairs

    def prepare(self, targets: FaultTargets) -> None:
        """A filter at both ends of each."""
        ends = [end for near, far in self._pairs for end in targets.network.ends(near, far)]
        self._filters = [targets.filter(*end, _DROP_ALL) for end in ends]


class LinkChange(InjectedFault):
    """Links from the first to the second of each pair get another rate (bytes per second), another loss, or both."""

    def __init__(
        self,
        description: str,
        at: float,
        duration: float | None,
        pairs: Sequence[tuple[str, str]],
        rate: float | None,
        loss: float | None,
    ) -> None:
        super().__init__("change", description, at, duration)
        self._pairs, self._rate, self._loss = pairs, rate, loss
        self._filters: list[Filter] = []
        self._queues: list[tuple[TcProcess, list[str], list[str]]] = []

    @property
    def features(self) -> list[str]:
        """What links of this kind need."""
        return ["rate", "loss"]

    def prepare(self, targets: FaultTargets) -> None:
        """UnsupportedError for links that the kernel does not carry alone."""
        for near, far in self._pairs:
            shape = targets.network.shape(near, far)
            if shape.user is not None or shape.netem is not None:
                raise UnsupportedError(
                    f"link {near}-{far}: can't change, since the kernel's own queue and filter don't carry it"
                )
            out, into = targets.network.ends(near, far)
            if self._rate is not None:
                self._queues.append((targets.tc(out[1]), *_queue_commands(out[0], shape, self._rate)))
            if self._loss is not None:
                threshold = min(round(self._loss * 2**32), 2**32 - 1)
                self._filters.append(targets.filter(*into, LOSS.format(threshold=threshold), replaces_loss=True))
        # What the kernel does not take is refused now and not in the middle of the run.
        self.begin()
        self.end()

    def begin(self) -> None:
        """The new rate and loss."""
        for tc, changing, _ in self._queues:
            tc.run(*changing)
        for installed in self._filters:
            installed.install()

    def end(self) -> None:
        """Those of before."""
        for tc, _, restoring in self._queues:
            tc.run(*restoring)
        for installed in self._filters:
            installed.remove()


def _queue_commands(device: str, shape: LinkShape, rate: float) -> tuple[list[str], list[str]]:
    """For `tc`: to another rate, and back."""

    def limited(verb: str, limit: LinkShape) -> list[str]:
        # A bucket that changes its rate gives its queue the bucket's limit.
        return [
            f"qdisc {verb} dev {device} root handle 1: {limit.sizes} {limit.bucket}",
            f"qdisc {verb} dev {device} parent 1:1 handle 10: pfifo limit {limit.queue}",
        ]

    changed = replace(shape, rate=rate)
    if shape.rate == inf:
        return limited("add", changed), [f"qdisc del dev {device} root"]
    return limited("change", changed), limited("change", shape)


class HostCrash(InjectedFault):
    """Processes of hosts are killed, and at the end new ones start that know nothing."""

    def __init__(self, description: str, at: float, duration: float | None, names: Sequence[str]) -> None:
        super().__init__("crash", description, at, duration)
        self._names = names

    def prepare(self, targets: FaultTargets) -> None:
        """Nothing but to know whom to tell."""
        self._processes = targets.processes

    def begin(self) -> None:
        """Kill them."""
        for name in self._names:
            self._processes.crash(name)

    def end(self) -> None:
        """Start them anew."""
        for name in self._names:
            self._processes.restart(name)

    @property
    def count(self) -> int:
        """Every host counts."""
        return len(self._names)


class SlowApplication(InjectedFault):
    """Applications need `takes` seconds for each packet, and `room` packets may wait for them."""

    def __init__(
        self, description: str, at: float, duration: float | None, names: Sequence[str], service_time: float, capacity: int
    ) -> None:
        super().__init__("slow", description, at, duration)
        self._names, self._service_time, self._capacity = names, service_time, capacity

    def prepare(self, targets: FaultTargets) -> None:
        """Nothing but to know whom to tell."""
        self._processes = targets.processes

    def begin(self) -> None:
        """Tell the nodes."""
        for name in self._names:
            self._processes.send(name, {"slow": [self._service_time, self._capacity]})

    def end(self) -> None:
        """They read as fast as they can."""
        for name in self._names:
            self._processes.send(name, {"slow": [0.0, 0]})

    @property
    def count(self) -> int:
        """Every host counts."""
        return len(self._names)


class FaultInjector:
    """All faults of a run. `log` says what was done when, planned and really, in seconds of the run."""

    def __init__(self, faults: Sequence[InjectedFault], network: EmulatedNetwork, processes: NodeProcesses) -> None:
        self._processes = processes
        self.log: list[dict[str, Any]] = []
        self.counts: Counter[str] = Counter()
        targets = FaultTargets(network, processes)
        for fault in sorted(faults, key=lambda fault: fault.at):
            fault.prepare(targets)
            row = {"verb": fault.verb, "what": fault.description, "at": fault.at, "began": None, "until": None, "ended": None}
            self.log.append(row)
            processes.schedule(fault.at, partial(self._begin, fault, row))

    def _begin(self, fault: InjectedFault, row: dict[str, Any]) -> None:
        fault.begin()
        self.counts[fault.verb] += fault.count
        row["began"] = time.monotonic() - self._processes.epoch
        if fault.duration is not None:
            row["until"] = fault.at + fault.duration
            self._processes.schedule(fault.at + fault.duration, partial(self._end, fault, row))

    def _end(self, fault: InjectedFault, row: dict[str, Any]) -> None:
        fault.end()
        if fault.verb == "crash":
            self.counts["restart"] += fault.count
        row["ended"] = time.monotonic() - self._processes.epoch
