"""Whole runs of a protocol in the simulator, for tests."""

from collections.abc import Callable
from typing import Any

from experiments.contract.content import Bytes, CheckedSink, pattern
from experiments.running.content import Accounted, Extent
from protocols.events import Event, FlushCompleted, ObjectReceived
from protocols.machine import Content, Group, Offer
from protocols.spec import ProtocolSpec
from sim.network import Network
from topologies.addressing import node_id
from topologies.spec import Topology

__all__ = ["Session"]


class Session:
    """One sender (the first host) and receivers on all other hosts."""

    def __init__(
        self,
        topology: Topology,
        protocol: ProtocolSpec,
        config: Any,
        *,
        seed: int = 1,
        wire: bool = False,
        engine: str = "auto",
    ) -> None:
        self.wire = wire
        self.network = Network(topology, seed=seed, codec=protocol.codec if wire else None, engine=engine)
        self.flushed = False
        self.received: dict[str, list[ObjectReceived]] = {}
        self.sinks: dict[str, list[CheckedSink]] = {}
        group, makers = Group("239.0.0.1:1"), protocol.makers(fast=engine != "strict")
        for name in topology.hosts[1:]:
            host = self.network.host(name)
            machine = makers.make_receiver(host, config, node_id(topology, name), group)
            host.run(machine, self._listener(name), self._taker(name))
        self.host = self.network.host(topology.hosts[0])
        self.sender = makers.make_sender(self.host, config, 1, group, 7)
        self.host.run(self.sender, self._on_sender_event)

    def send(self, size: int) -> None:
        """Submit `pattern(size)`, or only its size when no bytes travel, now."""
        source = Bytes(pattern(size)) if self.wire else Extent(size)
        self.host.call(self.sender.submit, Content(source, b"name", is_file=False))

    def run(self, until: float = 600.0) -> "Session":
        """Until the sender has flushed."""
        self.network.run(until, lambda: self.flushed)
        return self

    def _on_sender_event(self, event: Event) -> None:
        self.flushed = self.flushed or isinstance(event, FlushCompleted)

    def _listener(self, name: str) -> Callable[[Event], None]:
        events = self.received[name] = []

        def listen(event: Event) -> None:
            if isinstance(event, ObjectReceived):
                events.append(event)

        return listen

    def _taker(self, name: str) -> Callable[[Offer], Any]:
        sinks = self.sinks[name] = []

        def take(offer: Offer) -> Any:
            if not self.wire:
                return Accounted()
            sinks.append(CheckedSink(offer.size))
            return sinks[-1]

        return take
