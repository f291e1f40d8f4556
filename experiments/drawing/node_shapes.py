"""Shapes of the nodes of a topology: a switch is a box around its name, hosts are dots with their name below or beside."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from experiments.drawing.boxes import Box, text_box, text_width
from experiments.drawing.svg import Drawing
from topologies.spec import Topology

__all__ = ["NodeShape", "shape_of"]

_NAME, _SWITCH = 11.0, 11.5
"""Font sizes in pixels."""
_STEP = 17.0
_MOST_MEMBERS, _FEWER_MEMBERS = 12, 5
"""Members of a group that are drawn one by one in a tree, and in a graph with cycles, where room is scarce."""
_BAND = 13.0
"""Half the height of the band behind the members of a group."""


@dataclass(frozen=True, slots=True)
class NodeShape:
    """A node around (0, 0): its name with the name's position, the hosts drawn as dots from `first` rightwards, and its box."""

    name: str
    at: tuple[float, float]
    anchor: str
    hosts: tuple[str, ...]
    first: float
    more: bool
    box: Box

    def draw(self, drawing: Drawing, x: float, y: float, look: Callable[[str], tuple[str, str]]) -> None:
        """Draw the node around (x, y); `look` returns the colour and the tooltip of a host."""
        if not self.hosts:
            box = self.box.moved(x, y)
            width, height = box.right - box.left, box.bottom - box.top
            drawing.box(box.left, box.top, width, height, "band", ring="soft", rounding=5, layer=2, note=self.name)
            drawing.text_at(x, y, self.name, size=_SWITCH, anchor="middle", bold=True, halo=False)
            return
        if len(self.hosts) > 1:
            end = self.first + _STEP * (len(self.hosts) - 1) + (22 if self.more else 0)
            drawing.box(x + self.first - 12, y - _BAND, end - self.first + 24, 2 * _BAND, "band", rounding=_BAND, layer=1)
        for place, host in enumerate(self.hosts):
            colour, note = look(host)
            radius = 6.5 if len(self.hosts) > 1 else 9
            drawing.dot(x + self.first + _STEP * place, y, radius, colour, ring="ground", note=note)
        if self.more:
            drawing.text_at(x + self.first + _STEP * len(self.hosts) - 4, y, "...", colour="soft", bold=True, halo=False)
        drawing.text_at(x + self.at[0], y + self.at[1], self.name, size=_NAME, anchor=self.anchor, bold=True)

    def turned(self) -> "NodeShape":
        """Return the shape with its name on the other side of the dots."""
        return replace(self, at=(self.at[0], -self.at[1]))


def shape_of(topology: Topology, node: str, tree: bool) -> NodeShape:
    """Return the shape of a graph node; in a `tree` a group extends to the right of its place.

    Elsewhere it extends to both sides, with room for the name below and above.
    """
    if topology.node(node).kind != "host":
        half = max(17.0, text_width(node, _SWITCH, bold=True) / 2 + 7)
        return NodeShape(node, (0.0, 0.0), "middle", (), 0.0, False, Box(-half, -13.0, half, 13.0))
    size = topology.size(node)
    if size == 1:
        return _single(topology.member_name(node, 0), tree, beside=tree and node != topology.host_nodes[0])
    most = min(size, _MOST_MEMBERS if tree else _FEWER_MEMBERS)
    hosts = tuple(topology.member_name(node, place) for place in range(most))
    words = f"{hosts[0]} to {topology.member_name(node, size - 1)}" + (f" ({size} hosts)" if size > most else "")
    width = _STEP * (most - 1) + (22 if size > most else 0)
    first = 0.0 if tree else -width / 2
    x, anchor = (-8.0, "start") if tree else (0.0, "middle")
    name = text_box(x, _BAND + 9, words, _NAME, anchor, bold=True)
    box = Box(min(first - 12, name.left), -_BAND if tree else -name.bottom, max(first + width + 12, name.right), name.bottom)
    return NodeShape(words, (x, _BAND + 9), anchor, hosts, first, size > most, box)


def _single(host: str, tree: bool, beside: bool) -> NodeShape:
    """Return the shape of one host with its name `beside` it or below."""
    at, anchor = ((15.0, 0.0), "start") if beside else ((0.0, 20.0), "middle")
    name = text_box(*at, host, _NAME, anchor, bold=True)
    low = max(10.0, name.bottom)
    box = Box(min(-10.0, name.left), -10.0 if tree else -low, max(10.0, name.right), low)
    return NodeShape(host, at, anchor, (host,), 0.0, False, box)
