"""Switches in Mininet forward a group towards hosts that take part, a unicast to its host, and neither over another link."""

from typing import Any

import pytest

from protocols.hosting import Program
from tests.emu.number_protocol import PORT, QuiescentReceiver, SendingProgram
from tests.emu.offered import offered_by_link
from topologies.addressing import host_address
from topologies.inline import Inline

pytestmark = pytest.mark.emu


class UnicastProgram(SendingProgram):
    """Sends numbers to one address."""

    def __init__(self, address: str) -> None:
        super().__init__(20, 400.0)
        self._wanted = (*self._wanted, (address, PORT))  # type: ignore[assignment]


def offered(sender: str, receiver: str, *, unicast: bool = False) -> dict[str, int]:
    """Return the packets offered to each link of two switches with two hosts each, `a b` and `c d`, of which two take part.

    With `unicast` the second is a router, and nobody listens.
    """
    kinds = {"s": "switch", "t": "router" if unicast else "switch"}
    nodes: dict[str, Any] = {name: {} for name in "abcd"} | {name: {"kind": kind} for name, kind in kinds.items()}
    ends = [["s", "t"], ["s", "a"], ["s", "b"], ["t", "c"], ["t", "d"]]
    links = [{"ends": pair, "delay": "100us"} for pair in ends]
    topology = Inline.model_validate({"nodes": nodes, "links": links}).build()
    programs: dict[str, Program] = {sender: SendingProgram(20, 400.0), receiver: QuiescentReceiver()}
    if unicast:
        programs = {sender: UnicastProgram(host_address(topology, receiver))}
    return offered_by_link(topology, programs, [sender if unicast else receiver], () if unicast else list(programs))


def test_neighbouring_switches_do_not_flood_a_group() -> None:
    assert offered("a", "c") == {"a-s": 20, "s-t": 20, "t-c": 20}


def test_a_group_at_one_switch_does_not_go_to_its_neighbour() -> None:
    assert offered("a", "b") == {"a-s": 20, "s-b": 20}
    assert offered("c", "d") == {"c-t": 20, "t-d": 20}


def test_a_switch_does_not_flood_what_is_sent_to_a_silent_router() -> None:
    found = offered("a", "c", unicast=True)
    assert found["s-t"] > 0
    assert {"s-b", "t-d"}.isdisjoint(found)
