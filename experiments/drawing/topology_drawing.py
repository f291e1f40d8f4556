"""Draw a topology with its link parameters, or with the traffic a run measured."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import hypot, inf
from pathlib import Path

from experiments.drawing.svg import Drawing
from experiments.drawing.topology_layout import Places, place_nodes
from protocols.errors import ConfigError, UsageError
from topologies.channels import Perfect
from topologies.input_file import read_text
from topologies.spec import LinkSpec, Topology
from topologies.units import format_duration, format_rate

__all__ = ["MOST_NODES", "MeasuredTraffic", "draw_topology", "read_measured_traffic"]

MOST_NODES = 400
_MOST_LABELS = 40
_LARGEST_RESULT = 100_000_000
_MOST_MEMBERS = 12
_MARGIN_X, _MARGIN_Y = 70.0, 84.0
_GAP = 4.0
_THIN, _THICK = 1.6, 8.0
_STEPS = (0.0, 0.005, 0.02, 0.05, 0.1)
_NAMES = ("no loss", "up to 0.5%", "to 2%", "to 5%", "to 10%", "more")


@dataclass(frozen=True, slots=True)
class MeasuredTraffic:
    """Traffic of a run: (offered, missed) packets per link direction, and the loss fraction of each receiver."""

    links: Mapping[tuple[str, str], tuple[int, int]]
    receivers: Mapping[str, float]


def read_measured_traffic(run: Path, topology: Topology) -> MeasuredTraffic:
    """Read the traffic of a run's folder; UsageError if there is no result, or one of another topology."""
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
    strange = [row["link"] for row in rows if row["link"] not in names]
    if strange:
        raise UsageError(f"--run: {path} belongs to another topology; it has a link {strange[0]}")
    links = {names[row["link"]]: (row["offered"], row["dropped"] + row["lost"] + row.get("corrupt", 0)) for row in rows}
    return MeasuredTraffic(links, receivers)


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
        places = place_nodes(topology)
        self.places: Places = {name: (x + _MARGIN_X, y + _MARGIN_Y) for name, (x, y) in places.items()}
        self.labelled = len(topology.links) <= _MOST_LABELS
        members = max((self._fan(name)[1] for name in topology.host_nodes), default=0.0)
        self.drawing.width = max(max(x for x, _ in self.places.values()) + _MARGIN_X + members, 640.0)
        self.drawing.height = max(y for _, y in self.places.values()) + _MARGIN_Y + 8

    def draw(self) -> Drawing:
        self.drawing.text_at(20, 24, self.drawing.title, size=14, bold=True, halo=False)
        for near, far, spec in self.topology.links:
            self._link(near, far, spec)
        for name, (x, y) in self.places.items():
            if self.topology.node(name).kind == "host":
                self._host(name, x, y)
            else:
                width = max(34.0, 8.0 * len(name) + 14)
                self.drawing.box(x - width / 2, y - 13, width, 26, "band", ring="soft", rounding=5, layer=2, note=name)
                self.drawing.text_at(x, y, name, size=11.5, anchor="middle", bold=True, halo=False)
        self._legend()
        return self.drawing

    def _link(self, near: str, far: str, spec: LinkSpec) -> None:
        (ax, ay), (bx, by) = self.places[near], self.places[far]
        length = hypot(bx - ax, by - ay) or 1.0
        # Offset each direction to its right.
        dx, dy = -(by - ay) / length * _GAP, (bx - ax) / length * _GAP
        loss, width, words = self._look(near, far, spec)
        note = f"{near} to {far}: {words}"
        points = [(ax + dx, ay + dy), (bx + dx, by + dy)]
        self.drawing.line(points, _colour(loss), width, layer=0, note=note)
        if self.labelled and words and (self.traffic is None or loss > 0):
            # On its own side, slightly towards the far end.
            aside = 1 + (width / 2 + 6) / _GAP
            x, y = ax + (bx - ax) * 0.55 + dx * aside, ay + (by - ay) * 0.55 + dy * aside
            steep = abs(by - ay) > abs(bx - ax)
            anchor = ("end" if dx < 0 else "start") if steep else "middle"
            self.drawing.text_at(x, y, words, size=9.5, colour="soft", anchor=anchor)

    def _look(self, near: str, far: str, spec: LinkSpec) -> tuple[float, float, str]:
        """Return (loss fraction, line width, label) of one direction."""
        if self.traffic is None:
            return spec.loss.rate, 2.4, _described(spec)
        offered, missed = self.traffic.links.get((near, far), (0, 0))
        if not offered:
            return 0.0, 1.0, "no packets"
        share = missed / offered
        width = _THIN + (_THICK - _THIN) * (offered / self._members(near, far)) / self._most()
        return share, width, f"{share:.2%} of {offered}" if missed else f"{offered} packets"

    def _members(self, near: str, far: str) -> int:
        """Return how many member links of a counted group this link stands for."""
        return max(self.topology.node(name).count or 1 for name in (near, far))

    def _most(self) -> float:
        assert self.traffic is not None
        return max(offered / self._members(*link) for link, (offered, _) in self.traffic.links.items())

    def _fan(self, name: str) -> tuple[int, float]:
        """Return how many members are drawn individually, and their width in pixels."""
        count = self.topology.node(name).count or 1
        return (count, 0.0) if count == 1 else (min(count, _MOST_MEMBERS), 17.0 * min(count, _MOST_MEMBERS) + 30)

    def _host(self, name: str, x: float, y: float) -> None:
        count, size = self._fan(name), self.topology.size(name)
        if size == 1:
            host = self.topology.member_name(name, 0)
            self.drawing.dot(x, y, 9, self._member_look(host), ring="ground", note=self._told(host))
            self.drawing.text_at(x, y + 20, host, anchor="middle", bold=True)
            return
        hosts = [self.topology.member_name(name, place) for place in range(count[0])]
        self.drawing.box(x - 12, y - 13, count[1] - (30 if size <= _MOST_MEMBERS else 0) + 8, 26, "band", rounding=13, layer=1)
        for place, host in enumerate(hosts):
            self.drawing.dot(x + 17 * place, y, 6.5, self._member_look(host), ring="ground", note=self._told(host))
        if size > _MOST_MEMBERS:
            self.drawing.text_at(x + 17 * count[0] - 4, y, "...", colour="soft", bold=True, halo=False)
        last = self.topology.member_name(name, size - 1)
        words = f"{hosts[0]} to {last}" if size <= _MOST_MEMBERS else f"{hosts[0]} to {last} ({size} hosts)"
        self.drawing.text_at(x - 8, y + 22, words, bold=True)

    def _member_look(self, host: str) -> str:
        loss = None if self.traffic is None else self.traffic.receivers.get(host)
        return "blue" if loss is None else _colour(loss)

    def _told(self, host: str) -> str:
        loss = None if self.traffic is None else self.traffic.receivers.get(host)
        return host if loss is None else f"{host}: lost {loss:.2%}"

    def _legend(self) -> None:
        drawing, x, y = self.drawing, 24.0, self.drawing.height - 24
        for step, name in enumerate(_NAMES):
            drawing.line([(x, y), (x + 18, y)], f"loss{step}", 4)
            drawing.text_at(x + 25, y, name, halo=False)
            x += 42 + 6.4 * len(name)
        what = "width: packets carried; each direction on its right" if self.traffic else "loss; each direction on its right"
        drawing.text_at(x + 4, y, what, colour="soft", italic=True, halo=False)
        drawing.width = max(drawing.width, x + 260)


def _colour(loss: float) -> str:
    return f"loss{sum(loss > step for step in _STEPS)}"


def _described(spec: LinkSpec) -> str:
    return ", ".join(_parts(spec))


def _parts(spec: LinkSpec) -> Iterator[str]:
    if spec.rate < inf:
        yield format_rate(spec.rate)
    if spec.delay:
        yield format_duration(spec.delay)
    if not isinstance(spec.loss, Perfect):
        yield str(spec.loss)
