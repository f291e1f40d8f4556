"""The cross traffic of a scenario: its parameters, and the programs of its source and sink."""

from collections.abc import Iterable, Mapping
from itertools import pairwise
from math import inf
from typing import Annotated, Any, Literal, TypeAlias

import networkx as nx
from pydantic import BaseModel, ConfigDict, Discriminator, Field

from protocols.cross import AimdSource, BulkSource, FlowSink, Gaps, PacedSource, constant, on_off, poisson
from protocols.cross.wire import LOAD_SIZE
from protocols.errors import ConfigError
from protocols.hosting import PortsHost
from protocols.machine import Event
from topologies.spec import UDP_OVERHEAD, LinkSpec, Topology
from topologies.units import Duration, Rate, Size

__all__ = [
    "AimdTraffic",
    "AnyTraffic",
    "ConstantTraffic",
    "FlowEnd",
    "FlowSource",
    "OnOffTraffic",
    "PoissonTraffic",
    "TcpTraffic",
    "check_flow",
    "flow_row",
    "way_of",
]


class _Traffic(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    source: str = Field(alias="from", description="host that sends")
    sink: str = Field(alias="to", description="host that receives")
    size: Size = Field(default=1000, ge=LOAD_SIZE, le=65_507, description="bytes of UDP payload of each packet")
    begin: Duration = Field(default=0.0, description="time at which the flow begins")
    end: Duration | None = Field(default=None, description="time at which the flow ends; none: at the end of the run")


class _Paced(_Traffic):
    rate: Rate = Field(description="rate in bits per second, including 42 bytes of headers per packet")

    @property
    def gap(self) -> float:
        """Mean interval between packets while the source sends, in seconds."""
        return (self.size + UDP_OVERHEAD) / self.rate


class ConstantTraffic(_Paced):
    """Packets at constant intervals."""

    kind: Literal["constant"] = "constant"

    def gaps(self) -> Gaps:
        """Return the distribution of the intervals between packets."""
        return constant(self.gap)


class PoissonTraffic(_Paced):
    """Packets at exponentially distributed intervals (a Poisson process)."""

    kind: Literal["poisson"] = "poisson"

    def gaps(self) -> Gaps:
        """Return the distribution of the intervals between packets."""
        return poisson(self.gap)


class OnOffTraffic(_Paced):
    """Bursts at `rate` and pauses, both of exponentially distributed length."""

    kind: Literal["on-off"] = "on-off"
    # Not named "on" and "off", which YAML reads as true and false.
    burst: Duration = Field(default=0.5, gt=0.0, description="mean length of a burst")
    silence: Duration = Field(default=0.5, gt=0.0, description="mean length of a pause")

    def gaps(self) -> Gaps:
        """Return the distribution of the intervals between packets."""
        return on_off(self.gap, self.burst, self.silence)


class AimdTraffic(_Traffic):
    """A flow that always has data to send, with the congestion control of TCP Reno."""

    kind: Literal["aimd"] = "aimd"


class TcpTraffic(_Traffic):
    """A flow that always has data to send, over the TCP of its hosts (`connections`)."""

    kind: Literal["tcp"] = "tcp"


AnyTraffic: TypeAlias = Annotated[
    ConstantTraffic | PoissonTraffic | OnOffTraffic | AimdTraffic | TcpTraffic, Discriminator("kind")
]
"""Any kind of cross traffic."""


def check_flow(flow: AnyTraffic, topology: Topology) -> None:
    """ConfigError, beginning with the key, for a flow to its own host, without duration, or without a bound."""
    if flow.source == flow.sink:
        raise ConfigError(f"to: value {flow.sink!r} is not allowed; another host than 'from'")
    if flow.end is not None and flow.end <= flow.begin:
        raise ConfigError(f"end: value {flow.end!r} is not allowed; later than begin, {flow.begin!r}")
    if isinstance(flow, AimdTraffic | TcpTraffic) and not _is_bounded(flow, topology):
        ways = f"from {flow.source} to {flow.sink}"
        raise ConfigError(f"kind: value {flow.kind!r} is not allowed; a rate of a link on the way {ways}, else it has no limit")


def _is_bounded(flow: AimdTraffic | TcpTraffic, topology: Topology) -> bool:
    """Return whether anything limits a flow that always has data to send: rates, processors, or a window and a delay."""
    way = way_of(flow, topology)
    nodes = (topology.node(name) for name in topology.graph)
    if any(link.rate < inf for link in way) or any(node.model is not None for node in nodes):
        return True
    takes_time = any(link.delay or link.jitter is not None for link in way)
    loses = any(link.loss.rate or link.corrupt or link.bit_errors for link in way)
    return takes_time and (loses or isinstance(flow, TcpTraffic))


def way_of(flow: AnyTraffic, topology: Topology) -> list[LinkSpec]:
    """Return the links from the source of a flow to its sink."""
    near, far = (topology.member(name).node for name in (flow.source, flow.sink))
    # Two members of a counted group have one node, and each a link to its neighbour.
    way = nx.shortest_path(topology.graph, near, far) if near != far else [near, *topology.graph.successors(near), near]
    return [topology.link(*edge) for edge in pairwise(way)]


class _FlowProgram:
    """The part that the programs at both ends of flow `number` share: crashes of their hosts only interrupt the flow."""

    def __init__(self, number: int, spec: AnyTraffic) -> None:
        self._number = number
        self._spec = spec

    def restarted_after(self, times: int) -> None:
        """Do nothing: the flow continues after any number of crashes."""

    def crash(self) -> None:
        """Do nothing: packets sent and received stay counted, and the flow continues when the host restarts."""

    def finished(self) -> bool:
        """Return True, since a run does not wait for cross traffic."""
        return True


class FlowSource(_FlowProgram):
    """The program of the host that sends a flow to a port of another."""

    def __init__(self, number: int, spec: AnyTraffic, port: int) -> None:
        super().__init__(number, spec)
        self._port = port
        self._machines: list[AimdSource | BulkSource | PacedSource] = []

    def start(self, host: PortsHost) -> None:
        """Run a source on the host."""
        spec, end = self._spec, inf if self._spec.end is None else self._spec.end
        sink = host.address_of(spec.sink, self._port)
        machine: AimdSource | BulkSource | PacedSource
        if isinstance(spec, TcpTraffic):
            machine = BulkSource(host, self._number, sink, spec.size, spec.begin, end)
        elif isinstance(spec, AimdTraffic):
            machine = AimdSource(host, self._number, sink, spec.size, spec.begin, end)
        else:
            machine = PacedSource(host, self._number, sink, spec.size, spec.gaps(), spec.begin, end)
        self._machines.append(machine)
        host.run(machine, _ignore)

    def result(self) -> dict[str, Any]:
        """Return the number of packets sent."""
        return {"role": "cross", "flow": self._number, "sent": sum(machine.sent for machine in self._machines)}


class FlowEnd(_FlowProgram):
    """The program of the host that receives a flow."""

    def __init__(self, number: int, spec: AnyTraffic) -> None:
        super().__init__(number, spec)
        self._machines: list[FlowSink] = []

    def start(self, host: PortsHost) -> None:
        """Run a sink on the host."""
        machine = FlowSink(host, self._number, isinstance(self._spec, AimdTraffic), isinstance(self._spec, TcpTraffic))
        self._machines.append(machine)
        host.run(machine, _ignore)

    def result(self) -> dict[str, Any]:
        """Return the numbers of packets and bytes received."""
        received, octets = (sum(getattr(machine, key) for machine in self._machines) for key in ("received", "octets"))
        return {"role": "cross", "flow": self._number, "received": received, "octets": octets}


def flow_row(number: int, spec: AnyTraffic, results: Iterable[Mapping[str, Any]], now: float) -> dict[str, Any]:
    """Return the metrics of one flow, from the results of source and sink in `results`.

    Goodput is UDP payload received over the time from `begin` to `end`, or to `now` (seconds).
    """
    found: dict[str, int] = {"sent": 0, "received": 0, "octets": 0}
    for end in results:
        if end["flow"] == number:
            found.update({key: end[key] for key in found if key in end})
    span = (now if spec.end is None else min(now, spec.end)) - spec.begin
    return {
        "kind": spec.kind,
        "from": spec.source,
        "to": spec.sink,
        "sent": found["sent"],
        "received": found["received"],
        "missing": 1 - found["received"] / found["sent"] if found["sent"] else 0.0,
        "goodput_mbit_s": found["octets"] * 8e-6 / span if span > 0 else None,
    }


def _ignore(event: Event) -> None:
    del event
