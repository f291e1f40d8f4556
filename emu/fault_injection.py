"""Inject faults into an emulated network: partitions, link outages and changes, host crashes, slow applications.

Packets are dropped by filters of the kernel. Filters and queues are prepared before the run, so injecting a fault
takes a few milliseconds; the log has the planned and the real times.
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

from emu.fault_targets import FaultTargets, Filter, Hook
from emu.network import EmulatedNetwork
from emu.node_processes import NodeProcesses
from emu.requirements import LOSS
from emu.shaping import LinkShape
from emu.tc import TcProcess
from protocols.errors import UnsupportedError

__all__ = ["LinkChange", "HostCrash", "LinkOutage", "InjectedFault", "FaultInjector", "NetworkPartition", "SlowApplication"]


def _drop_sources(addresses: Sequence[str]) -> str:
    """Return classic BPF that drops packets from these IPv4 addresses and leaves all others to the next filter."""
    numbers = [struct.unpack("!I", socket.inet_aton(address))[0] for address in addresses]
    steps = ["32 0 0 26", *(step for number in numbers for step in (f"21 0 1 {number}", "6 0 0 2")), "6 0 0 4294967295"]
    return f"{len(steps)},{','.join(steps)}"


@dataclass(slots=True)
class InjectedFault(ABC):
    """A fault that begins `at` seconds and lasts for `duration` seconds, None: until the end of the run.

    `verb` is its kind in a scenario, `description` its operands for the log.
    """

    verb: str
    description: str
    at: float
    duration: float | None

    @abstractmethod
    def prepare(self, targets: FaultTargets) -> None:
        """Prepare the fault before the run. Raises UnsupportedError if the kernel refuses what it needs."""

    @abstractmethod
    def begin(self) -> None:
        """Begin the fault."""

    @abstractmethod
    def end(self) -> None:
        """End the fault."""

    @property
    def count(self) -> int:
        """Number added to the counter of the fault's verb."""
        return 1

    @property
    def features(self) -> list[str]:
        """Names of the kernel features it needs (`emu.requirements.KERNEL`)."""
        return []


class _FilterFault(InjectedFault):
    """A fault made of filters."""

    _filters: list[Filter]

    @property
    def features(self) -> list[str]:
        """BPF filters, as for random loss."""
        return ["loss"]

    def begin(self) -> None:
        """Install the filters."""
        for each in self._filters:
            each.install()

    def end(self) -> None:
        """Remove the filters."""
        for each in self._filters:
            each.remove()


class NetworkPartition(_FilterFault):
    """Drop packets between hosts. `blocked` pairs each host with the hosts whose packets it does not receive."""

    def __init__(
        self, description: str, at: float, duration: float | None, blocked: Sequence[tuple[str, Sequence[str]]]
    ) -> None:
        super().__init__("partition", description, at, duration)
        self._blocked = blocked

    def prepare(self, targets: FaultTargets) -> None:
        """Make an ingress filter at the device of each host."""
        address = targets.network.address
        self._filters = [
            targets.filter(*targets.network.port(host), _drop_sources([address(name) for name in names]))
            for host, names in self._blocked
        ]


class LinkOutage(_FilterFault):
    """Drop every packet that enters one of the links between pairs of neighbours; those already on it arrive.

    With `on_arrival` packets are dropped where they arrive: also those already on a link, and not those that enter it now and
    arrive later.
    """

    def __init__(
        self,
        description: str,
        at: float,
        duration: float | None,
        pairs: Sequence[tuple[str, str]],
        on_arrival: bool = False,
    ) -> None:
        super().__init__("flap", description, at, duration)
        self._pairs = pairs
        self._hook: Hook = "ingress" if on_arrival else "egress"

    def prepare(self, targets: FaultTargets) -> None:
        """Make a filter at both ends of each link."""
        ends = [end for near, far in self._pairs for end in targets.network.ends(near, far)]
        self._filters = [targets.drop_all(*end, self._hook) for end in ends]


class LinkChange(InjectedFault):
    """Change rate (bytes per second), loss probability, or both, of links from the first to the second node of each pair."""

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
        """Token bucket and BPF filters."""
        return ["rate", "loss"]

    def prepare(self, targets: FaultTargets) -> None:
        """Prepare queues and filters. Raises UnsupportedError for links by netem or in user space."""
        for near, far in self._pairs:
            shape = targets.network.shape(near, far)
            if shape.user is not None or shape.netem is not None:
                raise UnsupportedError(
                    f"link {near}-{far}: can't change: netem or user space carries it, for a delay, keyed losses or exact "
                    "rates, and only a kernel token bucket and filter change"
                )
            out, into = targets.network.ends(near, far)
            if self._rate is not None:
                self._queues.append((targets.tc(out[1]), *_queue_commands(out[0], shape, self._rate)))
            if self._loss is not None:
                threshold = min(round(self._loss * 2**32), 2**32 - 1)
                self._filters.append(targets.filter(*into, LOSS.format(threshold=threshold), replaces_loss=True))
        # A refusal by the kernel must come before the run.
        self.begin()
        self.end()

    def begin(self) -> None:
        """Set the new rate and loss."""
        for tc, changing, _ in self._queues:
            tc.run(*changing)
        for each in self._filters:
            each.install()

    def end(self) -> None:
        """Restore rate and loss."""
        for tc, _, restoring in self._queues:
            tc.run(*restoring)
        for each in self._filters:
            each.remove()


