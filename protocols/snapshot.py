"""Statistics of protocols as data: what a machine reports when it is asked (`Machine.snapshot`).

A `Snapshot` is a tree. At its root stands a session, which is one machine; below it are the senders it hears or the receivers
it knows, their objects, and buffers and queues with their limits. Numbers are counters, which only grow, and gauges. A
`Measure` describes the meaning of a name and its unit: those that several protocols share are in `MEASURES`, those of one
protocol in its `ProtocolSpec.measures`. A snapshot is computed when it is asked for; beside the counters of a protocol
nothing is collected.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

__all__ = [
    "MEASURES",
    "PARTS",
    "Measure",
    "Path",
    "Rates",
    "Snapshot",
    "buffers",
    "increase",
    "measure_of",
    "measures_by_name",
    "walk",
]

Unit: TypeAlias = Literal["", "bytes", "seconds", "bytes/s", "ratio"]
Path: TypeAlias = tuple[tuple[str, str], ...]
"""Where a part is in the tree: (part, name) of each snapshot from the root on, the root's included."""


@dataclass(frozen=True, slots=True)
class Measure:
    """What a number of a snapshot means. A counter only grows while its machine lives; a gauge goes up and down."""

    name: str
    help: str
    unit: Unit = ""
    kind: Literal["counter", "gauge"] = "counter"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The statistics of one part of a protocol at one time, and those of the parts it has. It is not to be modified.

    `part` is one of `PARTS`, and `name` tells it from its siblings of the same `part`: a node id, an object id.
    """

    part: str
    name: str = ""
    values: Mapping[str, float] = field(default_factory=dict)
    """Numbers by the name of their `Measure`; what is not known is left out."""
    states: Mapping[str, str] = field(default_factory=dict)
    """Values that are words, such as {"activity": "silent"}; short, and of a few possible ones."""
    parts: Sequence["Snapshot"] = ()

    def only(self, part: str) -> list["Snapshot"]:
        """Return the direct parts of one kind, in their order."""
        return [each for each in self.parts if each.part == part]

    def plain(self) -> dict[str, Any]:
        """Return plain values for JSON; what is empty is left out."""
        told = {"part": self.part, "name": self.name, "values": dict(self.values), "states": dict(self.states)}
        parts = {"parts": [each.plain() for each in self.parts]} if self.parts else {}
        return {key: value for key, value in told.items() if value or key == "part"} | parts


PARTS: Final[Mapping[str, str]] = {
    "machine": "a computer, as a monitor sees it",
    "process": "a process that runs sessions, as a monitor sees it",
    "host": "a host and what its sockets did",
    "session": "a machine: one node's membership in a session",
    "sender": "a sender as a receiver knows it",
    "receiver": "a receiver as a sender knows it",
    "object": "an object or a stream that is being sent, received or kept for repairs",
    "congestion": "congestion control",
    "watermark": "a point that receivers are asked to confirm, the present one or the last, with the state of each",
    "publisher": "a publisher of messages",
    "subscriber": "a subscriber to messages, or one that a server knows",
    "tunnel": "a tunnel between sites, as a registry knows it",
    "queue": "messages that wait",
    "peer": "another tunnel as a tunnel knows it",
    "buffer": "state that is bounded: `held` of at most `limit`",
}
"""Kinds of snapshots."""


def _counters(**helps: str) -> list[Measure]:
    return [Measure(name, text) for name, text in helps.items()]


_SHARED: Final = (
    *_counters(
        data_sent="content packets sent for the first time",
        repairs_sent="packets sent on request: repeated segments and information, parity",
        parity_sent="those of repairs_sent that were parity",
        nacks_received="NACKs received by a sender",
        acks_received="acknowledgements and answers to probes received",
        probes_sent="packets that probe for round-trip times or rates",
        flushes_sent="packets that announce the end of transmission",
        squelches_sent="packets that announce which objects are no longer repaired",
        timeouts="how often a packet was not acknowledged, or a requested repair did not come, in time",
        repairs_suppressed="repairs not sent because another member sent them",
        objects_sent="objects of which every segment was sent once",
        sessions_sent="session messages sent",
        sessions_heard="session messages of other members received",
        nacks_sent="NACKs sent by a receiver",
        nacks_suppressed="NACKs not sent because other receivers had sent them",
        nacks_heard="NACKs of other receivers received",
        nacks_repeated="those of nacks_sent that were not the first for their packet",
        acks_sent="acknowledgements and answers to probes sent",
        data_received="packets of senders received",
        data_lost="packets of senders missing by their sequence numbers",
        duplicates="content packets without new content",
        ignored="packets that contradict the receiver's state",
        objects_received="objects completed",
        objects_aborted="objects given up",
        parity_used="missing segments computed from parity",
        messages_published="messages a publisher took",
        messages_received="deliveries to a subscriber",
        messages_accepted="messages the protocol answers for",
        messages_dropped="messages given up by a publisher",
        messages_expired="messages not sent because they had expired",
        messages_given_up="datagrams: messages of which parts never came",
        reordered="datagrams that came after a later one",
        messages_relayed="messages a server passed on",
        copies_sent="copies a server sent to subscribers",
        clients="connections a server has served",
        clients_refused="connections ended because they were too many or broke a rule",
        connections="connections that a client made",
        packets_sent="packets the host sent",
        send_errors="packets the kernel refused to send",
        receive_drops="packets lost because the host could not keep up",
        slow_drops="packets lost because the application was slow",
        malformed="packets that could not be decoded",
        unauthenticated="packets without a valid signature",
        replayed="packets that arrived before",
        stale="packets with an old time stamp",
    ),
    Measure("bytes_sent", "content sent for the first time; of a host: UDP payload of everything sent", "bytes"),
    Measure("bytes_received", "content received, repaired or computed from parity, each byte once", "bytes"),
    Measure("jitter_us", "jitter of datagrams by RFC 3550, in microseconds", "", "gauge"),
    Measure("processes", "processes that run sessions", "", "gauge"),
    Measure("loss", "share of a sender's packets that were lost", "ratio", "gauge"),
    Measure("rate", "rate at which a sender may send UDP payload", "bytes/s", "gauge"),
    Measure("rtt", "round-trip time", "seconds", "gauge"),
    Measure("silence", "time since the last message", "seconds", "gauge"),
    Measure("size", "content of an object", "bytes", "gauge"),
    Measure("repairs_due", "segments and parity that are requested and not sent yet", "", "gauge"),
    Measure("segments_missing", "segments that were sent and not received", "", "gauge"),
    Measure("group_size", "members of the group, as estimated here or as the sender advertises", "", "gauge"),
    Measure("subscriptions", "subscriptions in effect", "", "gauge"),
    Measure("held", "what a buffer or a queue holds", "", "gauge"),
    Measure("limit", "what a buffer or a queue may hold at the most", "", "gauge"),
)
MEASURES: Final[Mapping[str, Measure]] = {each.name: each for each in _SHARED}
"""The measures that mean the same in every protocol."""


def measures_by_name(own: Iterable[Measure] = ()) -> dict[str, Measure]:
    """Return the shared measures with those of one protocol, by name."""
    return {**MEASURES, **{each.name: each for each in own}}


def measure_of(name: str, measures: Mapping[str, Measure] = MEASURES) -> Measure:
    """Return the measure of this name; a name without a description is a counter, as all of `Machine.counts` are."""
    known = measures.get(name)
    return Measure(name, name.replace("_", " ")) if known is None else known


def buffers(held: Mapping[str, tuple[int, int]]) -> tuple[Snapshot, ...]:
    """Return what `Machine.held` returns as parts, without what may hold nothing."""
    return tuple(Snapshot("buffer", name, {"held": kept, "limit": limit}) for name, (kept, limit) in held.items() if limit)


def walk(snapshot: Snapshot, above: Path = ()) -> Iterator[tuple[Path, Snapshot]]:
    """Yield a snapshot and everything below it, each with its path."""
    path = (*above, (snapshot.part, snapshot.name))
    yield path, snapshot
    for each in snapshot.parts:
        yield from walk(each, path)


class Rates:
    """Rates of counters, from the difference of two snapshots of the same machine: the only place where they are computed.

    `window` is the time in seconds over which a rate is a mean; 0.0: since the snapshot before. A counter that is smaller than
    before has begun anew with its machine, and counts from 0. A part that is new since then counts from 0 as well.
    """

    def __init__(self, measures: Mapping[str, Measure] = MEASURES, window: float = 0.0) -> None:
        self._measures = measures
        self._window = window
        self._known: deque[tuple[float, dict[Path, Snapshot]]] = deque()

    def add(self, at: float, snapshot: Snapshot) -> Snapshot:
        """Take the next snapshot, made at `at` seconds; return one of the same shape whose values are counts per second.

        Without an earlier one, or at the same time as that, it has no values.
        """
        parts = dict(walk(snapshot))
        known = self._known
        while len(known) > 1 and known[1][0] <= at - self._window:
            known.popleft()
        began, before = known[0] if known else (at, {})
        known.append((at, parts))
        return self._rates(snapshot, (), before, at - began)

    def _rates(self, snapshot: Snapshot, above: Path, before: Mapping[Path, Snapshot], seconds: float) -> Snapshot:
        path = (*above, (snapshot.part, snapshot.name))
        earlier = before[path].values if path in before else {}
        values = {
            name: increase(value, earlier.get(name, 0)) / seconds
            for name, value in snapshot.values.items()
            if seconds > 0 and measure_of(name, self._measures).kind == "counter"
        }
        parts = [self._rates(each, path, before, seconds) for each in snapshot.parts]
        return Snapshot(snapshot.part, snapshot.name, values, {}, parts)


def increase(value: float, earlier: float) -> float:
    """Return by how much a counter has grown; one that is smaller than before has begun anew, from 0."""
    return value - earlier if value >= earlier else value
