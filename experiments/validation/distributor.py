"""Rules of the Distributor: subjects, nagging monitor, retransmission cache, hold-back of retransmissions, and rate.

The last three are measured on a publisher with recording ports, which a loop of its own gives the time. All are deterministic.
"""

from collections.abc import Mapping, Sequence
from math import nan

from experiments.contract.recorder import Recorder
from experiments.validation.references import Families, Measured, Reference
from protocols.distributor import DistributorConfig
from protocols.distributor.identity import Identity
from protocols.distributor.messages import Nak, Request, Segment, Source
from protocols.distributor.nagging import NaggingMonitor
from protocols.distributor.publisher import DistributorPublisher
from protocols.distributor.subjects import SubjectTrie, check_subject, matches
from protocols.distributor.wire import ENTRY, OVERHEAD
from protocols.errors import UsageError
from protocols.machine import Group

__all__ = ["FAMILIES"]

GROUP = Group("239.0.0.1:5656")
SUBJECT = "/s"
INTERVALS = 8
"""Check intervals over which a rate is measured."""


class _Session:
    """A publisher that is driven by hand, and the times in seconds at which it sent its packets."""

    def __init__(self, config: DistributorConfig) -> None:
        self.ports = Recorder()
        self.machine = DistributorPublisher(self.ports, config, Identity(1, 1, 1, "validation"), GROUP)
        self.times: list[float] = []
        self.machine.start(0.0)
        self.note(0.0)

    def note(self, now: float) -> None:
        """Note the time of what was sent since the last call."""
        self.times += [now] * (len(self.ports.packets) - len(self.times))

    def run(self, until: float) -> None:
        """Wake the publisher when it is due before `until` seconds."""
        while self.machine.deadline < until:
            now = self.machine.deadline
            self.machine.wake(now)
            self.note(now)

    def publish(self, octets: int, now: float) -> bool:
        """Publish an update that makes a datagram of so many bytes; return whether the publisher is blocked."""
        blocked = self.machine.publish(SUBJECT, bytes(octets - OVERHEAD - ENTRY - len(SUBJECT)), now)
        self.note(now)
        return blocked

    def request(self, low: int, high: int, now: float) -> None:
        """Request segments."""
        self.machine.receive(Request(Source(2, 2, 0), 2, 1, 0, low, high, "", ""), "r", GROUP, now)
        self.note(now)


def _subjects(reference: Reference, effort: float) -> Mapping[str, Measured]:
    """Match a subject against one subscription, or against several at once."""
    del effort
    params = reference.params
    if not reference.values:
        # What the README leaves open.
        return {}
    if "pattern" in params:
        return {"value": Measured(float(matches(params["pattern"], params["subject"])))}
    trie: SubjectTrie[str] = SubjectTrie()
    for pattern in params["subscriptions"]:
        trie.add(pattern, pattern)
    return _compared(reference, dict.fromkeys(trie.match(params["subject"]), 1.0))


def _publishing(reference: Reference, effort: float) -> Mapping[str, Measured]:
    """Ask whether a subject may be published."""
    del effort
    try:
        check_subject(reference.params["subject"])
    except UsageError:
        return {"value": Measured(0.0)}
    return {"value": Measured(1.0)}


def _nagging(reference: Reference, effort: float) -> Mapping[str, Measured]:
    """Give the monitor the requests of each window, up to its first event."""
    del effort
    params = reference.params
    monitor = NaggingMonitor(params["window_s"], params["check_s"], params["max_retrans"])
    for tick, count in enumerate(params["counts"], 1):
        for _ in range(count):
            monitor.count()
        if monitor.end_window() is not None:
            return _compared(reference, {"0": float(tick)})
    return _compared(reference, {})


def _hold_back(reference: Reference, effort: float) -> Mapping[str, Measured]:
    """Request one segment at given times."""
    del effort
    params = reference.params
    session = _Session(DistributorConfig(server_holdback=params["holdback_ms"] / 1000))
    session.publish(100, 0.0)
    for at in params["request_times_ms"]:
        session.run(1.0 + at / 1000)
        session.request(1, 1, 1.0 + at / 1000)
    session.run(1.0 + (params["request_times_ms"][-1] + params["holdback_ms"] + 1) / 1000)
    packets = zip(session.ports.packets, session.times, strict=True)
    times = [now for packet, now in packets if isinstance(packet.message, Segment) and packet.message.is_retransmission]
    return _compared(reference, {str(place): round((at - 1.0) * 1000, 6) for place, at in enumerate(times)})


def _cache(reference: Reference, effort: float) -> Mapping[str, Measured]:
    """Request what is in the cache of a publisher and what has left it."""
    del effort
    params = reference.params
    session = _Session(DistributorConfig(segment=params["msg_bytes"], cache=params["cache_bytes"]))
    for _ in range(params["published"]):
        session.publish(params["msg_bytes"], 0.0)
    session.request(params["request"][0], params["request"][1], 1.0)
    session.run(2.0)
    messages = [packet.message for packet in session.ports.packets]
    served = [message.seqno for message in messages if isinstance(message, Segment) and message.is_retransmission]
    refused = [seqno for message in messages if isinstance(message, Nak) for seqno in message.seqnos]
    return _compared(reference, _listed("served", served) | _listed("refused", refused))


def _rate(reference: Reference, effort: float) -> Mapping[str, Measured]:
    """Measure the rate of a publisher that always has something to send."""
    del effort
    limit, interval = reference.params["max_mbit"] * 1e6 / 8, reference.params["check_interval_ms"] / 1000
    session = _Session(DistributorConfig(rate=limit, check_interval=interval, heartbeat=3600.0, configuration=3600.0))
    machine, now = session.machine, 0.0
    while now <= INTERVALS * interval:
        while not session.publish(1000, now):
            pass
        now = machine.deadline
        machine.wake(now)
        session.note(now)
    sent = zip(session.ports.packets, session.times, strict=True)
    octets = sum(packet.size for packet, at in sent if at <= INTERVALS * interval)
    return {"value": Measured(octets * 8e-6 / (INTERVALS * interval))}


def _listed(name: str, numbers: Sequence[int]) -> dict[str, float]:
    return {f"{name}.{place}": float(number) for place, number in enumerate(numbers)}


def _compared(reference: Reference, found: Mapping[str, float]) -> Mapping[str, Measured]:
    """Return what was found, and as not a number what the reference has beside it: no list is too short or too long."""
    return {name: Measured(found.get(name, nan)) for name in {**reference.values, **found}}


FAMILIES: Families = {
    "subject_match": _subjects,
    "subject_publish": _publishing,
    "nagging": _nagging,
    "server_holdback": _hold_back,
    "rtx_cache": _cache,
    "rate_limit": _rate,
}
