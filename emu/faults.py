"""What goes wrong in an emulated network, at times: partitions, links that are down, crashes, slow readers.

Filters in the kernel throw packets away where they arrive. What they need is made ready before the run, so that a fault takes a
moment only. The log says when each really began and ended.
"""

import socket
import struct
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from emu.crew import Crew
from emu.doctor import run
from emu.network import Network
from emu.tc import Tc

__all__ = ["Crash", "Cut", "Fault", "Faults", "Partition", "Slow", "Stage"]

_ALL = "1,6 0 0 2"
"""Classic BPF: throw everything away."""


def _from_any(addresses: Sequence[str]) -> str:
    """Classic BPF: throw away what these IPv4 addresses sent, and let the filters after this one decide on the rest."""
    numbers = [struct.unpack("!I", socket.inet_aton(address))[0] for address in addresses]
    steps = ["32 0 0 26", *(step for number in numbers for step in (f"21 0 1 {number}", "6 0 0 2")), "6 0 0 4294967295"]
    return f"{len(steps)},{','.join(steps)}"


class Stage:
    """What faults act on: the network, the processes of the nodes, and a waiting `tc` in every namespace concerned."""

    def __init__(self, network: Network, crew: Crew) -> None:
        self.network = network
        self.crew = crew
        self._tcs: dict[int | None, Tc] = {}
        self._used = 0
        self._guarded: dict[tuple[str, int | None], None] = {}

    def filter(self, device: str, pid: int | None, code: str) -> "Filter":
        """A filter at the ingress of a device, ready to be put in."""
        if pid not in self._tcs:
            self._tcs[pid] = Tc(pid)
        tc = self._tcs[pid]
        if (device, pid) not in self._guarded:
            self._guarded[device, pid] = None
            if "clsact" not in run(f"tc qdisc show dev {device}", pid=pid):
                tc.run(f"qdisc add dev {device} clsact")
        self._used += 1
        made = Filter(tc, device, self._used, code)
        # What the kernel does not take is refused now and not in the middle of the run.
        made.put()
        made.take()
        return made


@dataclass(frozen=True, slots=True)
class Filter:
    """One filter of one device; those of lower `place` come first, and losses of links after all of them."""

    tc: Tc
    device: str
    place: int
    code: str

    def put(self) -> None:
        """From now on it throws packets away."""
        self.tc.run(
            f"filter add dev {self.device} ingress pref {self.place} protocol all bpf da bytecode '{self.code}'",
        )

    def take(self) -> None:
        """And now not any more."""
        self.tc.run(f"filter del dev {self.device} ingress pref {self.place}")


@dataclass(slots=True)
class Fault(ABC):
    """Something that goes wrong `at` a time for `lasts` seconds, None: to the end of the run. `what` tells people."""

    verb: str
    what: str
    at: float
    lasts: float | None

    @abstractmethod
    def prepare(self, stage: Stage) -> None:
        """Before the run: get ready. UnsupportedError for what the kernel does not take."""

    @abstractmethod
    def begin(self) -> None:
        """It goes wrong now."""

    @abstractmethod
    def end(self) -> None:
        """It is over."""

    @property
    def weight(self) -> int:
        """As how many it counts."""
        return 1

    @property
    def needs(self) -> list[str]:
        """The kernel features it takes, as `emu.doctor.KERNEL` calls them."""
        return []


class _Filtered(Fault):
    """Packets are thrown away by filters."""

    _filters: list[Filter]

    @property
    def needs(self) -> list[str]:
        """Filters like those that lose packets."""
        return ["loss"]

    def begin(self) -> None:
        """Put the filters in."""
        for one in self._filters:
            one.put()

    def end(self) -> None:
        """Take them out."""
        for one in self._filters:
            one.take()


class Partition(_Filtered):
    """Hosts don't hear others: `deaf` names each host with those whose packets it does not get."""

    def __init__(self, what: str, at: float, lasts: float | None, deaf: Sequence[tuple[str, Sequence[str]]]) -> None:
        super().__init__("partition", what, at, lasts)
        self._deaf = deaf

    def prepare(self, stage: Stage) -> None:
        """A filter before each of the hosts, where packets arrive."""
        address = stage.network.address
        self._filters = [
            stage.filter(*stage.network.port(host), _from_any([address(name) for name in names])) for host, names in self._deaf
        ]


class Cut(_Filtered):
    """Links between pairs of neighbours carry nothing."""

    def __init__(self, what: str, at: float, lasts: float | None, pairs: Sequence[tuple[str, str]]) -> None:
        super().__init__("flap", what, at, lasts)
        self._pairs = pairs

    def prepare(self, stage: Stage) -> None:
        """A filter at both ends of each."""
        ends = [end for near, far in self._pairs for end in stage.network.ends(near, far)]
        self._filters = [stage.filter(*end, _ALL) for end in ends]


class Crash(Fault):
    """Processes of hosts are killed, and at the end new ones start that know nothing."""

    def __init__(self, what: str, at: float, lasts: float | None, names: Sequence[str]) -> None:
        super().__init__("crash", what, at, lasts)
        self._names = names

    def prepare(self, stage: Stage) -> None:
        """Nothing but to know whom to tell."""
        self._crew = stage.crew

    def begin(self) -> None:
        """Kill them."""
        for name in self._names:
            self._crew.crash(name)

    def end(self) -> None:
        """Start them anew."""
        for name in self._names:
            self._crew.restart(name)

    @property
    def weight(self) -> int:
        """Every host counts."""
        return len(self._names)


class Slow(Fault):
    """Applications need `takes` seconds for each packet, and `room` packets may wait for them."""

    def __init__(self, what: str, at: float, lasts: float | None, names: Sequence[str], takes: float, room: int) -> None:
        super().__init__("slow", what, at, lasts)
        self._names, self._takes, self._room = names, takes, room

    def prepare(self, stage: Stage) -> None:
        """Nothing but to know whom to tell."""
        self._crew = stage.crew

    def begin(self) -> None:
        """Tell the nodes."""
        for name in self._names:
            self._crew.tell(name, {"slow": [self._takes, self._room]})

    def end(self) -> None:
        """They read as fast as they can."""
        for name in self._names:
            self._crew.tell(name, {"slow": [0.0, 0]})

    @property
    def weight(self) -> int:
        """Every host counts."""
        return len(self._names)


class Faults:
    """All faults of a run. `log` says what was done when, planned and really, in seconds of the run."""

    def __init__(self, faults: Sequence[Fault], network: Network, crew: Crew) -> None:
        self._crew = crew
        self.log: list[dict[str, Any]] = []
        self.counts: Counter[str] = Counter()
        stage = Stage(network, crew)
        for fault in sorted(faults, key=lambda fault: fault.at):
            fault.prepare(stage)
            row = {"verb": fault.verb, "what": fault.what, "at": fault.at, "began": None, "until": None, "ended": None}
            self.log.append(row)
            crew.at(fault.at, partial(self._begin, fault, row))

    def _begin(self, fault: Fault, row: dict[str, Any]) -> None:
        fault.begin()
        self.counts[fault.verb] += fault.weight
        row["began"] = time.monotonic() - self._crew.epoch
        if fault.lasts is not None:
            row["until"] = fault.at + fault.lasts
            self._crew.at(fault.at + fault.lasts, partial(self._end, fault, row))

    def _end(self, fault: Fault, row: dict[str, Any]) -> None:
        fault.end()
        if fault.verb == "crash":
            self.counts["restart"] += fault.weight
        row["ended"] = time.monotonic() - self._crew.epoch
