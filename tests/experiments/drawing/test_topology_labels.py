"""Labels of topologies: no text overlaps another or a node, in estimates and in a browser, whatever the network."""

from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from random import Random
from typing import Any
from xml.etree.ElementTree import Element

import networkx as nx
import pytest

from experiments.drawing.boxes import Box, text_box, text_width
from experiments.drawing.label_places import LinkLabel, place_labels
from experiments.drawing.topology_drawing import MeasuredTraffic, draw_topology
from experiments.scenario.scenario import load
from tests.experiments.drawing.test_ladder import shapes, words
from tests.experiments.drawing.test_topology_drawing import topology
from tests.support.browser import Browser, browser
from topologies.spec import LinkAttributes, NodeSpec, Topology, connect

SCENARIOS = Path(__file__).parents[3] / "experiments" / "scenarios"
OVERLAPS = """
[...document.querySelectorAll('svg')].flatMap((svg) => {
  const boxes = [...svg.querySelectorAll('text')].map((text) => [text.textContent, text.getBoundingClientRect()]);
  const all = svg.getBoundingClientRect();
  const meet = (a, b) => a.left < b.right && b.left < a.right && a.top + 2 < b.bottom && b.top + 2 < a.bottom;
  const out = (a) => a.left < all.left || a.right > all.right || a.bottom > all.bottom;
  return boxes.flatMap(([name, a], i) => [
    ...boxes.slice(i + 1).filter(([, b]) => meet(a, b)).map(([other]) => `${svg.ariaLabel}: ${name} / ${other}`),
    ...(out(a) ? [`${svg.ariaLabel}: ${name} leaves the drawing`] : []),
  ]);
})
"""
"""Texts that overlap or leave their drawing; the last two pixels of a line's height are empty."""


def network() -> "nx.DiGraph[str]":
    """Return a graph without nodes."""
    return nx.DiGraph()


def wan(seed: int, switches: int = 20) -> Topology:
    """Return a network with cycles, links of different parameters, and groups of receivers of different sizes."""
    rng, graph = Random(seed), network()
    core = nx.connected_watts_strogatz_graph(switches, 4, 0.3, seed=seed)
    for number in core:
        graph.add_node(f"s{number}", node=NodeSpec("switch"))
    graph.add_node("sender", node=NodeSpec("host"))
    connect(graph, "sender", "s0", LinkAttributes())
    for near, far in core.edges:
        delay, loss = f"{rng.randint(1, 50)}ms", f"{rng.randint(0, 9)}%"
        attributes: dict[str, Any] = {"rate": rng.choice(["10Mbit", "100Mbit"]), "delay": delay, "down": {"loss": loss}}
        connect(graph, f"s{near}", f"s{far}", LinkAttributes(**attributes))
    for number in range(0, switches, 2):
        graph.add_node(f"site{number}_", node=NodeSpec("host", count=rng.choice([1, 3, 1000])))
        connect(graph, f"s{number}", f"site{number}_", LinkAttributes.model_validate({"rate": "10Mbit", "loss": "1%"}))
    return Topology(graph)


def tree(seed: int, nodes: int) -> Topology:
    """Return a random tree of switches with single hosts at its leaves, all links different."""
    rng, graph = Random(seed), network()
    graph.add_node("sender", node=NodeSpec("host"))
    below = {0: 0} | {number: rng.randrange(number) for number in range(1, nodes)}
    for number in range(nodes):
        graph.add_node(f"switch-{number}", node=NodeSpec("switch"))
    connect(graph, "sender", "switch-0", LinkAttributes())
    for number in range(nodes):
        attributes = LinkAttributes.model_validate(
            {"delay": f"{rng.randint(1, 900)}us", "down": {"loss": f"{rng.randint(1, 30)}%"}}
        )
        if number:
            connect(graph, f"switch-{below[number]}", f"switch-{number}", attributes)
        if number not in list(below.values())[1:]:
            graph.add_node(f"receiver{number}", node=NodeSpec("host"))
            connect(graph, f"switch-{number}", f"receiver{number}", attributes)
    return Topology(graph)


def star(hosts: int) -> Topology:
    """Return a star whose hosts are a node each."""
    graph = network()
    graph.add_node("s1", node=NodeSpec("switch"))
    for name in ("sender", *(f"r{number}" for number in range(1, hosts + 1))):
        graph.add_node(name, node=NodeSpec("host"))
        connect(graph, name, "s1", LinkAttributes.model_validate({"delay": f"{len(graph)}ms"}))
    return Topology(graph)


def ring(switches: int) -> Topology:
    """Return a ring with a host at each switch."""
    graph = network()
    for number in range(switches):
        graph.add_node(f"s{number}", node=NodeSpec("switch"))
        graph.add_node("sender" if number == 0 else f"h{number}", node=NodeSpec("host"))
    for number in range(switches):
        connect(graph, f"s{number}", f"s{(number + 1) % switches}", LinkAttributes.model_validate({"rate": "10Mbit"}))
        connect(graph, "sender" if number == 0 else f"h{number}", f"s{number}", LinkAttributes())
    return Topology(graph)


