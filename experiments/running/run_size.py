"""The size of a run: its receivers and the packets of its content; and smaller runs of the same scenario."""

from dataclasses import dataclass
from math import ceil, inf
from typing import Any

from experiments.scenario.cross_traffic import AimdTraffic, AnyTraffic, TcpTraffic, way_of
from experiments.scenario.scenario import Scenario
from experiments.workload.file import FileWorkload
from experiments.workload.publish import PublishWorkload
from experiments.workload.workloads import AnyWorkload
from topologies.inline import Inline
from topologies.spec import UDP_OVERHEAD, Topology

__all__ = ["RunSize", "shrunk", "size_of"]

MOST_MESSAGES = 1_000_000
"""Messages of a client that are counted at most, where nothing limits them but the network."""
FAST_LINK = 125e6
"""Bytes per second of a flow with congestion control on a path without a limit."""


@dataclass(frozen=True, slots=True)
class RunSize:
    """Hosts of a run, packets that carry its content once, and packets of its cross traffic."""

    hosts: int
    packets: int
    traffic: int = 0

    @property
    def deliveries(self) -> int:
        """Packets that arrive if every host gets all content once, and nothing is lost."""
        return self.hosts * self.packets + self.traffic


def size_of(scenario: Scenario, end: float = inf) -> RunSize:
    """Return the size of a run that ends after `end` seconds at the latest.

    Content that can't be sent within its time limit is not counted.
    """
    topology = scenario.build_topology()
    packets = sum(_packets(scenario, work) for work in scenario.files)
    packets += sum(_message_packets(scenario, work) for work in scenario.publications)
    traffic = sum(_traffic_packets(topology, flow, _span(scenario, flow, end)) for flow in scenario.traffic)
    return RunSize(sum(map(topology.size, topology.host_nodes)), max(packets, 1), traffic)


def _packets(scenario: Scenario, work: FileWorkload) -> int:
    segment, rate = scenario.segment, getattr(scenario.protocol.config, "rate", None)
    packets = work.count * ceil(work.size / segment)
    return packets if rate is None else min(packets, ceil(max(0.0, scenario.duration - work.at) * rate / segment))


def _message_packets(scenario: Scenario, work: PublishWorkload) -> int:
    """Return the packets that carry the messages of a workload once."""
    segment, rate = scenario.segment, getattr(scenario.protocol.config, "rate", None)
    packets = max(1, ceil(work.mean_size / segment))
    fastest = inf if rate is None else rate / (packets * segment)
    expected = min(work.expected_messages(scenario.duration, fastest), MOST_MESSAGES)
    return ceil(expected) * packets * work.clients * len(work.hosts)


def _traffic_packets(topology: Topology, flow: AnyTraffic, span: float) -> int:
    """Return the packets that a flow sends in `span` seconds at most; with congestion control as many as its path carries."""
    if isinstance(flow, AimdTraffic | TcpTraffic):
        slowest = min(link.rate for link in way_of(flow, topology))
        return ceil(span * (FAST_LINK if slowest == inf else slowest) / (flow.size + UDP_OVERHEAD))
    return ceil(span / flow.gap)


def _span(scenario: Scenario, flow: AnyTraffic, end: float = inf) -> float:
    """Return the seconds that a flow lasts at most, in a run that ends after `end` seconds at the latest."""
    return max(0.0, min(scenario.duration, end, inf if flow.end is None else flow.end) - flow.begin)


def shrunk(scenario: Scenario, hosts: int, packets: int, traffic: float = 1.0) -> Scenario:
    """Return a run of the same scenario with about so many hosts and packets of content, or as many as it has.

    Flows of cross traffic end after this share of their time. Members of a group that the scenario names stay. There are no
    faults.
    """
    size = size_of(scenario)
    submitted = sum(work.count * ceil(work.size / scenario.segment) for work in scenario.files)
    submitted += sum(_message_packets(scenario, work) for work in scenario.publications)
    share = min(1.0, packets / (submitted or 1))
    works = tuple(_shorter(scenario, work, share) for work in scenario.workload)
    topology = _thinner(scenario, min(1.0, hosts / size.hosts))
    flows = tuple(flow.model_copy(update={"end": flow.begin + traffic * _span(scenario, flow)}) for flow in scenario.traffic)
    return scenario.model_copy(update={"topology": topology, "workload": works, "traffic": flows, "faults": ()})


def _shorter(scenario: Scenario, work: AnyWorkload, share: float) -> AnyWorkload:
    """Return a part of a workload: fewer messages, fewer files, or a smaller file."""
    if isinstance(work, PublishWorkload):
        packets = max(1, ceil(work.mean_size / scenario.segment)) * work.clients * len(work.hosts)
        return work.model_copy(update={"count": max(1, round(share * _message_packets(scenario, work) / packets))})
    if not isinstance(work, FileWorkload):
        return work
    count = max(1, round(work.count * share))
    size = ceil(work.size * min(1.0, share * work.count / count))
    return work.model_copy(update={"count": count, "size": size})


def _thinner(scenario: Scenario, share: float) -> Any:
    """Return the topology with a share of the members of each group, at least those that the scenario names."""
    topology, model = scenario.build_topology(), scenario.topology
    named = [name for _, names in scenario.named_hosts() for name in names if name not in topology.host_nodes]
    least = max((topology.member(host).place + 2 for host in named), default=1)

    def fewer(count: int) -> int:
        return min(count, max(least, ceil(count * share)))

    if isinstance(model, Inline):
        nodes = {
            name: node if node.count is None else node.model_copy(update={"count": fewer(node.count)})
            for name, node in model.nodes.items()
        }
        return model.model_copy(update={"nodes": nodes})
    return model.model_copy(update={"receivers": fewer(model.receivers)})
