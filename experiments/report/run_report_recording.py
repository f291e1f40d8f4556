"""Gather a recorded run line by line: counts over time and a loss map of all of it, and its packets for the shown hosts."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from math import inf
from typing import Any

from experiments.captures.trace_file import LostCopy, Trace, TracedPacket, TraceRow
from experiments.inspection.interval_counts import IntervalCounts
from experiments.report.run_report_folder import RunFolder
from experiments.report.run_report_losses import LossMap
from experiments.report.run_report_routes import Routes
from protocols.errors import UsageError

__all__ = ["MOST_COPIES", "MOST_PACKETS", "RunRecording", "Window", "shown_kind"]

MOST_PACKETS, MOST_COPIES = 5_000, 80_000
"""Most packets of a replay, and most of their receptions and losses."""
_LONGEST_TRANSIT = 2.0
"""Seconds after which no packet of the replay is under way any more."""
REPAIR, PARITY = "repair", "parity"


@dataclass(frozen=True, slots=True)
class Window:
    """The part of a run that is replayed, in seconds."""

    begin: float = 0.0
    end: float = inf

    def __post_init__(self) -> None:
        if self.end <= self.begin:
            raise UsageError(f"--to: value {self.end:g} is not allowed; later than the beginning, {self.begin:g} s")


def shown_kind(kind: str, brief: str, repair: bool, content: bool) -> str:
    """Return the kind of a packet by which it is coloured and counted: that of its message, or repair, or parity.

    `content`: whether a sender of content sent it. Traces name parity symbols like 0.1.p0.
    """
    if repair:
        return REPAIR
    last = brief.rpartition(".")[2]
    return PARITY if content and last[:1] == "p" and last[1:].isdigit() else kind


class RunRecording:
    """What a report shows of the lines of a trace, or of captures in the form of a trace.

    `about` describes the recording as a trace's first line does; its packets and decisions are kept for the `shown` hosts, in
    the window, up to a limit. What the `hidden` hosts lost is not in the recording.
    """

    def __init__(
        self, folder: RunFolder, about: dict[str, Any], shown: list[str], window: Window, hidden: frozenset[str] = frozenset()
    ) -> None:
        self.folder = folder
        self.shown = shown
        self.known = [str(name) for name in about["hosts"]]
        self.window = window
        self.routes = Routes(folder.topology)
        self.trace = Trace({**about, "hosts": shown, "senders": folder.senders})
        self.counts = IntervalCounts(folder.duration)
        self.losses = LossMap(folder, [name for name in self.known if name not in hidden], shown)
        self.packets = 0
        self.kept_until: float | None = None
        """Time of the first packet in the window beyond the limit; None if all are kept."""
        self._complete_before = window.end + _LONGEST_TRANSIT
        self._only_receivers: dict[str, bool] = {}
        self.not_arrived = 0
        """Losses that no link reports, of the packets of the replay."""
        self._slowest = 0.0
        self.receptions_of = set(shown)
        """The hosts whose receptions are still wanted; none when the replay is complete."""
        self._copies = 0
        self._shown = frozenset(shown)
        self._senders = frozenset(folder.senders)
        self.hosts = frozenset(self.known)
        self._behind: dict[tuple[str, str], list[str]] = {}

    def add(self, rows: Iterable[TraceRow]) -> None:
        """Take all lines."""
        for row in rows:
            name = row[2]
            if name == "packet_sent":
                self._sent(row)
            elif name == "packet_dropped":
                if self.folder.is_member(row[1], row[0]):
                    self._dropped(row)
                    self._copy(row)
            elif name == "packet_received":
                if row[1] in self._shown:
                    self._copy(row)
            elif row[1] in self._shown and self._kept(row[0]):
                self.trace.add(row)
        for packet in self.trace.packets.values():
            self._not_arrived(packet)
        self.trace.end = min(self.window.end, self.folder.duration, inf if self.kept_until is None else self.kept_until)

    def _not_arrived(self, packet: TracedPacket) -> None:
        """Add the losses of a multicast packet that no link reports, at members it did not reach: a link or host was down."""
        if packet.to not in self.folder.groups or packet.time + self._slowest >= self.folder.duration:
            return
        missed = {copy.node for copy in packet.missed}
        expected = [host for host in self._expected(packet) if self.folder.is_member(host, packet.time)]
        lost = [
            host for host in expected if host not in packet.received and missed.isdisjoint(self.routes.path(packet.node, host))
        ]
        ways = {way[-1]: way for way in (self.routes.way_to_loss(packet.node, host, lost, expected) for host in lost)}
        for far, way in ways.items():
            packet.missed.append(LostCopy(packet.time, far, f"{way[-2]}-{far}", "did not arrive"))
        self.losses.lost(packet.number, packet.time, lost, packet.label)
        self.not_arrived += len(lost)

    def _expected(self, packet: TracedPacket) -> list[str]:
        members = self.folder.groups[packet.to]
        return [host for host in self.shown if host in members and host in self.hosts and host != packet.node]

    def kinds(self) -> Counter[str]:
        """Return the packets of the whole run by shown kind."""
        return Counter({kind: sum(counts) for kind, counts in self.counts.packets.items()})

    @property
    def feedback(self) -> frozenset[str]:
        """The kinds of packets that only receivers send."""
        return frozenset(kind for kind, only in self._only_receivers.items() if only)

    def _kept(self, time: float) -> bool:
        return self.window.begin <= time <= self.window.end and self.kept_until is None

    def _sent(self, row: TraceRow) -> None:
        time, node, _, data = row
        self.packets += 1
        brief, repair, to = str(data.get("brief", "")), bool(data.get("repair", False)), str(data["to"])
        kind = shown_kind(str(data["kind"]), brief, repair, node in self._senders)
        self._only_receivers[kind] = self._only_receivers.get(kind, True) and node in self.folder.receivers
        self.counts.add(kind, time, int(data.get("size", 0)))
        self.losses.sent(data["packet"], time, to)
        if self._complete_before < time:
            self.receptions_of.clear()
        if node in self._shown and self._kept(time):
            if len(self.trace.packets) >= MOST_PACKETS or self._copies >= MOST_COPIES:
                self.kept_until, self._complete_before = time, time + _LONGEST_TRANSIT
            else:
                self.trace.add(row)

    def _dropped(self, row: TraceRow) -> None:
        time, node, _, data = row
        label = f"{data.get('kind', '')} {data.get('brief', '')}".strip()
        missed = [node] if node in self.hosts else self._receivers_behind(str(data.get("from", "")), node)
        self.losses.lost(data["packet"], time, [host for host in missed if self.folder.is_member(host, time)], label)

    def _copy(self, row: TraceRow) -> None:
        if row[3]["packet"] in self.trace.packets:
            self._copies += 1
            self._slowest = max(self._slowest, row[0] - self.trace.packets[row[3]["packet"]].time)
            self.trace.add(row)

    def _receivers_behind(self, source: str, switch: str) -> list[str]:
        """Return the recorded hosts that a multicast from `source` reaches over a switch."""
        key = (source, switch)
        if key not in self._behind:
            there = source in self.folder.topology.hosts
            self._behind[key] = [
                host for host in self.known if there and host != source and switch in self.routes.path(source, host)
            ]
        return self._behind[key]
