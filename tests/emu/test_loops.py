"""Networks with loops in Mininet: every packet takes the simulator's tree, and no frame goes round."""

from itertools import pairwise
from typing import Any

import pytest

from emu.plan import plan_emulation
from protocols.errors import UnsupportedError
from tests.emu.number_protocol import QuiescentReceiver, SendingProgram
from tests.emu.offered import offered_by_link
from topologies.inline import Inline
from topologies.spec import Topology

COUNT = 20


def ring(kinds: str, **rules: Any) -> Topology:
    """Return a ring of nodes n0, n1, ... with a host on each, h0, h1, ...; `kinds` has an s for a switch, an r for a router."""
    inner = [f"n{number}" for number in range(len(kinds))]
    nodes: dict[str, Any] = {
        name: {"kind": "router" if kind == "r" else "switch"} for name, kind in zip(inner, kinds, strict=True)
    }
    nodes |= {f"h{number}": {} for number in range(len(kinds))}
    ends = [*pairwise([*inner, "n0"]), *((name, f"h{number}") for number, name in enumerate(inner))]
    links = [{"ends": pair, "delay": "100us"} for pair in ends]
    return Inline.model_validate({"nodes": nodes, "links": links, "multicast": rules}).build()


def offered(topology: Topology, source: str, members: list[str]) -> dict[str, int]:
    """Return the packets offered to each link when `source` sends numbers to a group of these hosts."""
    programs = {member: QuiescentReceiver() for member in members} | {source: SendingProgram(COUNT, 400.0)}
    return offered_by_link(topology, programs, members, list(programs))


@pytest.mark.emu
@pytest.mark.parametrize("kinds", ["sssss", "srsrs", "rrrrr"])
def test_a_group_takes_the_shortest_ways_round_a_ring(kinds: str) -> None:
    assert offered(ring(kinds), "h0", ["h1", "h2", "h4"]) == dict.fromkeys(
        ["h0-n0", "n0-n1", "n1-n2", "n0-n4", "n1-h1", "n2-h2", "n4-h4"], COUNT
    )
    # Another source, another tree.
    assert offered(ring(kinds), "h2", ["h0", "h3"]) == dict.fromkeys(
        ["h2-n2", "n2-n1", "n1-n0", "n0-h0", "n2-n3", "n3-h3"], COUNT
    )


@pytest.mark.emu
def test_without_pruning_a_group_reaches_every_host_of_a_ring_once() -> None:
    found = offered(ring("sssss", pruning=False), "h0", ["h1"])
    assert {link: count for link, count in found.items() if link.startswith("n") and "-h" in link} == dict.fromkeys(
        ["n1-h1", "n2-h2", "n3-h3", "n4-h4"], COUNT
    )


def test_a_hub_in_a_loop_is_refused() -> None:
    nodes: dict[str, Any] = {"a": {}, "h": {"kind": "switch", "hub": True, "rate": "4Mbit"}, "s": {}, "t": {}, "b": {}}
    links = [{"ends": pair} for pair in (["a", "h"], ["h", "s"], ["s", "t"], ["t", "h"], ["t", "b"])]
    with pytest.raises(UnsupportedError, match="node h: a hub in a loop can't be emulated"):
        plan_emulation(Inline.model_validate({"nodes": nodes, "links": links}).build())
