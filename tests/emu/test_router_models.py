"""Routers with one adapter or several, and slow ones, carry in the kernel what they carry in the simulator."""

import os
from typing import Any

import pytest

from emu.launch import emulate
from emu.node import Program
from sim.network import Network
from tests.emu.number_protocol import GROUP, PORT, NumberCodec, ReceivingProgram, SendingProgram
from tests.emu.unprivileged import NOBODY, run_unprivileged
from topologies.inline import Inline
from topologies.spec import Topology

RATE, SIZE, SECONDS = 20e6, 1400, 1.5
OFFERED = 1.4 * RATE / 8 / SIZE
"""Packets per second, more than any router here carries."""
KINDS: dict[str, tuple[dict[str, Any], float]] = {
    # Every packet passes the adapter twice with 70 bytes around it, or each port once with 66.
    "half": ({"mac": "single", "duplex": "half", "rate": "20Mbit", "queue": 60}, SIZE / (SIZE + 70) / 2),
    "full": ({"mac": "single", "duplex": "full", "rate": "20Mbit", "queue": 60}, SIZE / (SIZE + 70)),
    "dual": ({"mac": "dual"}, SIZE / (SIZE + 66)),
    # A processor that takes fewer packets than the links.
    "cpu": ({"mac": "dual", "cpu": "1ms", "queue": 60}, SIZE * 8 / 1e-3 / RATE),
    "cpu_byte": ({"mac": "dual", "cpu": "300us", "cpu_byte": "500ns", "queue": 60}, SIZE * 8 / (300e-6 + SIZE * 500e-9) / RATE),
}


def routed(kind: str) -> Topology:
    """A sender and a receiver on each side of a router of this kind."""
    model, _ = KINDS[kind]
    line = {"rate": "20Mbit", "queue": 60, "overhead": "ethernet"} if model["mac"] == "dual" else {}
    links = [{"ends": ["sender", "a"]}, {"ends": ["a", "g"], **line}, {"ends": ["g", "b"], **line}, {"ends": ["b", "r"]}]
    nodes = {"sender": {}, "a": {"kind": "switch"}, "g": {"kind": "router", **model}, "b": {"kind": "switch"}, "r": {}}
    return Inline.model_validate({"kind": "graph", "nodes": nodes, "links": links}).build()


def programs() -> dict[str, Program]:
    """One sends faster than any router can carry, the other listens."""
    return {"sender": SendingProgram(100_000, OFFERED, size=SIZE), "r": ReceivingProgram()}


def goodput(result: dict[str, Any] | None) -> float:
    """Bits of payload per second, from the first packet to the last."""
    assert result is not None
    return (len(result["numbers"]) - 1) * SIZE * 8 / float(result["seconds"])


def simulated(kind: str) -> float:
    """What came through in the simulator."""
    network = Network(routed(kind), seed=1)
    cast = programs()
    for name, program in cast.items():
        program.start(network.host(name))
    network.run(until=SECONDS)
    return goodput(cast["r"].result())


def emulated(kind: str) -> float:
    """What came through in Mininet."""
    run = emulate(
        routed(kind),
        programs(),
        codec=NumberCodec,
        port=PORT,
        duration=SECONDS,
        over=lambda finished: False,
        seed=1,
        groups={GROUP.name.partition(":")[0]: ["sender", "r"]},
    )
    return goodput(run.nodes["r"].result)


@pytest.mark.parametrize("kind", KINDS)
def test_a_simulated_router_carries_what_its_adapter_lets_through(kind: str) -> None:
    assert simulated(kind) == pytest.approx(RATE * KINDS[kind][1], rel=0.01)


@pytest.mark.emu
@pytest.mark.parametrize("kind", KINDS)
def test_a_router_carries_in_the_kernel_what_it_carries_in_the_simulator(kind: str) -> None:
    wanted = simulated(kind)
    found: list[float] = []
    # A busy machine is late and carries less, so the best of some tries counts; none may carry more.
    while len(found) < 4 and not any(one == pytest.approx(wanted, rel=0.1) for one in found):
        found.append(emulated(kind))
        assert found[-1] < 1.05 * wanted
    assert max(found) == pytest.approx(wanted, rel=0.1)


@pytest.mark.emu
def test_both_directions_of_a_half_duplex_router_share_its_adapter() -> None:
    # Synchronous senders may shut each other out at a full queue, so only the sum is the model's.
    both: dict[str, Program] = {name: SendingProgram(100_000, OFFERED, size=SIZE) for name in ("sender", "r")}
    group = {GROUP.name.partition(":")[0]: list(both)}
    run = emulate(
        routed("half"), both, codec=NumberCodec, port=PORT, duration=SECONDS, over=lambda _: False, seed=1, groups=group
    )
    heard = sum(report.result["heard"] for report in run.nodes.values() if report.result is not None)
    carried = heard * SIZE * 8 / SECONDS / RATE
    # A busy machine carries less; a full duplex adapter would carry 1.9 times its rate.
    assert 0.3 < carried < 1.1 * KINDS["half"][1]


@pytest.mark.emu
@pytest.mark.skipif(os.geteuid() != 0, reason="all other tests here run without rights already")
def test_routers_need_no_rights() -> None:
    uid, carried = run_unprivileged(lambda: [os.getuid(), emulated("half")])
    assert uid == NOBODY
    assert 0.3 < carried / RATE < 1.1 * KINDS["half"][1]
