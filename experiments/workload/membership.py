"""The hosts that receive the files sent to a multicast group."""

from collections.abc import Collection, Iterator, Sequence

from experiments.workload.file import FileWorkload
from topologies.spec import Topology
from topologies.trees import in_scope

__all__ = ["receivers_of"]


def receivers_of(topology: Topology, works: Sequence[FileWorkload], sending: Collection[str]) -> Iterator[str]:
    """Yield the hosts that receive a group with these workloads, in the order of the topology.

    These are the members that the workloads name, without the group's senders. Where none are named, they are the hosts within
    the TTL scope of every sender that are no bystanders and not in `sending`, the hosts that send to any group.
    """
    named = frozenset(host for work in works for name in work.members or () for host in topology.hosts_of(name))
    scopes = [
        frozenset(in_scope(topology, topology.member(work.sender).node, work.ttl)) for work in works if work.ttl is not None
    ]
    excluded = frozenset(work.sender for work in works) if named else frozenset(sending)
    for node in topology.host_nodes:
        if named or not (topology.node(node).bystander or any(node not in scope for scope in scopes)):
            for place in range(topology.size(node)):
                host = topology.member_name(node, place)
                if host not in excluded and (not named or host in named):
                    yield host
