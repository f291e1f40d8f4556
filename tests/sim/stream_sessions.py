"""Runs with streams in the simulator, for tests."""

from functools import partial
from typing import Any

from experiments.contract.content import Bytes, pattern
from experiments.running.content import Extent
from protocols.events import Event
from protocols.machine import Content, Offer
from protocols.norm import NormConfig, NormSender
from protocols.norm.stream_receiver import NormStreamReceiver
from protocols.registry import protocol
from protocols.stream import Flush, StreamSettings
from protocols.stream_writer import StreamWriter
from sim.network import Network
from tests.sim.probes import GROUP
from tests.support.streams import Collected
from topologies.addressing import node_id
from topologies.spec import Topology

__all__ = ["StreamSession"]

NORM = protocol("norm")


class StreamSession:
    """NORM with a stream from the first host of a topology to all others; `sinks` are theirs, by name."""

    def __init__(self, topology: Topology, config: NormConfig, settings: StreamSettings, **network: Any) -> None:
        engine = network.get("engine", "auto")
        self._wire = bool(network.pop("wire", False))
        self.network = Network(topology, seed=1, codec=NORM.codec if self._wire else None, **network)
        makers = NORM.makers(fast=engine != "strict")
        self.sinks: dict[str, Collected] = {}
        self.receivers: dict[str, NormStreamReceiver] = {}
        self.written: list[bytes] = []
        for name in topology.hosts[1:]:
            host, sink = self.network.host(name), Collected()
            receiver = makers.make_receiver(host, config, node_id(topology, name), GROUP)
            assert isinstance(receiver, NormStreamReceiver)
            receiver.accept_streams(partial(self._accept, name, sink))
            self.receivers[name] = receiver
            host.run(receiver, lambda event: None)
        self.host = self.network.host(topology.hosts[0])
        sender = makers.make_sender(self.host, config, 1, GROUP, 7)
        assert isinstance(sender, NormSender)
        self.sender = sender
        self.host.run(sender, self._on_event)
        self.writer = StreamWriter(self.host, sender, settings)

    def _on_event(self, event: Event) -> None:
        self.writer.on_event(event)

    def _accept(self, name: str, sink: Collected, offer: Offer) -> Collected:
        self.sinks[name] = sink
        return sink

    def write_at(self, when: float, data: bytes, flush: Flush = "passive") -> None:
        """Write and flush a message at a time of the simulation."""

        def write() -> None:
            self.written.append(data)
            self.writer.write(data)
            self.writer.flush(flush)

        self.host.later(when, write)

    def submit_at(self, when: float, size: int) -> None:
        """Submit an object at a time of the simulation."""

        def submit() -> None:
            self.host.call(self.sender.submit, Content(Bytes(pattern(size)) if self._wire else Extent(size), b"name"))

        self.host.later(when, submit)