MADE = {
    "a ring of three": ring(3),
    "a star of 100": star(100),
    "1,000 receivers": topology({"kind": "star", "receivers": 1000, "link": {"down": {"loss": "3%"}}}),
    "a chain of 12": topology({"kind": "chain", "switches": 12, "trunk": {"rate": "10Mbit", "delay": "5ms"}}),
    "a dumbbell": topology({"kind": "dumbbell", "receivers": 30}),
    **{f"WAN {seed}": wan(seed) for seed in range(4)},
    **{f"tree {seed}": tree(seed, 6 * seed + 4) for seed in range(6)},
}


def estimated(svg: str) -> Iterator[tuple[str, Box]]:
    """Yield the texts of a drawing with their estimated boxes."""
    for element in shapes(svg):
        if element.tag.endswith("text"):
            yield element.text or "", box_of(element)


def box_of(element: Element) -> Box:
    size, bold = float(element.attrib["font-size"]), element.get("font-weight") == "600"
    x, y = float(element.attrib["x"]), float(element.attrib["y"]) - size * 0.36
    return text_box(x, y, element.text or "", size, element.get("text-anchor", "start"), bold)


@pytest.mark.parametrize("name", MADE)
def test_no_text_overlaps_another_and_every_node_is_named(name: str) -> None:
    svg = draw_topology(MADE[name], name).svg()
    found = list(estimated(svg))
    assert [(a, b) for (a, box), (b, other) in combinations(found, 2) if box.overlaps(other)] == []
    assert {*MADE[name].switches} <= words(svg)


@pytest.mark.parametrize("name", ["WAN 1", "tree 3", "a star of 100"])
def test_measured_labels_do_not_overlap_either(name: str) -> None:
    built = MADE[name]
    links = {(near, far): (1000 + place, place) for place, (near, far, _) in enumerate(built.links)}
    found = list(estimated(draw_topology(built, name, MeasuredTraffic(links, {})).svg()))
    assert [(a, b) for (a, box), (b, other) in combinations(found, 2) if box.overlaps(other)] == []


def test_parameters_of_most_links_are_told_once() -> None:
    found = words(
        draw_topology(
            topology({"kind": "chain", "switches": 6, "trunk": {"rate": "10Mbit"}, "link": {"rate": "10Mbit"}}), ""
        ).svg()
    )
    assert "10Mbit" not in found
    assert "each direction of a link on its right; links without a label: 10Mbit" in found


def test_a_label_without_a_free_place_is_left_out() -> None:
    label = LinkLabel("10Mbit, 5ms", (0.0, 0.0), (200.0, 0.0), 5.0, False)
    (free,) = place_labels([label], 10.0, [], [0.5])
    assert free is not None
    assert free[0] == 100.0
    (other,) = place_labels([label], 10.0, [Box(90.0, -50.0, 110.0, 50.0)], [0.5, 0.2])
    assert other is not None
    assert other[0] == 40.0
    assert place_labels([label], 10.0, [Box(-100.0, -50.0, 300.0, 50.0)], [0.5, 0.2]) == [None]


def test_a_line_crosses_a_box_only_where_it_meets_it() -> None:
    box = Box(10.0, 10.0, 20.0, 20.0)
    assert box.crossed_by((0.0, 0.0), (30.0, 30.0))
    assert box.crossed_by((15.0, 0.0), (15.0, 30.0))
    assert not box.crossed_by((0.0, 0.0), (9.0, 9.0))
    assert not box.crossed_by((0.0, 25.0), (30.0, 25.0))
    assert not box.crossed_by((0.0, 15.0), (15.0, 40.0))


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """Start a browser."""
    with browser() as made:
        yield made


@pytest.mark.peer("chromium")
def test_no_text_of_shipped_and_random_topologies_overlaps(chromium: Browser, tmp_path: Path) -> None:
    shipped = {path.stem: load(path, ()).build_topology() for path in SCENARIOS.rglob("*.yaml")}
    drawings = "".join(draw_topology(built, name).svg() for name, built in (shipped | MADE).items())
    page = tmp_path / "page.html"
    page.write_text(f'<!doctype html><html data-ready="yes"><body>{drawings}</body></html>', encoding="utf-8")
    assert chromium.open(page).run(OVERLAPS) == []


@pytest.mark.peer("chromium")
def test_estimates_are_not_below_the_browsers_widths(chromium: Browser, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    texts = [
        "10Mbit, 5ms, 0.5% loss",
        "r1 to r40 (40 hosts)",
        "WWW MAIN HUB",
        "site-0_1000",
        "15.00% lost of 2,000 packets",
    ]
    lines = "".join(
        f'<text font-size="10" font-weight="{600 if bold else 400}">{text}</text>' for text in texts for bold in (0, 1)
    )
    style = "text { font-family: system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif }"
    page.write_text(f'<!doctype html><html data-ready="yes"><style>{style}</style><svg>{lines}</svg></html>', encoding="utf-8")
    real = chromium.open(page).run("[...document.querySelectorAll('text')].map((text) => text.getComputedTextLength())")
    expected = [text_width(text, 10, bold) for text in texts for bold in (False, True)]
    assert all(width <= most for width, most in zip(real, expected, strict=True))
    assert all(width >= 0.75 * most for width, most in zip(real, expected, strict=True))
