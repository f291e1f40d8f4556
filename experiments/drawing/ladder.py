"""Draw the sequence diagram of a run: a lifeline per host, a line per packet, time running downwards."""

from collections.abc import Iterator
from itertools import pairwise
from statistics import median
from textwrap import wrap

from experiments.captures.trace_file import TracedPacket, TraceEvent
from experiments.drawing.boxes import text_width
from experiments.drawing.ladder_excerpt import FoldedPackets, LadderExcerpt
from experiments.drawing.parity_requests import parity_rule
from experiments.drawing.svg import Drawing
from topologies.units import format_duration

__all__ = ["draw_ladder"]

_LEFT, _RIGHT, _TOP, _BOTTOM = 178.0, 90.0, 84.0, 64.0
_COLUMN = 122.0
_TRANSIT = 26.0
"""Height in pixels of the median transit time between hosts."""
_LARGEST_STEP, _LABEL_STEP, _FOLD_STEP = 54.0, 15.0, 30.0
_COLOURS = {"data": "blue", "info": "violet", "nack": "orange", "ack": "violet", "cc": "grey", "flush": "teal"}
_OTHERS = ("teal", "violet", "grey", "blue")
_ENDS = ("nack_due", "nack_suppressed", "nack_needless")
_TOLD = ("object_received", "object_aborted")
_STEPS = {
    "container_taken": "teal",
    "message_cached": "teal",
    "pool_exhausted": "red",
    "message_refused": "red",
    "message_completed": "blue",
    "message_delivered": "green",
    "container_returned": "teal",
}
"""Steps of a subscriber that concern a message, with their colours."""


def _held_back(cut: LadderExcerpt) -> list[tuple[TraceEvent, float]]:
    """Return suppressed requests with the time each was due, except those resumed before that."""
    found = []
    for place, each in enumerate(cut.decisions):
        if each.name != "nack_suppressed":
            continue
        due = float(each.data["due"])
        later = (other for other in cut.decisions[place + 1 :] if other.node == each.node and other.time <= due)
        if not any(other.name == "nack_resumed" for other in later):
            found.append((each, due))
    return found


class _Scale:
    """Map time to height: monotonic, with long gaps shortened and labels kept apart."""

    def __init__(self, cut: LadderExcerpt) -> None:
        times = {cut.begin, cut.end} | {each.time for each in cut.decisions}
        times |= {due for _, due in _held_back(cut) if due <= cut.end}
        transits = []
        labels: dict[float, float] = {}
        for item in cut.shown:
            packets = (item.packets[0], item.packets[-1]) if isinstance(item, FoldedPackets) else (item,)
            times.update(packet.time for packet in packets)
            labels[packets[0].time] = _LABEL_STEP
            if isinstance(item, FoldedPackets):
                labels[packets[-1].time] = _FOLD_STEP
            else:
                came = [when for host, when in item.received.items() if host in cut.hosts]
                times.update(came)
                transits += [when - item.time for when in came]
        unit = _TRANSIT / (median(transits) or 1e-3) if transits else 1e3
        self.breaks: list[tuple[float, float]] = []
        self._heights: dict[float, float] = {}
        self._place(sorted(times), labels, unit)

    def _place(self, times: list[float], labels: dict[float, float], unit: float) -> None:
        y = _TOP
        label_y = y if times[0] in labels else -100.0
        self._heights[times[0]] = y
        for before, time in pairwise(times):
            step = (time - before) * unit
            if step > _LARGEST_STEP:
                self.breaks.append((before, time))
                step = _LARGEST_STEP
            y += step
            if time in labels:
                y = max(y, label_y + labels[time])
                label_y = y
            self._heights[time] = y
        self.bottom = y + 18

    def __call__(self, time: float) -> float:
        found = self._heights.get(time)
        if found is not None:
            return found
        before = max((known for known in self._heights if known < time), default=min(self._heights))
        after = min((known for known in self._heights if known > time), default=before)
        if after == before:
            return self._heights[before]
        share = (time - before) / (after - before)
        return self._heights[before] + share * (self._heights[after] - self._heights[before])


