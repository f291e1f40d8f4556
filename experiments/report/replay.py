"""The data of a replay: nodes with their places, links, packets with the way of each copy, and what happened when.

Everything the page needs to know of a protocol is in the data: names, colours and shapes of the kinds of packets, and the texts
of events. The script draws what it is given.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf
from statistics import median
from typing import Any, TypeAlias

import networkx as nx

from experiments.captures.trace_file import LostCopy, TracedPacket, TraceEvent
from experiments.drawing.topology_layout import place_nodes
from experiments.report.run_report_recording import REPAIR, RunRecording, shown_kind
from topologies.spec import LinkSpec, NodeSpec, Topology

__all__ = ["KindStyle", "kind_styles", "replay_data"]

_PREFERRED = {"data": "blue", REPAIR: "green", "parity": "teal", "nack": "orange", "ack": "violet"}
_COLOURS = ("blue", "orange", "green", "violet", "teal", "loss5", "ink", "grey")
_SPEEDS = tuple(step * 10.0**power for power in range(-6, 2) for step in (1, 2, 5))
_TRANSIT_SHOWN = 0.5
"""Seconds that a median transit takes on the page at first."""
_GAP_SHOWN = 0.2
"""Seconds that the median time between two packets takes on the page at least at first."""
_ABUNDANT = 0.2
"""Share of the packets above which a kind of feedback is not stepped to at first."""
_MOST_EVENTS = 4_000
_NAMED = 4
_NOTABLE = ("nack_suppressed", "object_received", "object_aborted")
_LOST = "loss"
FEEDBACK = "diamond"
"""The shape of packets that only receivers send."""
_WAITS = ("nack_backoff", "nack_resumed")
_WAIT_ENDS = ("nack_due", "nack_suppressed", "nack_needless")
_Event: TypeAlias = tuple[float, str, str, str, str]
"""Time, category, node, text, and the few words beside the node (empty: the page finds them itself)."""


@dataclass(frozen=True, slots=True)
class KindStyle:
    """How packets of a kind look: the name of a colour of drawings, and a shape (dot, square: repair, diamond: feedback)."""

    name: str
    colour: str
    shape: str
    count: int

    def plain(self) -> dict[str, Any]:
        """Return plain values for the page."""
        return {"name": self.name, "colour": self.colour, "shape": self.shape, "count": self.count}


def kind_styles(kinds: Mapping[str, int], feedback: frozenset[str]) -> list[KindStyle]:
    """Assign a colour to each kind, the most frequent ones first; colours repeat only when there are none left."""
    taken = {_PREFERRED[name] for name in kinds if name in _PREFERRED}
    spare = [colour for colour in _COLOURS if colour not in taken]
    found = []
    for name in sorted(kinds, key=lambda name: (-kinds[name], name)):
        colour = _PREFERRED.get(name) or (spare.pop(0) if spare else _COLOURS[-1])
        shape = "square" if name == REPAIR else FEEDBACK if name in feedback else "dot"
        found.append(KindStyle(name, colour, shape, kinds[name]))
    return found


def _kind(packet: TracedPacket, content: bool) -> str:
    return shown_kind(packet.kind, packet.brief, packet.repair, content)


def replay_data(recording: RunRecording, styles: Sequence[KindStyle], unknown: Iterable[str]) -> dict[str, Any]:
    """Return the replay as plain values; `unknown` are hosts of which nothing was recorded."""
    return _Replay(recording, styles, frozenset(unknown)).plain()


class _Replay:
    def __init__(self, recording: RunRecording, styles: Sequence[KindStyle], unknown: frozenset[str]) -> None:
        self.recording = recording
        self.folder = recording.folder
        self.trace = recording.trace
        self.unknown = unknown
        self.styles = styles
        self.kinds = {style.name: place for place, style in enumerate(styles)}
        self.hosts = [*recording.shown, *(name for name in unknown if name not in recording.shown)]
        self.trees: dict[tuple[str, bool], int] = {}
        self.drawn = self._drawn()
        self.places = {name: place for place, name in enumerate(self.drawn.graph)}
        self.packets = sorted(self.trace.packets.values(), key=lambda packet: packet.time)

    def plain(self) -> dict[str, Any]:
        packets = [self._packet(packet) for packet in self.packets]
        categories, events = self._events()
        begin = self.packets[0].time if self.packets else 0.0
        return {
            "begin": max(begin, self.recording.window.begin),
            "end": self.trace.end,
            "speeds": list(_SPEEDS),
            "speed": self._speed(),
            "nodes": self._nodes(),
            "links": [[self.places[near], self.places[far]] for near, far in self._links()],
            "trees": [self._tree(*key) for key in self.trees],
            "kinds": [style.plain() for style in self.styles],
            "packets": packets,
            "waits": list(self._waits()),
            "categories": categories,
            "events": events,
        }

    # -- the network -------------------------------------------------------------------------------------------------------

    def _drawn(self) -> Topology:
        """Return the part of the topology that joins the shown hosts; members of counted groups are hosts of their own."""
        graph: nx.DiGraph[str] = nx.DiGraph()
        sources = [name for name in self.hosts if name in self.folder.senders] or self.hosts[:1]
        paths = [self.recording.routes.path(source, host) for source in sources for host in self.hosts]
        for name in dict.fromkeys([*sources, *(name for path in paths for name in path)]):
            kind = "host" if name in self.hosts else self.folder.topology.node(name).kind
            graph.add_node(name, node=NodeSpec(kind))
        for path in paths:
            for near, far in pairwise(path):
                graph.add_edge(near, far, link=LinkSpec())
                graph.add_edge(far, near, link=LinkSpec())
        return Topology(graph)

    def _links(self) -> Iterator[tuple[str, str]]:
        for near, far in self.drawn.graph.edges:
            if self.places[near] < self.places[far]:
                yield near, far

    def _nodes(self) -> list[dict[str, Any]]:
        spots = place_nodes(self.drawn)
        (left, right), (top, bottom) = ((min(values), max(values)) for values in zip(*spots.values(), strict=True))
        wide, high = right - left or 1.0, bottom - top or 1.0
        completed = {row.name: row.completed_at for row in self.folder.result.receivers if row.equal}
        found = []
        for name in self.drawn.graph:
            x, y = spots[name]
            kind = self.drawn.node(name).kind
            role = "sender" if name in self.folder.senders else kind
            node: dict[str, Any] = {
                "name": name,
                "x": round((x - left) / wide, 4),
                "y": round((y - top) / high, 4),
                "role": role,
            }
            if completed.get(name) is not None:
                node["done"] = completed[name]
            if name in self.folder.attendance:
                joins, leaves = self.folder.attendance[name]
                node["there"] = [joins, None if leaves == inf else leaves]
            found.append(node | ({"unknown": True} if name in self.unknown else {}))
        return found

    def _tree(self, source: str, unicast: bool) -> list[list[float]]:
        """Return [parent, seconds from the source by the links' attributes] of each node; [-1, 0] off the tree."""
        found: list[list[float]] = [[-1, 0.0] for _ in self.places]
        for host in self.hosts:
            path = self.recording.routes.path(source, host, unicast)
            taken = 0.0
            for near, far in pairwise(path):
                taken += self.recording.routes.nominal(near, far)
                if near in self.places and far in self.places:
                    found[self.places[far]] = [self.places[near], float(f"{taken:.3g}")]
        return found

    # -- packets -----------------------------------------------------------------------------------------------------------

    def _speed(self) -> int:
        """Return the place of the speed at which a median transit, or the median time between packets, can be seen."""
        transits = [when - packet.time for packet in self.packets for when in packet.received.values()]
        gaps = [gap for one, other in pairwise(self.packets) if (gap := other.time - one.time) > 0]
        wanted = max(_median(transits) / _TRANSIT_SHOWN, _median(gaps) / _GAP_SHOWN, 1e-4)
        return max((place for place, speed in enumerate(_SPEEDS) if speed <= wanted), default=0)

    def _packet(self, packet: TracedPacket) -> list[Any]:
        """Return [time, source, kind, tree, label, [node, microseconds, ...] received, the same lost]."""
        key = (packet.node, packet.to in self.hosts)
        tree = self.trees.setdefault(key, len(self.trees))
        kind = self.kinds[_kind(packet, packet.node in self.folder.senders)]
        came = [item for name, when in packet.received.items() for item in (self.places[name], _micro(when - packet.time))]
        lost = [item for name, each in self._missed(packet) for item in (self.places[name], _micro(each.time - packet.time))]
        return [round(packet.time, 7), self.places[packet.node], kind, tree, packet.label, came, lost]

    def _missed(self, packet: TracedPacket) -> Iterator[tuple[str, LostCopy]]:
        for each in packet.missed:
            if each.node in self.places and each.node not in packet.received:
                yield each.node, each

    # -- what happened -----------------------------------------------------------------------------------------------------

    def _events(self) -> tuple[list[dict[str, Any]], list[list[Any]]]:
        """Return the categories (notable: stepped to at first), and [time, category, node, text, few words] of each event."""
        found = sorted([*self._decision_events(), *self._packet_events()], key=lambda event: event[0])
        counts = Counter(event[1] for event in found)
        asked = {style.name for style in self.styles if style.shape == FEEDBACK}
        most = _ABUNDANT * len(self.packets)
        notable = {name for name in counts if name in (_LOST, *_NOTABLE) or (name in asked and counts[name] <= most)}
        if len(found) > _MOST_EVENTS:
            found = [event for event in found if event[1] in notable][:_MOST_EVENTS]
        names = {name: place for place, name in enumerate(counts)}
        colours = {style.name: style.colour for style in self.styles} | {_LOST: "red"}
        categories = [
            {
                "name": name.replace("_", " "),
                "count": count,
                "notable": name in notable,
                "colour": colours.get(name, "soft"),
            }
            for name, count in counts.items()
        ]
        rows = [[round(time, 7), names[name], self.places.get(node, -1), *texts] for time, name, node, *texts in found]
        return categories, rows

    def _packet_events(self) -> Iterator[_Event]:
        senders = frozenset(self.folder.senders)
        for packet in self.packets:
            content = packet.node in senders
            label = packet.label
            kind = _kind(packet, content)
            if packet.repair:
                yield packet.time, REPAIR, packet.node, f"{packet.node} repairs: {label}", label
            elif packet.node in self.folder.receivers:
                yield packet.time, kind, packet.node, f"{packet.node} sends {label}", label
            yield from self._losses(packet, label)

    def _losses(self, packet: TracedPacket, label: str) -> Iterator[_Event]:
        alike: dict[tuple[float, str], list[LostCopy]] = {}
        for name, each in self._missed(packet):
            shared = name not in self.hosts
            alike.setdefault((each.time, name if shared else ""), []).append(each)
        for (time, switch), copies in alike.items():
            names = [copy.node for copy in copies]
            who = ", ".join(names[:_NAMED]) + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")
            lost = f"{copies[0].link} loses {label}" if switch else f"{who} {'lose' if len(names) > 1 else 'loses'} {label}"
            yield time, _LOST, names[0], f"{lost}: {copies[0].reason}", ""

    def _decision_events(self) -> Iterator[_Event]:
        for each in self.trace.decisions:
            words = each.name.replace("_", " ")
            yield each.time, each.name, each.node, f"{each.node}: {words}", words

    def _waits(self) -> Iterator[list[float]]:
        """Yield [from, to, node] of each back-off."""
        since: dict[str, TraceEvent] = {}
        for each in self.trace.decisions:
            if each.name in _WAITS:
                since.setdefault(each.node, each)
            elif each.name in _WAIT_ENDS and each.node in since:
                yield [round(since.pop(each.node).time, 7), round(each.time, 7), self.places[each.node]]
        for node, first in since.items():
            yield [round(first.time, 7), self.trace.end, self.places[node]]


def _median(values: Sequence[float]) -> float:
    return median(values) if values else 0.0


def _micro(seconds: float) -> int:
    return round(seconds * 1e6)
