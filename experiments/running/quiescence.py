"""Check for quiescence: a finished network runs on, and nothing more may be sent."""

from math import inf

from experiments.running.invariants import Invariants
from sim.faults import Faults
from sim.network import Network

__all__ = ["listen"]

LARGEST = 10_000
"""Hosts: in larger groups the timers of receivers that only make sure would cost more than the run."""
LONGEST = 1e5
"""Seconds; protocols that probe now and then come to rest long before."""
PATIENCE = 64.0
"""Seconds within which there may be much to do."""
MOST = 3000
"""SimPy events in one interval after that; more of them mean that the network does not come to rest."""


def listen(network: Network, faults: Faults | None, invariants: Invariants) -> bool:
    """Run until no event is left, in spans that double; return False for a network too large to be observed.

    The network cannot be used afterwards: read its results before.
    """
    if len(network.topology.hosts) > LARGEST:
        return False
    if faults is not None:
        faults.end_noise()
    span = 1.0
    while span < LONGEST:
        said, events = dict(network.traffic.packets), network.events
        network.run(until=network.env.now + span)
        if network.env.peek() == inf:
            return True
        if span >= PATIENCE and network.events - events > MOST:
            break
        span *= 2
    kinds = [kind for kind, count in network.traffic.packets.items() if count > said.get(kind, 0)]
    if kinds:
        invariants.spoke(sorted(kinds), network.env.now)
    return True
