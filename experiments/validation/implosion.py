"""Feedback implosion: many packets arrive at one port simultaneously."""

from collections.abc import Mapping
from math import inf

import networkx as nx

from experiments.validation.references import Families, Measured, Reference
from experiments.validation.testbed import PassiveListener, ignore
from protocols.arq.messages import Nack
from protocols.machine import Address, Group, Machine, Message, Packet, Ports
from sim.network import Network
from topologies.spec import LinkSpec, NodeSpec, Topology

__all__ = ["FAMILIES"]

AROUND = 42
"""Bytes of a frame that are not UDP payload."""


class _OneShotSender(Machine):
    """Sends one packet to the sender when it starts."""

    __slots__ = ("_size",)

    def __init__(self, ports: Ports, size: int) -> None:
        super().__init__(ports)
        self._size = size

    def start(self, now: float) -> None:
        """Send the packet."""
        self.ports.send(Packet(Nack(1, 1, 0, 0, 2), self._size, "sender"))

    def receive(self, message: Message, source: Address, to: Address, now: float) -> None:
        """Do nothing; no message is expected."""

    def wake(self, now: float) -> None:
        """Do nothing; no timer is ever set."""

    def counts(self) -> dict[str, int]:
        """Return no counters."""
        return {}


def _burst(reference: Reference, effort: float) -> Mapping[str, Measured]:
    """Measure drops when all receivers send at time 0; only the port to the sender has a rate and a queue."""
    params = reference.params
    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_node("sender", node=NodeSpec("host"))
    graph.add_node("s", node=NodeSpec("switch"))
    graph.add_node("r", node=NodeSpec("host", params["G"]))
    port = LinkSpec(rate=params["link_bps"] / 8, queue=params["queue_limit"], overhead=AROUND)
    for near, far, link in (("s", "sender", port), ("sender", "s", LinkSpec()), ("s", "r", LinkSpec()), ("r", "s", LinkSpec())):
        graph.add_edge(near, far, link=link)
    network = Network(Topology(graph), seed=1)
    listener = PassiveListener(network.host("sender"), Group("validation"), lambda message: True)
    network.host("sender").run(listener, ignore)
    for number in range(1, params["G"] + 1):
        host = network.host(f"r{number}")
        host.run(_OneShotSender(host, params["frame_wire_bytes"] - AROUND), ignore)
    network.run(inf)
    return {"drops": Measured(float(params["G"] - len(listener.received))), "last_delay_s": Measured(listener.received[-1][0])}


FAMILIES: Families = {"implosion_drop": _burst}
