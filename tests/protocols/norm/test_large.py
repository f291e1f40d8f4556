"""An object of 1 GiB without bytes arrives over lossy links with bounded memory at both ends."""

import tracemalloc

from experiments.running.content import Accounted, Extent
from protocols.events import Event, FlushCompleted, ObjectReceived
from protocols.machine import Content
from protocols.norm import NormConfig, NormReceiver, NormSender
from sim.network import Network
from tests.protocols.norm.scenes import GROUP
from topologies.generators import Star

GIB = 1 << 30


def test_an_object_of_1_gib_arrives_with_bounded_memory() -> None:
    link = {"rate": "2Gbit", "delay": "1ms", "down": {"loss": 0.02}}
    network = Network(Star.model_validate({"kind": "star", "receivers": 2, "link": link}).build(), seed=1)
    config = NormConfig(rate=1e8, segment=64_000, block=32, parity=8, grtt=0.01, gsize=10)
    told: list[Event] = []
    for number, name in enumerate(("r1", "r2")):
        host = network.host(name)
        host.run(NormReceiver(host, config, 2 + number, GROUP), told.append, lambda offer: Accounted())
    host = network.host("sender")
    sender = NormSender(host, config, 1, GROUP)
    done: list[Event] = []
    host.run(sender, done.append)
    tracemalloc.start()
    host.call(sender.submit, Content(Extent(GIB), b"large"))
    network.run(600.0, lambda: any(isinstance(event, FlushCompleted) for event in done))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    received = [event for event in told if isinstance(event, ObjectReceived)]
    assert [(event.size, event.info) for event in received] == [(GIB, b"large")] * 2
    counts = sender.counts()
    assert counts["data_sent"] == -(-GIB // 64_000)
    # Each of two receivers loses 2 % independently: blocks need between one and a few times that in parity.
    assert 0.02 < counts["repairs_sent"] / counts["data_sent"] < 0.12
    assert peak < 4_000_000
