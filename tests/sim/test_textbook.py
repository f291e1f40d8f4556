"""The simulator against a second one: plain SimPy processes, one per link and packet, on the same keyed losses."""

from math import inf
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.cases import CASES, OURS, TEXTBOOK, run
from benchmarks.textbook import Item, TextbookHost, TextbookNetwork
from experiments.running.content import Extent
from experiments.running.program import accounted
from protocols.events import Event, FlushCompleted
from protocols.machine import Content, Group
from protocols.norm import NormConfig, NormReceiver, NormSender
from sim.network import Network
from topologies.generators import Star

GROUP = Group("239.0.0.1:1")
CONFIG = NormConfig(rate=250_000.0, segment=500, block=8, parity=4, grtt=0.05, robust=4, gsize=10)


def play(hosts: list[Any], size: int, over: list[bool]) -> None:
    """A sender on the first host, receivers on the others, one object."""

    def on_event(event: Event) -> None:
        if isinstance(event, FlushCompleted):
            over.append(True)

    for node, host in enumerate(hosts[1:], 2):
        host.run(NormReceiver(host, CONFIG, node, GROUP), on_event, accounted)
    sender = NormSender(hosts[0], CONFIG, 1, GROUP, 1)
    hosts[0].run(sender, on_event, accounted)
    hosts[0].call(sender.submit, Content(Extent(size), b"", is_file=False))


def record(host: TextbookHost, sent: list[tuple[float, str, str]]) -> None:
    """Append time, host and kind of each control message to `sent`."""
    put = host.uplink.put

    def recording(item: Item) -> None:
        if item.packet.message.identity is None:
            sent.append((host.now, host.name, item.packet.message.kind))
        put(item)

    host.uplink.put = recording  # type: ignore[method-assign]


@settings(deadline=None, max_examples=40, derandomize=True)
@given(
    st.integers(1, 6),
    st.sampled_from([0.0, 0.02, 0.2]),
    st.sampled_from(["2500kbit", "10Mbit"]),
    st.sampled_from(["1ms", "30ms"]),
    st.sampled_from([0, 500, 30_000]),
    st.integers(0, 5),
)
def test_both_simulators_agree(receivers: int, p: float, rate: str, delay: str, size: int, seed: int) -> None:
    link = {"rate": rate, "delay": delay}
    star = {"kind": "star", "receivers": receivers, "trunk": link, "link": {**link, "down": {"loss": p}}}
    topology = Star.model_validate(star).build()
    network, ended = Network(topology, seed=seed), [False]
    sent: list[tuple[float, str, str]] = []
    network.fingerprinter.control = (  # type: ignore[method-assign]
        lambda now, node, kind, size: sent.append((now, topology.hosts[node], kind))
    )
    ours = [network.host(name) for name in topology.hosts]
    play(ours, size, ended)
    network.run(over=lambda: ended[-1])

    world, over = TextbookNetwork(topology, seed), [False]
    theirs: list[tuple[float, str, str]] = []
    for host in world.hosts:
        record(host, theirs)
    play(world.hosts, size, over)
    world.run(inf, lambda: over[-1])

    assert [host.machine.counts() for host in world.hosts] == [host.machine.counts() for host in ours]
    assert [line[1:] for line in sorted(theirs)] == [line[1:] for line in sorted(sent)]
    assert [line[0] for line in sorted(theirs)] == pytest.approx([line[0] for line in sorted(sent)], abs=1e-9)
    assert world.env.now == pytest.approx(network.env.now, abs=1e-9)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("receivers", [10, 40])
def test_every_session_of_the_benchmark_is_the_same_in_both_simulators(name: str, receivers: int) -> None:
    scenario = CASES[name].scenario(receivers, packets=30)
    ours, theirs = run(OURS, scenario), run(TEXTBOOK, scenario)
    assert (ours.packets, ours.deliveries) == (theirs.packets, theirs.deliveries)
