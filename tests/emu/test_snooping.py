"""Switches in Mininet forward a group towards hosts that take part, and over no other link."""

from typing import Any

import pytest

from emu.launch import emulate
from emu.node import Program
from tests.emu.number_protocol import GROUP, PORT, NumberCodec, QuiescentReceiver, SendingProgram
from topologies.inline import Inline

pytestmark = pytest.mark.emu


def offered(sender: str, receiver: str) -> dict[str, int]:
    """Return the packets offered to each link of two switches with two hosts each, `a b` and `c d`, of which two take part."""
    nodes: dict[str, Any] = {name: {} for name in "abcd"} | {name: {"kind": "switch"} for name in ("s", "t")}
    ends = [["s", "t"], ["s", "a"], ["s", "b"], ["t", "c"], ["t", "d"]]
    # Only links in user space count packets.
    links = [{"ends": pair, "delay": "100us"} for pair in ends]
    programs: dict[str, Program] = {sender: SendingProgram(20, 400.0), receiver: QuiescentReceiver()}
    run = emulate(
        Inline.model_validate({"nodes": nodes, "links": links}).build(),
        programs,
        codec=NumberCodec,
        port=PORT,
        duration=20.0,
        over=lambda finished: receiver in finished,
        seed=1,
        groups={GROUP.name.partition(":")[0]: list(programs)},
    )
    return {row["link"]: row["offered"] for row in run.impairments if row["offered"]}


def test_neighbouring_switches_do_not_flood_a_group() -> None:
    assert offered("a", "c") == {"a-s": 20, "s-t": 20, "t-c": 20}


def test_a_group_at_one_switch_does_not_go_to_its_neighbour() -> None:
    assert offered("a", "b") == {"a-s": 20, "s-b": 20}
    assert offered("c", "d") == {"c-t": 20, "t-d": 20}
