"""Check quiescence: let a finished network run on, and report packets that are still sent."""

from collections.abc import Collection
from math import inf

from experiments.running.invariants import Invariants
from sim.faults import Faults
from sim.network import Network
from sim.tcp.segment import AckSegment, ControlSegment, Segment

__all__ = ["run_to_rest"]

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
MOST_ROUNDS = 100
"""Such spans at most, in which losses are still repaired."""


def run_to_rest(network: Network, faults: Faults | None, invariants: Invariants | None, periodic: Collection[str]) -> bool:
    """Run the network until no event is left, in spans that double; return False if it is too large to be observed.

    With `periodic` packets, which a protocol sends as long as it runs, it is at rest when nothing else is sent in a long span.
    Slow repairs may take many of those. If it does not come to rest, the kinds of packets sent in the last span are a violation
    of quiescence; without `invariants` no violation is recorded. It is dated to the end of the run. The results of the run must
    be read before: clock and counters move on.
    """
    if len(network.topology.hosts) > LARGEST:
        return False
    if faults is not None:
        faults.end_noise()
    span, end, rounds = 1.0, network.env.now, 0
    while span < LONGEST:
        before, events, carried = _sent(network, periodic), network.events, _carried(network)
        network.run(until=network.env.now + span)
        if network.env.peek() == inf:
            return True
        kinds = [kind for kind, count in _sent(network, periodic).items() if count > before.get(kind, 0)]
        if span < PATIENCE or (_carried(network) - carried <= MOST and network.events - events <= MOST_EVENTS):
            span *= 2
            continue
        rounds += 1
        if not kinds or rounds == MOST_ROUNDS:
            break
    if kinds and invariants is not None:
        invariants.sent_after_end(sorted(kinds), end)
    return True


def _sent(network: Network, periodic: Collection[str]) -> dict[str, int]:
    """Return how many packets were sent so far by kind, without `periodic` ones and what TCP sends on an idle connection."""
    return {kind: count for kind, count in network.traffic.packets.items() if kind not in (*SEGMENT_KINDS, *periodic)}


def _carried(network: Network) -> int:
    """Return the number of packets sent and delivered so far, which is the same in both engines."""
    return network.deliveries + sum(network.traffic.packets.values())
