"""Draw a topology with its link parameters, or with the traffic a run measured."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import hypot, inf
from pathlib import Path
from typing import Any

import networkx as nx

from experiments.drawing.boxes import Point, text_box, text_width
from experiments.drawing.label_places import LinkLabel, place_labels
from experiments.drawing.node_shapes import shape_of
from experiments.drawing.svg import Drawing
from experiments.drawing.topology_layout import graph_of, place_nodes
from experiments.output.counted import counted
from protocols.errors import ConfigError, UsageError
from topologies.channels import Perfect
from topologies.input_file import read_text
from topologies.spec import LinkSpec, Topology
from topologies.units import format_duration, format_rate

__all__ = ["MOST_NODES", "MeasuredTraffic", "draw_topology", "read_measured_traffic"]

MOST_NODES = 400
_MOST_LABELS = 120
_USUAL = 6
"""Smallest number of directions with equal parameters that the legend states once."""
_LARGEST_RESULT = 100_000_000
_MARGIN, _TOP = 40.0, 64.0
_LABEL, _TITLE = 10.0, 14.0
"""Font sizes in pixels."""
_GAP = 4.0
_SCALES = (1.0, 1.25, 1.6, 2.0)
_PLACES = (0.5, 0.6, 0.4, 0.7, 0.3, 0.8, 0.2)
_TREE_PLACES = (0.7, 0.62, 0.78, 0.54, 0.46, 0.86, 0.38)
"""Places of labels along a link, best first; in a tree the links of a node come apart towards its children."""
_THIN, _THICK = 1.6, 8.0
_STEPS = (0.0, 0.005, 0.02, 0.05, 0.1)
_NAMES = ("no loss", "up to 0.5%", "to 2%", "to 5%", "to 10%", "more lost")


@dataclass(frozen=True, slots=True)
class MeasuredTraffic:
    """Traffic of a run: (offered, missed) packets per link direction, and the loss fraction of each receiver."""

    links: Mapping[tuple[str, str], tuple[int, int]]
    receivers: Mapping[str, float]


def read_measured_traffic(run: Path, topology: Topology, written: Any) -> MeasuredTraffic:
    """Read the traffic of a run's folder; UsageError if there is no result, or one of another topology.

    `written` is the topology as it stands in the scenario, with all defaults.
    """
    path = run / "result.json" if run.is_dir() else run
    try:
        result = json.loads(read_text(path, _LARGEST_RESULT))
        rows = [row for row in result["metrics"]["impairments"] if "offered" in row]
        receivers = {row["name"]: float(row["loss"]) for row in result["receivers"] if row["loss"] is not None}
    except OSError as error:
        raise UsageError(f"--run: {path} can't be read ({error.strerror}); mcastlab run SCENARIO.yaml --out RUN") from error
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise UsageError(f"--run: {path} is not a result of a run") from error
    names = {f"{near}-{far}": (near, far) for near, far, _ in topology.links}
    if not _is_of(path.with_name("scenario.json"), written):
        raise UsageError(f"--run: {path} belongs to another topology; see scenario.json beside it")
    strange = [row["link"] for row in rows if row["link"] not in names]
    if strange:
        raise UsageError(f"--run: {path} belongs to another topology; it has a link {strange[0]}")
    links = {names[row["link"]]: (row["offered"], row["dropped"] + row["lost"] + row.get("corrupt", 0)) for row in rows}
    return MeasuredTraffic(links, receivers)


def _is_of(path: Path, written: Any) -> bool:
    """Return whether the scenario of a run has this topology; True if it was not kept."""
    try:
        kept = json.loads(read_text(path, _LARGEST_RESULT))
    except (OSError, ValueError, RecursionError):
        return True
    return not isinstance(kept, dict) or kept.get("topology") == json.loads(json.dumps(written))


def draw_topology(topology: Topology, title: str, traffic: MeasuredTraffic | None = None) -> Drawing:
    """Draw both directions of every link: colour shows loss, width shows packets carried; ConfigError above MOST_NODES."""
    nodes = len(topology.graph)
    if nodes > MOST_NODES:
        raise ConfigError(f"topology: {nodes} nodes exceed the limit of a drawing, {MOST_NODES}")
    return _Map(topology, title, traffic).draw()


class _Map:
    def __init__(self, topology: Topology, title: str, traffic: MeasuredTraffic | None) -> None:
        self.topology = topology
        self.traffic = traffic
        self.drawing = Drawing(title)
        tree = nx.is_tree(graph_of(topology))
        self.along = _TREE_PLACES if tree else _PLACES
        self.shapes = {name: shape_of(topology, name, tree) for name in topology.graph}
        self.usual = self._usual()
        self.texts = self._texts()
        self._place()

    def _place(self) -> None:
        """Place nodes and labels; links are made longer while a label has no free place, but not without end."""
        boxes = {name: shape.box for name, shape in self.shapes.items()}
        widths = {link: text_width(text, _LABEL) for link, (text, _) in self.texts.items()}
        for scale in _SCALES:
            found = place_nodes(self.topology, boxes, widths, scale)
            self.places = {name: (x + _MARGIN, y + _TOP) for name, (x, y) in found.items()}
            self.nodes = [boxes[name].moved(*at) for name, at in self.places.items()]
            labels = [
                LinkLabel(text, *self._ends(*link), self._clearance(*link), both) for link, (text, both) in self.texts.items()
            ]
            points = place_labels(labels, _LABEL, self.nodes, self.along)
            self.labels = dict(zip(self.texts, points, strict=True))
            if all(point is not None for point in points):
                break
        if not nx.is_tree(graph_of(self.topology)):
            self._turn_names()

    def _turn_names(self) -> None:
        """Write the name of a host above it where its links come from below."""
        for name, (_, y) in self.places.items():
            behind = [self.places[other][1] for other in self.topology.graph.successors(name)]
            if self.shapes[name].hosts and sum(behind) > y * len(behind):
                self.shapes[name] = self.shapes[name].turned()

    def _ends(self, near: str, far: str) -> tuple[Point, Point]:
        return self.places[near], self.places[far]

    def _clearance(self, near: str, far: str) -> float:
        """Return the distance from the middle of a link to its labels: beyond both of its lines."""
        return _GAP + max(self._look(*link)[1] for link in ((near, far), (far, near))) / 2 + 3

    def draw(self) -> Drawing:
        drawing, points = self.drawing, [point for point in self.labels.values() if point is not None]
        texts = [text_box(*point, self.texts[link][0], _LABEL, "middle") for link, point in self.labels.items() if point]
        boxes = [*self.nodes, *texts]
        # Labels may lie outside the outline of the nodes.
        right, down = max(0.0, _MARGIN - min(box.left for box in boxes)), max(0.0, _TOP - min(box.top for box in boxes))
        drawing.width = max(box.right for box in boxes) + right + _MARGIN
        drawing.height = max(box.bottom for box in boxes) + down + 24
        self.places = {name: (x + right, y + down) for name, (x, y) in self.places.items()}
        drawing.text_at(20, 26, drawing.title, size=_TITLE, bold=True, halo=False)
        for near, far, spec in self.topology.links:
            self._link(near, far, spec)
        for link, point in self.labels.items():
            if point is not None:
                drawing.text_at(
                    point[0] + right, point[1] + down, self.texts[link][0], size=_LABEL, colour="soft", anchor="middle"
                )
        for name, at in self.places.items():
            self.shapes[name].draw(drawing, *at, self._host_look)
        self._legend(len(self.labels) - len(points))
        drawing.width = max(drawing.width, 40 + text_width(drawing.title, _TITLE, bold=True))
        return drawing

    def _link(self, near: str, far: str, spec: LinkSpec) -> None:
        """Draw one direction of a link, on its right."""
        (ax, ay), (bx, by) = self._ends(near, far)
        length = hypot(bx - ax, by - ay) or 1.0
        dx, dy = -(by - ay) / length * _GAP, (bx - ax) / length * _GAP
        loss, width = self._look(near, far)
        note = f"{near} to {far}: {self._described(near, far, spec)}"
        self.drawing.line([(ax + dx, ay + dy), (bx + dx, by + dy)], _colour(loss), width, layer=0, note=note)

    def _look(self, near: str, far: str) -> tuple[float, float]:
        """Return the loss fraction of one direction and the width of its line."""
        if self.traffic is None:
            return self.topology.link(near, far).loss.rate, 2.4
        offered, missed = self.traffic.links.get((near, far), (0, 0))
        if not offered:
            return 0.0, 1.0
        return missed / offered, _THIN + (_THICK - _THIN) * (offered / self._members(near, far)) / self._most()

    def _described(self, near: str, far: str, spec: LinkSpec) -> str:
        """Return the parameters of one direction, or what a run measured on it."""
        if self.traffic is None:
            return ", ".join(_parts(spec))
        offered, missed = self.traffic.links.get((near, far), (0, 0))
        lost = f"{missed / offered:.2%} lost of " if missed else ""
        return f"{lost}{counted(offered, 'packet', spec=',')}" if offered else "no packets"

    def _usual(self) -> str:
        """Return the parameters that most links have in both directions, which the legend states instead of a label at each."""
        if self.traffic is not None:
            return ""
        found = Counter(self._described(*link) for link in self.topology.links)
        text, count = found.most_common(1)[0] if found else ("", 0)
        return text if count >= _USUAL and count * 2 >= found.total() else ""

    def _texts(self) -> dict[tuple[str, str], tuple[str, bool]]:
        """Return the label of each labelled direction, and whether it is that of both directions; {} if there are too many."""
        found: dict[tuple[str, str], tuple[str, bool]] = {}
        for near, far, spec in self.topology.links:
            text = self._described(near, far, spec)
            if not text or text == self.usual or (self.traffic is not None and not self._look(near, far)[0]):
                continue
            if found.get((far, near), ("", False))[0] == text:
                found[far, near] = (text, True)
            else:
                found[near, far] = (text, False)
        return found if len(found) <= _MOST_LABELS else {}

    def _members(self, near: str, far: str) -> int:
        """Return how many member links of a counted group this link stands for."""
        return max(self.topology.node(name).count or 1 for name in (near, far))

    def _most(self) -> float:
        assert self.traffic is not None
        return max(offered / self._members(*link) for link, (offered, _) in self.traffic.links.items())

    def _host_look(self, host: str) -> tuple[str, str]:
        """Return the colour and the tooltip of a host."""
        loss = None if self.traffic is None else self.traffic.receivers.get(host)
        return ("blue", host) if loss is None else (_colour(loss), f"{host}: lost {loss:.2%}")

    def _legend(self, hidden: int) -> None:
        """Draw the colours below the network, and on a second line what else has to be known to read it."""
        drawing, x, y = self.drawing, 24.0, self.drawing.height + 8
        for step, name in enumerate(_NAMES):
            drawing.line([(x, y), (x + 18, y)], f"loss{step}", 4)
            drawing.text_at(x + 25, y, name, halo=False)
            x += 43 + text_width(name, 11)
        notes = ["each direction of a link on its right"]
        notes += ["width: packets carried"] if self.traffic else []
        notes += [f"links without a label: {self.usual}"] if self.usual else []
        notes += [f"{hidden} labels have no room: move the mouse over their links"] if hidden else []
        if (
            not self.texts
            and self.traffic is None
            and not self.usual
            and any(self._described(*link) for link in self.topology.links)
        ):
            notes += ["move the mouse over a link for its parameters"]
        words = "; ".join(notes)
        drawing.text_at(24, y + 22, words, colour="soft", halo=False)
        drawing.width = max(drawing.width, x + 6, 48 + text_width(words, 11))
        drawing.height = y + 44


def _colour(loss: float) -> str:
    return f"loss{sum(loss > step for step in _STEPS)}"


def _parts(spec: LinkSpec) -> Iterator[str]:
    if spec.rate < inf:
        yield format_rate(spec.rate)
    if spec.delay:
        yield format_duration(spec.delay)
    if not isinstance(spec.loss, Perfect):
        yield str(spec.loss)