class _Ladder:
    def __init__(self, cut: LadderExcerpt, title: str) -> None:
        self.cut = cut
        self.scale = _Scale(cut)
        self.x = {name: _LEFT + place * _COLUMN for place, name in enumerate(cut.hosts)}
        self.drawing = Drawing(title)
        self.drawing.width = _LEFT + _COLUMN * (len(cut.hosts) - 1) + _RIGHT
        self.drawing.height = self.scale.bottom + _BOTTOM
        kinds = dict.fromkeys(packet.kind for packet in self._packets())
        spare = iter(_OTHERS * len(kinds))
        self.colours = {kind: _COLOURS.get(kind) or next(spare) for kind in kinds}
        self.transits = self._median_transits()
        self.transit = median(self.transits.values()) if self.transits else 0.0

    def _packets(self) -> Iterator[TracedPacket]:
        for item in self.cut.shown:
            if isinstance(item, FoldedPackets):
                yield from item.packets
            else:
                yield item

    def _median_transits(self) -> dict[tuple[str, str], float]:
        """Return the median transit time of packets by (source, destination)."""
        found: dict[tuple[str, str], list[float]] = {}
        for packet in self._packets():
            for host, when in packet.received.items():
                found.setdefault((packet.node, host), []).append(when - packet.time)
        return {pair: median(times) for pair, times in found.items()}

    def colour(self, packet: TracedPacket) -> str:
        return "green" if packet.repair else self.colours[packet.kind]

    def draw(self) -> Drawing:
        self._frame()
        self._backoffs()
        self._holdoffs()
        self._held_back()
        for item in self.cut.shown:
            if isinstance(item, FoldedPackets):
                self._fold(item)
            else:
                self._packet(item)
        for decision in self.cut.decisions:
            self._decision(decision)
        self._axis()
        self._legend()
        if self.cut.is_numbered:
            self._numbers()
        return self.drawing

    def _numbers(self) -> None:
        """Draw the number of each line right of the last lifeline."""
        for number, item in enumerate(self.cut.shown, 1):
            y = self.scale(item.packets[-1].time) - 11 if isinstance(item, FoldedPackets) else self.scale(item.time)
            self.drawing.text_at(max(self.x.values()) + 44, y, str(number), size=10, colour="soft", anchor="end", halo=False)

    def _frame(self) -> None:
        drawing, bottom = self.drawing, self.scale.bottom
        drawing.text_at(20, 24, drawing.title, size=14, bold=True, halo=False)
        for name, x in self.x.items():
            drawing.line([(x, _TOP - 12), (x, bottom)], "faint", 2, layer=0)
            width = max(54.0, 7.2 * len(name) + 18)
            drawing.box(x - width / 2, _TOP - 36, width, 24, "band", ring="faint", rounding=6, layer=2)
            drawing.text_at(x, _TOP - 24, name, size=12, anchor="middle", bold=True, halo=False)

    def _label(self, packet: TracedPacket) -> str:
        request = self.cut.parity.get(packet.number)
        return f"{packet.kind} {packet.brief if request is None else request.asked}".strip()

    def _packet(self, packet: TracedPacket) -> None:
        x, y, colour = self.x[packet.node], self.scale(packet.time), self.colour(packet)
        to = "" if packet.to in self.x else f" to {packet.to}"
        note = f"{'repair: ' if packet.repair else ''}{self._label(packet)}{to}, sent {packet.time:.6f} s"
        if packet.number in self.cut.parity:
            note += f"; {self.cut.parity[packet.number].explained}"
        for side in (-1, 1):
            columns = sorted((name for name in self.x if (self.x[name] - x) * side > 0), key=lambda name: abs(self.x[name] - x))
            self._side(packet, columns, note)
        self.drawing.dot(x, y, 2.6, colour)
        if x == min(self.x.values()):
            self.drawing.text_at(x - 9, y, self._label(packet), colour=colour, anchor="end", bold=packet.repair)
        elif x == max(self.x.values()):
            self.drawing.text_at(x - 8, y - 7, self._label(packet), colour=colour, anchor="end", bold=True)
        else:
            self.drawing.text_at(x + 8, y - 7, self._label(packet), colour=colour, bold=True)

    def _side(self, packet: TracedPacket, columns: list[str], note: str) -> None:
        """Draw the packet's line to one side of its source, through all columns it reaches or is lost on the way to."""
        drawing, colour = self.drawing, self.colour(packet)
        x, y = self.x[packet.node], self.scale(packet.time)
        lost = {each.node: each for each in packet.missed}
        reached = [name for name in columns if name in packet.received or name in lost]
        if not reached:
            shared = [each for each in packet.missed if each.node not in self.x]
            if shared and columns and not packet.received:
                far = self.x[columns[0]]
                middle, height = (x + far) / 2, (y + self.scale(packet.time + self.transit)) / 2
                drawing.line([(x, y), (middle, height)], colour, 1.4, note=note)
                drawing.cross(middle, height, note=f"{shared[0].reason} on {shared[0].link}")
            return
        points = [(x, y)]
        for name in reached:
            points.append((self.x[name], self.scale(self._arrival(packet, name))))
        drawing.line(points, colour, 2.2 if packet.repair else 1.4, note=note)
        for name, (ax, ay), (bx, by) in zip(reached, points, points[1:], strict=False):
            if name in packet.received:
                drawing.arrowhead(bx, by, bx - ax, by - ay, colour)
            else:
                drawing.cross(bx, by, note=f"{lost[name].reason} on {lost[name].link}")

    def _arrival(self, packet: TracedPacket, name: str) -> float:
        """Return when a copy arrived, or, for a lost copy, when it would have arrived by the median transit time."""
        came = packet.received.get(name)
        return packet.time + self.transits.get((packet.node, name), self.transit) if came is None else came

    def _fold(self, fold: FoldedPackets) -> None:
        first, last = fold.packets[0], fold.packets[-1]
        missed = sum(bool(packet.missed) for packet in fold.packets)
        losses = f", {missed} of them lost on some link" if missed else ""
        what = f"{len(fold.packets)} more {'repairs' if first.repair else first.kind}{losses}"
        y = self.scale(last.time) - 11
        left = min(self.x.values())
        self.drawing.box(left, y - 9, max(self.x.values()) - left, 18, "band", rounding=9)
        x = self.x[first.node]
        for step in (-5, 0, 5):
            self.drawing.dot(x, y + step, 1.7, self.colour(first))
        self.drawing.text_at(left + 12, y, what, colour="soft", italic=True)

    def _backoffs(self) -> None:
        """Draw back-offs as bars on the lifelines."""
        since: dict[str, float] = {}
        for decision in self.cut.decisions:
            if decision.name in ("nack_backoff", "nack_resumed"):
                since[decision.node] = decision.time
            elif decision.name in _ENDS and decision.node in since:
                self._bar(decision.node, since.pop(decision.node), decision.time)
        for node, time in since.items():
            self._bar(node, time, self.cut.end)

    def _holdoffs(self) -> None:
        """Draw hold-offs as bars on the lifelines; one that a repair ended before its time ends with the next back-off."""
        for place, decision in enumerate(self.cut.decisions):
            if decision.name == "holdoff":
                later = (each for each in self.cut.decisions[place:] if each.node == decision.node)
                ends = [min(float(each.data["since"]), each.time) for each in later if each.name == "holdoff_over"]
                end = min(ends[0] if ends else float(decision.data["until"]), self.cut.end)
                self._bar(decision.node, decision.time, end, "violet", "hold-off")

    def _held_back(self) -> None:
        """Draw the requests that were suppressed as dashed lines."""
        for decision, due in _held_back(self.cut):
            x, end = self.x[decision.node], self.scale(min(due, self.cut.end))
            self.drawing.line([(x, self.scale(decision.time)), (x, end)], "orange", 1.6, dash="2 5", layer=0)
            if due <= self.cut.end:
                note = f"{decision.node}: suppressed NACK was due at {due:.6f} s"
                far, low = x - _COLUMN * 0.45, end + _TRANSIT * 0.2
                self.drawing.line([(x, end), (far, low)], "orange", 1.6, dash="5 4", note=note)
                self.drawing.arrowhead(far - 6, low + 0.6, -_COLUMN, _TRANSIT * 0.45, "orange", 6)

    def _bar(self, node: str, begin: float, end: float, colour: str = "orange", what: str = "back-off") -> None:
        top, bottom = self.scale(begin), self.scale(end)
        self.drawing.box(
            self.x[node] - 3.5,
            top,
            7,
            max(bottom - top, 2),
            colour,
            rounding=3.5,
            opacity=0.4,
            layer=0,
            note=f"{node}: {what} of {format_duration(round(end - begin, 6))}",
        )

    def _decision(self, decision: TraceEvent) -> None:
        x, y, drawing = self.x[decision.node], self.scale(decision.time), self.drawing
        if decision.name == "nack_suppressed":
            drawing.dot(
                x, y, 3.4, "ground", ring="orange", note=f"{decision.node}: NACK suppressed, others requested all it misses"
            )
        elif decision.name in _STEPS:
            what = f"{decision.name.replace('_', ' ')}, message {decision.data['object']} of {decision.data['publisher']}"
            drawing.dot(x - 6, y, 2.6, _STEPS[decision.name], note=f"{decision.node}: {what}")
        elif decision.name in _TOLD:
            good = decision.name == "object_received"
            drawing.dot(x, y, 5, "green" if good else "red", ring="ground", note=f"{decision.node}: {decision.name}")
            word = "complete" if good else "aborted"
            drawing.text_at(x + 9, y + 8, word, size=10.5, colour="green" if good else "red", bold=True)

    def _axis(self) -> None:
        """Draw time labels that do not overlap, and marks where gaps are shortened."""
        last = -100.0
        for item in self.cut.shown:
            y = self.scale(item.time)
            if y - last >= 3 * _LABEL_STEP and not isinstance(item, FoldedPackets):
                self.drawing.text_at(20, y, f"{item.time:.4f} s", size=10, colour="soft", halo=False)
                self.drawing.line([(14, y), (17, y)], "soft", 1)
                last = y
        for before, after in self.scale.breaks:
            y = (self.scale(before) + self.scale(after)) / 2
            for shift in (-2.5, 2.5):
                self.drawing.line([(9, y + shift + 3), (19, y + shift - 3)], "soft", 1.2, note=f"{after - before:.4f} s")

    def _legend(self) -> None:
        """Draw what lines and marks stand for, and below it why a NACK names another symbol than the one lost."""
        drawing, x, y = self.drawing, 24.0, self.scale.bottom + 30
        entries = [(kind, self.colours[kind]) for kind in self.colours]
        if any(packet.repair for packet in self._packets()):
            entries.append(("repair", "green"))
        for name, colour in entries:
            drawing.line([(x, y), (x + 20, y)], colour, 2.2)
            x = self._entry(x + 26, y, name)
        drawing.cross(x + 8, y)
        x = self._entry(x + 20, y, "lost")
        names = {decision.name for decision in self.cut.decisions}
        if "nack_backoff" in names:
            drawing.box(x + 6, y - 8, 7, 16, "orange", rounding=3.5, opacity=0.4)
            x = self._entry(x + 20, y, "back-off")
        if "holdoff" in names:
            drawing.box(x + 6, y - 8, 7, 16, "violet", rounding=3.5, opacity=0.4)
            x = self._entry(x + 20, y, "hold-off")
        for step in [step for step in _STEPS if step in names]:
            drawing.dot(x + 4, y, 2.6, _STEPS[step])
            x = self._entry(x + 12, y, step.replace("_", " "))
        if "nack_suppressed" in names:
            drawing.dot(x + 4, y, 3.4, "ground", ring="orange")
            drawing.line([(x + 10, y), (x + 30, y)], "orange", 1.6, dash="5 4")
            x = self._entry(x + 36, y, "NACK suppressed")
        drawing.width = max(drawing.width, x)
        for line in wrap(parity_rule(self.cut.parity.values()), int((drawing.width - 48) / text_width("x", 11))):
            y += 20
            drawing.text_at(24, y, line, colour="soft", halo=False)
        drawing.height = max(drawing.height, y + 30)

    def _entry(self, x: float, y: float, name: str) -> float:
        """Draw a name of the legend and return where the next entry begins."""
        self.drawing.text_at(x, y, name, halo=False)
        return x + text_width(name, 11) + 16


def draw_ladder(cut: LadderExcerpt, title: str) -> Drawing:
    """Draw the sequence diagram of an excerpt of a trace."""
    return _Ladder(cut, title).draw()
