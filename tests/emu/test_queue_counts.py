"""Counts of the queues of routers and hubs in the kernel."""

from typing import Any

import pytest

from tests.emu.number_protocol import ReceivingProgram
from tests.emu.test_routers import LingeringSender, built, play, received

pytestmark = pytest.mark.emu

SENT, CONTROL = 300, 20
"""Packets of the sender; packets of the kernel at most, such as IGMP."""
SINGLE = {"kind": "router", "mac": "single", "rate": "2Mbit", "queue": 10}
NODES = {
    "half duplex": {**SINGLE, "duplex": "half"},
    "full duplex": {**SINGLE, "duplex": "full"},
    "processor": {"kind": "router", "mac": "dual", "cpu": "2ms", "queue": 10},
    "hub": {"kind": "switch", "hub": True, "rate": "2Mbit", "queue": 10},
}


@pytest.mark.parametrize("name", NODES)
def test_what_a_receiver_lacks_was_dropped_by_the_node_on_the_way(name: str) -> None:
    ends: list[dict[str, Any]] = [{"ends": ["sender", "g"]}, {"ends": ["g", "r"]}]
    topology = built(kind="graph", nodes={"sender": {}, "g": NODES[name], "r": {}}, links=ends)
    run = play(topology, {"r": ReceivingProgram(), "sender": LingeringSender(SENT, 3000)})
    (counts,) = run.node_counts
    assert counts["node"] == "g"
    assert SENT <= counts["offered"] <= SENT + CONTROL
    missing = SENT - len(received(run, "r"))
    assert missing > SENT / 4
    assert missing <= counts["dropped"] <= missing + CONTROL


def test_a_network_without_such_a_node_counts_none() -> None:
    ends: list[dict[str, Any]] = [{"ends": ["sender", "g"]}, {"ends": ["g", "r"]}]
    topology = built(kind="graph", nodes={"sender": {}, "g": {"kind": "router"}, "r": {}}, links=ends)
    assert play(topology, {"r": ReceivingProgram(), "sender": LingeringSender(50, 3000)}).node_counts == []
