"""Networks for SRM without rate limits, so that distances are sums of delays, with losses on one link."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import networkx as nx

from experiments.validation.testbed import FirstLoss
from protocols.srm import PROTOCOL
from tests.sim.runs import Session
from topologies.channels import ContentLoss, Perfect
from topologies.spec import LinkSpec, NodeSpec, Topology

__all__ = ["HOP", "SEGMENT", "chain", "run", "segments", "star", "totals"]

HOP = 0.01
"""Seconds of delay of each link."""
SEGMENT = 500


def segments(*lost: int) -> Callable[[int], bool]:
    """Return a predicate on identities that selects segments of the first object, counted from 0."""
    return lambda identity: identity >> 62 == 0 and identity & 0xFFFFFFFF in lost


def chain(members: int, source: int, cut: int, lose: Callable[[int], bool]) -> Topology:
    """Return a chain of switches, `HOP` apart, each with the host of a member.

    The source is at place `source`; the first transmissions that `lose` selects are lost between places `cut` - 1 and `cut`.
    """
    graph: nx.DiGraph[str] = nx.DiGraph()
    for place in [source, *(place for place in range(members) if place != source)]:
        graph.add_node(f"h{place}", node=NodeSpec("host"))
    for place in range(members):
        graph.add_node(f"s{place}", node=NodeSpec("switch"))
        _join(graph, f"h{place}", f"s{place}", LinkSpec())
        if place:
            loss = FirstLoss(lose=lose) if place == cut else Perfect()
            _join(graph, f"s{place - 1}", f"s{place}", LinkSpec(delay=HOP, loss=loss))
    return Topology(graph)


def star(receivers: int, lose: Callable[[int], bool], *, everywhere: bool, loss: float = 0.0) -> Topology:
    """Return a star whose members are 2 `HOP` apart.

    The first transmissions that `lose` selects are lost on the way from the source to the switch if `everywhere`, else on the
    link of receiver h1; content is lost with probability `loss` on the way to each of the others.
    """
    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_node("s", node=NodeSpec("switch"))
    first = FirstLoss(lose=lose)
    for number in range(receivers + 1):
        graph.add_node(f"h{number}", node=NodeSpec("host"))
        up = first if everywhere and number == 0 else Perfect()
        down = first if not everywhere and number == 1 else ContentLoss(p=loss) if loss and number else Perfect()
        graph.add_edge(f"h{number}", "s", link=LinkSpec(delay=HOP, loss=up))
        graph.add_edge("s", f"h{number}", link=LinkSpec(delay=HOP, loss=down))
    return Topology(graph)


def run(topology: Topology, content: int, *, seed: int = 1, **settings: Any) -> Session:
    """Run a session in which the first host sends so many segments, one each 4.2 ms unless settings say otherwise."""
    config = PROTOCOL.config(**{"rate": 125_000.0, "segment": SEGMENT, **settings})
    session = Session(topology, PROTOCOL, config, seed=seed)
    session.send(content * SEGMENT)
    return session.run()


def totals(session: Session) -> Counter[str]:
    """Return the counters of all members, summed."""
    found: Counter[str] = Counter()
    for name in session.network.topology.hosts:
        machine = session.network.host(name).machine
        assert machine is not None
        found.update(machine.counts())
    return found


def _join(graph: "nx.DiGraph[str]", near: str, far: str, link: LinkSpec) -> None:
    graph.add_edge(near, far, link=link)
    graph.add_edge(far, near, link=link)
