"""When the faults of a scenario kept packets from a host, which a trace shows as received, and a host from working."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf
from typing import Any

from experiments.report.run_report_routes import Routes
from experiments.scenario.fault_schedule import Fault
from sim.faults import sides_of
from topologies.spec import Topology

__all__ = ["Outage", "Outages"]


@dataclass(frozen=True, slots=True)
class Outage:
    """A time in which a packet does not reach a host: the `cause`, and words for it; `until` in seconds."""

    cause: str
    text: str
    until: float
    parks: bool = False
    """Whether packets are kept and arrive at `until`."""


class Outages:
    """The faults of a run by time; `begins` are the times of crashes that happen at a decision of their host."""

    def __init__(self, faults: Iterable[Mapping[str, Any]], topology: Topology, begins: Mapping[str, float]) -> None:
        self._topology = topology
        self._routes = Routes(topology)
        self._faults: list[tuple[float, float, Fault]] = []
        for plain in faults:
            fault = Fault.model_validate(_as_written(plain))
            at = fault.at if fault.at is not None else begins.get((fault.crash or ("",))[0], inf)
            period = fault.every if fault.every is not None else 2 * (fault.lasts or 0.0)
            for number in range(fault.times):
                begin = at + number * period
                self._faults.append((begin, inf if fault.lasts is None else begin + fault.lasts, fault))

    def at_reception(self, source: str, host: str, when: float) -> Outage | None:
        """Return what keeps a packet that reaches a host at `when` from its machine; None for nothing."""
        for begin, end, fault in self._during(when):
            if fault.verb in ("partition", "hold") and self._divides(fault, source, host):
                return Outage("partition", f"{_span(fault.verb, begin, end)} of {source} and {host}", end, fault.verb == "hold")
            if fault.flap is not None and self._isolates(fault, source, host):
                return Outage("partition", f"{_span('outage of link ' + '-'.join(fault.flap), begin, end)}", end)
            if fault.verb == "crash" and self._names(fault, host):
                return Outage("crash", f"{_span('crash', begin, end)} of {host}", end)
        return None

    def on_way(self, source: str, host: str, when: float) -> Outage | None:
        """Return the link that was down on the way of a packet sent at `when`; None for none."""
        path = self._routes.path(source, host)
        links = {frozenset(self._node(name) for name in pair) for pair in pairwise(path)}
        for begin, end, fault in self._during(when):
            if fault.flap is not None and frozenset(map(self._node, fault.flap)) in links:
                return Outage("partition", _span("outage of link " + "-".join(fault.flap), begin, end), end)
        return None

    def of_host(self, host: str, verbs: Sequence[str], begin: float, end: float) -> Outage | None:
        """Return the first fault of these verbs at a host that lasts at any time from `begin` to `end`."""
        causes = {"crash": "crash", "slow": "slow receiver", "drift": "clock", "step": "clock"}
        for begins, ends, fault in self._faults:
            if fault.verb in verbs and begins <= end and ends >= begin and self._names(fault, host):
                return Outage(causes[fault.verb], f"{_span(fault.verb, begins, ends)} of {host}", ends)
        return None

    def _during(self, when: float) -> list[tuple[float, float, Fault]]:
        return [item for item in self._faults if item[0] <= when < item[1]]

    def _names(self, fault: Fault, host: str) -> bool:
        return any(host in self._topology.hosts_of(name) for name in fault.hosts)

    def _divides(self, fault: Fault, source: str, host: str) -> bool:
        sides = sides_of(self._topology, fault.sides)
        place = {name: number for number, side in enumerate(sides) for name in side}
        if source not in place or host not in place or place[source] == place[host]:
            return False
        return place[source] == 0 if fault.oneway else True

    def _isolates(self, fault: Fault, source: str, host: str) -> bool:
        """Return whether a link of a counted group or of one of its members is down: its members are apart from all others."""
        for name in fault.flap or ():
            if name in self._topology.graph and self._topology.node(name).count is None:
                continue
            members = self._topology.hosts_of(name)
            if (source in members) != (host in members) or (source in members and source != host):
                return True
        return False

    def _node(self, name: str) -> str:
        return name if name in self._topology.graph else self._topology.member(name).node


def _as_written(plain: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in plain.items() if value is not None}


def _span(what: str, begin: float, end: float) -> str:
    return f"{what} from {begin:g} s" + ("" if end == inf else f" to {end:g} s")
