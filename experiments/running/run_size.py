"""The size of a run: its receivers and the packets of its content; and smaller runs of the same scenario."""

from dataclasses import dataclass
from math import ceil, inf
from typing import Any

from experiments.scenario.scenario import Scenario
from experiments.workload.file import FileWorkload
from experiments.workload.publish import PublishWorkload
from experiments.workload.workloads import AnyWorkload
from topologies.inline import Inline

__all__ = ["RunSize", "shrunk", "size_of"]

MOST_MESSAGES = 1_000_000
"""Messages of a client that are counted at most, where nothing limits them but the network."""


@dataclass(frozen=True, slots=True)
class RunSize:
    """Hosts of a run, and packets that carry its content once."""

    hosts: int
    packets: int

    @property
    def deliveries(self) -> int:
        """Packets of content that arrive if every host gets everything once."""
        return self.hosts * self.packets


def size_of(scenario: Scenario) -> RunSize:
    """Return the size of a run; content that can't be sent within its time limit is not counted."""
    topology = scenario.build_topology()
    packets = sum(_packets(scenario, work) for work in scenario.files)
    packets += sum(_message_packets(scenario, work) for work in scenario.publications)
    return RunSize(sum(map(topology.size, topology.host_nodes)), max(packets, 1))


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


def shrunk(scenario: Scenario, hosts: int, packets: int) -> Scenario:
    """Return a run of the same scenario with about so many hosts and packets of content, or as many as it has.

    Members of a group that the scenario names stay. There are no faults.
    """
    size = size_of(scenario)
    submitted = sum(work.count * ceil(work.size / scenario.segment) for work in scenario.files)
    submitted += sum(_message_packets(scenario, work) for work in scenario.publications)
    share = min(1.0, packets / (submitted or 1))
    works = tuple(_shorter(scenario, work, share) for work in scenario.workload)
    topology = _thinner(scenario, min(1.0, hosts / size.hosts))
    return scenario.model_copy(update={"topology": topology, "workload": works, "faults": ()})


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
