"""Routers with one adapter or several, and slow ones, forward at the same rate in Mininet and in the simulator."""

import os
from typing import Any

import pytest

from emu.launch import emulate
from emu.router_shaping import router_shape
from protocols.errors import UnsupportedError
from protocols.hosting import Program
from sim.network import Network
from tests.emu.number_protocol import GROUP, PORT, NumberCodec, ReceivingProgram, SendingProgram
from tests.emu.unprivileged import NOBODY, run_unprivileged
from topologies.inline import Inline
from topologies.node_models import RouterModel
from topologies.spec import Topology

RATE, SIZE, SECONDS = 20e6, 1400, 1.5
OFFERED = 1.4 * RATE / 8 / SIZE
"""Packets per second, more than any router here forwards."""
KINDS: dict[str, tuple[dict[str, Any], float]] = {
    # A packet passes the adapter twice with 70 bytes of overhead, or each port once with 66.
    "half": ({"mac": "single", "duplex": "half", "rate": "20Mbit", "queue": 60}, SIZE / (SIZE + 70) / 2),
    "full": ({"mac": "single", "duplex": "full", "rate": "20Mbit", "queue": 60}, SIZE / (SIZE + 70)),
    "dual": ({"mac": "dual"}, SIZE / (SIZE + 66)),
    # A processor that is slower than the links.
    "cpu": ({"mac": "dual", "cpu": "1ms", "queue": 60}, SIZE * 8 / 1e-3 / RATE),
    "cpu_byte": ({"mac": "dual", "cpu": "300us", "cpu_byte": "500ns", "queue": 60}, SIZE * 8 / (300e-6 + SIZE * 500e-9) / RATE),
}


def routed(kind: str) -> Topology:
    """Return a sender and a receiver with a router of this kind between them."""
    model, _ = KINDS[kind]
    line = {"rate": "20Mbit", "queue": 60, "overhead": "ethernet"} if model["mac"] == "dual" else {}
    links = [{"ends": ["sender", "a"]}, {"ends": ["a", "g"], **line}, {"ends": ["g", "b"], **line}, {"ends": ["b", "r"]}]
    nodes = {"sender": {}, "a": {"kind": "switch"}, "g": {"kind": "router", **model}, "b": {"kind": "switch"}, "r": {}}
    return Inline.model_validate({"kind": "graph", "nodes": nodes, "links": links}).build()


def programs() -> dict[str, Program]:
    """Return a sender that exceeds the rate of any router here, and a receiver."""
    return {"sender": SendingProgram(100_000, OFFERED, size=SIZE), "r": ReceivingProgram()}


def goodput(result: dict[str, Any] | None) -> float:
    """Return bits of payload per second, from the first packet to the last."""
    assert result is not None
    return (len(result["numbers"]) - 1) * SIZE * 8 / float(result["seconds"])


def simulated(kind: str) -> float:
    """Return the goodput in the simulator."""
    network = Network(routed(kind), seed=1)
    nodes_programs = programs()
    for name, program in nodes_programs.items():
        program.start(network.host(name))
    network.run(until=SECONDS)
    return goodput(nodes_programs["r"].result())


def emulated(kind: str) -> float:
    """Return the goodput in Mininet."""
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
def test_a_simulated_router_forwards_at_the_rate_of_its_adapter(kind: str) -> None:
    assert simulated(kind) == pytest.approx(RATE * KINDS[kind][1], rel=0.01)


@pytest.mark.emu
@pytest.mark.parametrize("kind", KINDS)
def test_an_emulated_router_forwards_at_the_simulated_rate(kind: str) -> None:
    expected = simulated(kind)
    found: list[float] = []
    # A busy machine forwards less, so the best of some runs counts; none may exceed the rate.
    while len(found) < 4 and not any(value == pytest.approx(expected, rel=0.1) for value in found):
        found.append(emulated(kind))
        assert found[-1] < 1.05 * expected
    assert max(found) == pytest.approx(expected, rel=0.1)


@pytest.mark.emu
def test_both_directions_of_a_half_duplex_router_share_its_adapter() -> None:
    # Synchronised senders may lock each other out at a full queue (phase effects), so only the sum is modelled.
    both: dict[str, Program] = {name: SendingProgram(100_000, OFFERED, size=SIZE) for name in ("sender", "r")}
    group = {GROUP.name.partition(":")[0]: list(both)}
    run = emulate(
        routed("half"), both, codec=NumberCodec, port=PORT, duration=SECONDS, over=lambda _: False, seed=1, groups=group
    )
    received = sum(report.result["received"] for report in run.nodes.values() if report.result is not None)
    throughput = received * SIZE * 8 / SECONDS / RATE
    # A busy machine forwards less; a full-duplex adapter would forward 1.9 times its rate.
    assert 0.3 < throughput < 1.1 * KINDS["half"][1]


@pytest.mark.emu
@pytest.mark.parametrize("nodes", [{"r": {"count": 3}}, {"r1": {}, "r2": {}, "r3": {}}], ids=["group", "hosts"])
def test_a_full_adapter_drops_copies_for_the_last_links_as_in_the_simulator(nodes: dict[str, Any]) -> None:
    router = {"kind": "router", "mac": "single", "duplex": "full", "rate": "20Mbit", "queue": 60}
    links = [{"ends": [name, "g"]} for name in ("sender", *nodes)]
    data = {"kind": "graph", "nodes": {"sender": {}, "g": router, **nodes}, "links": links}
    topology = Inline.model_validate(data).build()
    # Three copies are 1.4 times the rate.
    programs: list[dict[str, Program]] = [
        {"sender": SendingProgram(700, OFFERED / 3, size=SIZE), **{f"r{n}": ReceivingProgram() for n in (1, 2, 3)}}
        for _ in range(2)
    ]
    network = Network(topology, seed=1)
    for name, program in programs[0].items():
        program.start(network.host(name))
    network.run(until=SECONDS)
    simulated = [len(programs[0][name].result()["numbers"]) for name in ("r1", "r2", "r3")]
    run = emulate(
        topology,
        programs[1],
        codec=NumberCodec,
        port=PORT,
        duration=SECONDS,
        over=lambda finished: False,
        seed=1,
        groups={GROUP.name.partition(":")[0]: list(programs[1])},
    )
    results = [run.nodes[name].result for name in ("r1", "r2", "r3")]
    emulated = [len(result["numbers"]) for result in results if result is not None]
    assert simulated[0] > simulated[2] + 100
    assert emulated[0] > emulated[2] + 100, (simulated, emulated)
    (counts,) = run.node_counts
    assert counts["dropped"] > 100


@pytest.mark.emu
@pytest.mark.skipif(os.geteuid() != 0, reason="all other tests run without root already")
def test_routers_need_no_root() -> None:
    uid, throughput = run_unprivileged(lambda: [os.getuid(), emulated("half")])
    assert uid == NOBODY
    assert 0.3 < throughput / RATE < 1.1 * KINDS["half"][1]


@pytest.mark.parametrize("model", [{"mac": "single", "rate": "20Mbit", "queue": 0}, {"cpu": "1ms", "queue": 0}])
def test_a_router_without_a_queue_is_refused(model: dict[str, Any]) -> None:
    with pytest.raises(UnsupportedError, match="node g: queue 0 can't be emulated"):
        router_shape("g", RouterModel.model_validate(model))