def _queue_commands(device: str, shape: LinkShape, rate: float) -> tuple[list[str], list[str]]:
    """Return the `tc` commands that set the rate of a device, and those that restore it."""

    def limited(verb: str, limit: LinkShape) -> list[str]:
        # Changing a token bucket's rate resets the limit of its child queue.
        return [
            f"qdisc {verb} dev {device} root handle 1: {limit.sizes} {limit.bucket}",
            f"qdisc {verb} dev {device} parent 1:1 handle 10: pfifo limit {limit.queue}",
        ]

    changed = replace(shape, rate=rate)
    if shape.rate == inf:
        return limited("add", changed), [f"qdisc del dev {device} root"]
    return limited("change", changed), limited("change", shape)


class HostCrash(InjectedFault):
    """Kill the processes of hosts; at the end start new processes without any state.

    `links` are links of the hosts, as pairs of host and neighbour, on which the hosts send and receive nothing meanwhile, as
    without power; without any, the kernels of the hosts reset connections. `loses_disk`: what they stored is lost. With
    `decision`, a name and a count, it begins at that decision of the first host's machine, and not `at` a time.
    """

    def __init__(
        self,
        description: str,
        at: float,
        duration: float | None,
        names: Sequence[str],
        links: Sequence[tuple[str, str]] = (),
        loses_disk: bool = False,
        decision: tuple[str, int] | None = None,
    ) -> None:
        super().__init__("crash", description, at, duration)
        self.names = names
        self._links = links
        self._loses_disk = loses_disk
        self.decision = decision
        self._filters: list[Filter] = []

    @property
    def features(self) -> list[str]:
        """BPF filters, where links are silenced."""
        return ["loss"] if self._links else []

    def prepare(self, targets: FaultTargets) -> None:
        """Keep the node processes; prepare the filters of links."""
        self._processes = targets.processes
        devices = [targets.network.ends(host, far)[0] for host, far in self._links]
        hooks: tuple[Hook, ...] = ("egress", "ingress")
        self._filters = [targets.drop_all(*device, hook) for device in devices for hook in hooks]

    def begin(self) -> None:
        """Silence the links, then kill the processes."""
        for each in self._filters:
            each.install()
        for name in self.names:
            self._processes.crash(name)

    def end(self) -> None:
        """Start new processes."""
        for each in self._filters:
            each.remove()
        for name in self.names:
            if self._loses_disk:
                self._processes.lose_disk(name)
            self._processes.restart(name)

    @property
    def count(self) -> int:
        """Number of hosts."""
        return len(self.names)


class SlowApplication(InjectedFault):
    """Give applications a service time in seconds for each packet, with room for `capacity` waiting packets."""

    def __init__(
        self, description: str, at: float, duration: float | None, names: Sequence[str], service_time: float, capacity: int
    ) -> None:
        super().__init__("slow", description, at, duration)
        self._names, self._service_time, self._capacity = names, service_time, capacity

    def prepare(self, targets: FaultTargets) -> None:
        """Keep the node processes."""
        self._processes = targets.processes

    def begin(self) -> None:
        """Send the nodes the service time."""
        for name in self._names:
            self._processes.send(name, {"slow": [self._service_time, self._capacity]})

    def end(self) -> None:
        """Send the nodes a service time of 0."""
        for name in self._names:
            self._processes.send(name, {"slow": [0.0, 0]})

    @property
    def count(self) -> int:
        """Number of hosts."""
        return len(self._names)


class FaultInjector:
    """Prepare all faults of a run and schedule them.

    `log` has one row for each fault: planned and real times in seconds of the run. `counts` counts faults by verb.
    """

    def __init__(self, faults: Sequence[InjectedFault], network: EmulatedNetwork, processes: NodeProcesses) -> None:
        self._processes = processes
        self.log: list[dict[str, Any]] = []
        self.counts: Counter[str] = Counter()
        targets = FaultTargets(network, processes)
        for fault in sorted(faults, key=lambda fault: fault.at):
            fault.prepare(targets)
            row = {
                "verb": fault.verb,
                "what": fault.description,
                "at": fault.at if fault.at < inf else None,
                "began": None,
                "until": None,
                "ended": None,
            }
            self.log.append(row)
            if isinstance(fault, HostCrash) and fault.decision is not None:
                processes.on_decision[fault.names[0]] = partial(self._begin, fault, row)
            else:
                processes.schedule(fault.at, partial(self._begin, fault, row))

    def _begin(self, fault: InjectedFault, row: dict[str, Any]) -> None:
        fault.begin()
        self.counts[fault.verb] += fault.count
        row["began"] = time.monotonic() - self._processes.epoch
        if fault.duration is not None:
            began = fault.at if fault.at < inf else row["began"]
            row["until"] = began + fault.duration
            self._processes.schedule(began + fault.duration, partial(self._end, fault, row))

    def _end(self, fault: InjectedFault, row: dict[str, Any]) -> None:
        fault.end()
        if fault.verb == "crash":
            self.counts["restart"] += fault.count
        row["ended"] = time.monotonic() - self._processes.epoch
