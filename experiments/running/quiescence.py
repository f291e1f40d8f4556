"""Check quiescence: let a finished network run on, and report packets that are still sent."""

from collections.abc import Collection
from math import inf

from experiments.running.invariants import Invariants
from sim.faults import Faults
from sim.network import Network
from sim.tcp.segment import AckSegment, ControlSegment, Segment

__all__ = ["count_sent", "run_to_rest"]

SEGMENT_KINDS = (Segment.kind, AckSegment.kind, ControlSegment.kind)
LARGEST = 10_000
"""Hosts in the largest network that is observed; in larger ones the inactivity timers would cost more than the run."""
LONGEST = 1e5
"""Simulated seconds of observation at most; protocols with periodic probes come to rest long before."""
PATIENCE = 64.0
"""Simulated seconds during which any number of packets is allowed."""
MOST = 3000
"""Packets sent, and delivered, in one span after `PATIENCE`; more mean that the network does not come to rest."""
MOST_EVENTS = 30_000
"""SimPy events in such a span, for machines that only wake up. Their number depends on the engine, so it decides last."""


def run_to_rest(network: Network, faults: Faults | None, invariants: Invariants | None, periodic: Collection[str]) -> bool:
    """Run the network until no event is left, in spans that double; return False if it is too large to be observed.

    If it does not come to rest, the kinds of packets sent in the last span are a violation of quiescence, but for `periodic`
    ones, which a protocol sends as long as it runs; without `invariants` no violation is recorded. It is dated to the end of
    the run. The results of the run must be read before: clock and counters move on.
    """
    if len(network.topology.hosts) > LARGEST:
        return False
    if faults is not None:
        faults.end_noise()
    span, end = 1.0, network.env.now
    while span < LONGEST:
        before, events, carried = dict(network.traffic.packets), network.events, _carried(network)
        network.run(until=network.env.now + span)
        if network.env.peek() == inf:
            return True
        if span >= PATIENCE and (_carried(network) - carried > MOST or network.events - events > MOST_EVENTS):
            break
        span *= 2
    kinds = [kind for kind, count in _sent(network, periodic).items() if count > before.get(kind, 0)]
    if kinds and invariants is not None:
        invariants.sent_after_end(sorted(kinds), end)
    return True


def count_sent(network: Network, periodic: Collection[str]) -> int:
    """Return how many packets were sent so far, without `periodic` ones and those of TCP."""
    return sum(_sent(network, periodic).values())


def _sent(network: Network, periodic: Collection[str]) -> dict[str, int]:
    """Return the number of packets sent by kind. What TCP sends on an idle connection is no message of a machine."""
    return {kind: count for kind, count in network.traffic.packets.items() if kind not in (*SEGMENT_KINDS, *periodic)}


def _carried(network: Network) -> int:
    """Return the number of packets sent and delivered so far, which is the same in both engines."""
    return network.deliveries + sum(network.traffic.packets.values())
