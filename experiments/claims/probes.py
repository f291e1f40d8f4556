"""Measurements for claims that no scenario shows, from machines called directly; each returns a mapping of names to numbers."""

from collections.abc import Callable, Mapping

from experiments.claims.fjm2_probes import headers_of_packets, nacks_of_a_subscriber
from experiments.contract.recorder import Recorder
from protocols.distributor import DistributorConfig
from protocols.distributor.identity import Identity
from protocols.distributor.messages import Nak, Request, Segment, Source
from protocols.distributor.publisher import DistributorPublisher
from protocols.machine import Group

__all__ = ["PROBES"]

GROUP = Group("239.0.0.1:5656")
UPDATES, UPDATE, CACHE = 1000, 500, 100_000
"""Updates that a publisher sends, each in a datagram; bytes of one, and of the cache."""


def _cache_of_subjects() -> Mapping[str, float]:
    """Publish as many updates of one subject and of many, and request all of them."""
    found: dict[str, float] = {"limit": CACHE}
    for name, subjects in (("one", 1), ("many", UPDATES)):
        ports = Recorder()
        publisher = DistributorPublisher(ports, DistributorConfig(cache=CACHE), Identity(1, 1, 1, "probe"), GROUP)
        publisher.start(0.0)
        for number in range(UPDATES):
            publisher.publish(f"/subject/{number % subjects:06}", bytes(UPDATE), 0.0)
        publisher.receive(Request(Source(2, 2, 0), 2, 1, 0, 1, UPDATES, "", ""), "r", GROUP, 1.0)
        while publisher.deadline < 2.0:
            publisher.wake(publisher.deadline)
        messages = [packet.message for packet in ports.packets]
        served = [each.seqno for each in messages if isinstance(each, Segment) and each.is_retransmission]
        gone = [seqno for each in messages if isinstance(each, Nak) for seqno in each.seqnos]
        found[f"{name}_held"] = publisher.held()["cache"][0]
        found[f"{name}_served"] = len(served)
        # First in, first out: what is left are the last ones.
        found[f"{name}_is_fifo"] = sorted(gone) + sorted(served) == list(range(1, UPDATES + 1))
    return found


PROBES: Mapping[str, Callable[[], Mapping[str, float]]] = {
    "cache_of_subjects": _cache_of_subjects,
    "headers_of_packets": headers_of_packets,
    "nacks_of_a_subscriber": nacks_of_a_subscriber,
}
"""Probes by name."""
