"""Select the excerpt of a trace that a sequence diagram shows: time span, hosts and packets; long loss-free runs are folded."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import TypeAlias

from experiments.captures.trace_file import Trace, TracedPacket, TraceEvent
from experiments.drawing.parity_requests import ParityRequest, find_parity_requests
from protocols.errors import UsageError

__all__ = ["MOST_HOSTS", "MOST_SHOWN", "FoldedPackets", "LadderExcerpt", "LadderItem", "cut", "folded"]

MOST_HOSTS = 8
MOST_SHOWN = 50
_BEFORE, _AFTER = 3, 2
_SHORTEST_FOLD = 4


@dataclass(frozen=True, slots=True)
class FoldedPackets:
    """Consecutive packets of one host and kind, shown as one item."""

    packets: tuple[TracedPacket, ...]

    @property
    def time(self) -> float:
        """Time in seconds of the first packet."""
        return self.packets[0].time


LadderItem: TypeAlias = TracedPacket | FoldedPackets


@dataclass(frozen=True, slots=True)
class LadderExcerpt:
    """Contents of a sequence diagram; `hosts` from left to right, the senders first; `parity` the NACKs that request parity."""

    begin: float
    end: float
    hosts: tuple[str, ...]
    shown: tuple[LadderItem, ...]
    decisions: tuple[TraceEvent, ...]
    parity: Mapping[int, ParityRequest] = field(default_factory=dict)
    is_numbered: bool = False
    """Whether the lines of the drawing have numbers: those of `shown`, from 1."""


def cut(trace: Trace, hosts: Sequence[str] = (), begin: float | None = None, end: float | None = None) -> LadderExcerpt:
    """Return the requested excerpt; by default from the first loss to its repair, with the hosts involved.

    Raises UsageError for an unknown host, or a requested time span with too many messages; a default span is shortened instead.
    """
    unknown = [name for name in hosts if name not in trace.hosts]
    if unknown:
        raise UsageError(f"--hosts: {unknown[0]!r} is not in this trace; hosts are {', '.join(trace.hosts[:MOST_HOSTS])}")
    auto, given = _window(trace), end is not None
    begin, end = auto[0] if begin is None else begin, auto[1] if end is None else end
    if end <= begin:
        raise UsageError(f"--to: value {end:g} is not allowed; later than the beginning, {begin:g} s")
    packets = [packet for packet in trace.packets.values() if begin <= packet.time <= end]
    decisions = [each for each in trace.decisions if begin <= each.time <= end]
    chosen = tuple(hosts) or _hosts(trace, packets, decisions)
    packets = [packet for packet in packets if packet.node in chosen]
    decisions = [each for each in decisions if each.node in chosen]
    shown = folded(packets, frozenset(trace.hosts).difference(chosen))
    if len(shown) > MOST_SHOWN:
        if given:
            raise UsageError(
                f"--to: {len(shown)} messages exceed the limit of a drawing ({MOST_SHOWN}); choose less time or fewer hosts"
            )
        shown = shown[:MOST_SHOWN]
        end = shown[-1].time
        decisions = [each for each in decisions if each.time <= end]
    single = [item for item in shown if not isinstance(item, FoldedPackets)]
    return LadderExcerpt(begin, end, chosen, shown, tuple(decisions), find_parity_requests(trace, single))


def _window(trace: Trace) -> tuple[float, float]:
    """Return the time span around the first repaired loss, from shortly before it to shortly after its repair.

    Without a repaired loss it is the beginning of the run.
    """
    packets = list(trace.packets.values())
    lost = next((place for place, packet in enumerate(packets) if packet.missed), None)
    # A repair before it repaired nothing, as of a segment that TCP took for lost.
    repair = next((place for place, packet in enumerate(packets) if packet.repair and place > (lost or 0)), None)
    if repair is None or lost is None:
        return 0.0, packets[min(len(packets), MOST_SHOWN) - 1].time if packets else trace.end
    last = repair
    while last + 1 < len(packets) and packets[last + 1].repair:
        last += 1
    begin = packets[max(lost - _BEFORE, 0)].time
    if last + _AFTER < len(packets):
        return begin, packets[last + _AFTER].time
    return begin, max([packets[last].time, *packets[last].received.values()])


def _hosts(trace: Trace, packets: Sequence[TracedPacket], decisions: Sequence[TraceEvent]) -> tuple[str, ...]:
    """Return the senders, and the receivers with most losses and decisions."""
    news = Counter(missed.node for packet in packets for missed in packet.missed)
    news.update(decision.node for decision in decisions)
    news.update({packet.node: 3 for packet in packets})
    senders = trace.senders[:MOST_HOSTS]
    others = [name for name in trace.hosts if name not in senders]
    order = {name: place for place, name in enumerate(others)}
    chosen = sorted(others, key=lambda name: (-news[name], order[name]))[:MOST_HOSTS]
    return (*senders, *sorted(chosen, key=order.__getitem__))


def folded(
    packets: Sequence[TracedPacket], unseen: frozenset[str] = frozenset(), single: frozenset[int] = frozenset()
) -> tuple[LadderItem, ...]:
    """Fold runs without loss, and if still too many, lossy runs as well, except the first few losses.

    Losses at the `unseen` hosts do not keep a packet from being folded; packets whose numbers are `single` are never folded.
    """
    for kept in (inf, 12, 6, 3, 1, 0):
        shown = _fold(packets, unseen, kept, single)
        if len(shown) <= MOST_SHOWN:
            break
    return tuple(shown)


def _fold(packets: Sequence[TracedPacket], unseen: frozenset[str], kept: float, single: frozenset[int]) -> list[LadderItem]:
    """Fold packets, keeping the first `kept` lossy ones; losses on the way to a switch affect all hosts."""
    shown: list[LadderItem] = []
    row: list[TracedPacket] = []
    for packet in packets:
        missed = any(each.node not in unseen for each in packet.missed)
        if missed and not packet.repair:
            kept -= 1
        open_ = (missed and kept >= 0) or packet.number in single
        if row and (open_ or (packet.node, packet.kind, packet.repair) != (row[0].node, row[0].kind, row[0].repair)):
            shown += _closed(row)
            row = []
        if open_:
            shown.append(packet)
        else:
            row.append(packet)
    return shown + _closed(row)


def _closed(row: list[TracedPacket]) -> list[LadderItem]:
    """Fold a run of packets except its first and last."""
    if len(row) < _SHORTEST_FOLD:
        return list(row)
    return [row[0], FoldedPackets(tuple(row[1:-1])), row[-1]]
