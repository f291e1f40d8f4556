"""Simulated star that satisfies exactly the assumptions of the closed forms, for measuring protocols.

Receivers `r1` to `rN` are attached to one switch. Host `ear`, attached upstream of the shared loss, records everything that is
sent, at the times the receivers get it. Losses of content come from the simulator's keyed random streams; control packets are
never lost, as the closed forms assume.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import networkx as nx

from experiments.running.content import Accounted, Extent
from protocols.events import FlushCompleted
from protocols.machine import Address, Content, Event, Group, Machine, Message, Ports, Sender
from protocols.registry import protocol
from sim.host import SimHost
from sim.network import Network
from topologies.channels import ContentLoss, Perfect
from topologies.losses import LinkLoss
from topologies.spec import LinkSpec, NodeSpec, Topology

__all__ = ["FirstLoss", "PassiveListener", "SessionOutcome", "StarTestbed", "ignore", "run_session"]

GROUP = Group("validation")
SINK = Accounted()


class _ScriptedLoss(LinkLoss):
    """Loss of the first transmission of each identity selected by `lose`."""

    __slots__ = ("_known", "_lose")

    def __init__(self, key: int, lose: Callable[[int], bool]) -> None:
        super().__init__(key, 0.5)
        self._lose = lose
        self._known: set[int] = set()

    def lost(self, identity: int | None) -> bool:
        """Return whether this is the first transmission of a selected identity."""
        if identity is None or identity in self._known or not self._lose(identity):
            return False
        self._known.add(identity)
        return True


class FirstLoss(Perfect):
    """Channel that loses the first transmission of each identity for which `lose` is true."""

    lose: Callable[[int], bool]

    def link(self, key: int) -> LinkLoss | None:
        """Return the loss sampler of one link."""
        return _ScriptedLoss(key, self.lose)


class PassiveListener(Machine):
    """A machine that records (time in seconds, message) of received messages that `wanted` accepts, and sends nothing."""

    __slots__ = ("_group", "_wanted", "received")

    def __init__(self, ports: Ports, group: Group, wanted: Callable[[Message], bool]) -> None:
        super().__init__(ports)
        self._group, self._wanted = group, wanted
        self.received: list[tuple[float, Message]] = []

    def start(self, now: float) -> None:
        """Join the group."""
        self.ports.join(self._group)

    def receive(self, message: Message, source: Address, to: Address, now: float) -> None:
        """Record the message if it is wanted."""
        if self._wanted(message):
            self.received.append((now, message))

    def wake(self, now: float) -> None:
        """Do nothing; no timer is ever set."""

    def counts(self) -> dict[str, int]:
        """Return no counters."""
        return {}


@dataclass(frozen=True, slots=True)
class StarTestbed:
    """A star without rate limits; `delay` (s): switch to each receiver, `trunk` (s): sender to switch."""

    receivers: int
    delay: float = 0.0
    trunk: float = 0.0
    loss: float = 0.0
    trunk_loss: float = 0.0
    lose: Callable[[int], bool] | None = None
    """Identities whose first transmission is lost on the trunk; replaces `trunk_loss`."""
    channel: ContentLoss | None = None
    """Loss model of the receivers' links; replaces `loss`."""

    def build(self) -> Topology:
        """Return the topology with hosts `sender`, `ear` and `r1` to `rN`."""
        graph: nx.DiGraph[str] = nx.DiGraph()
        for name in ("sender", "ear"):
            graph.add_node(name, node=NodeSpec("host"))
        for name in ("s0", "s"):
            graph.add_node(name, node=NodeSpec("switch"))
        graph.add_node("r", node=NodeSpec("host", self.receivers))
        shared = FirstLoss(lose=self.lose) if self.lose else ContentLoss(p=self.trunk_loss)
        self._join(graph, "sender", "s0", self.trunk, Perfect())
        self._join(graph, "s0", "s", 0.0, shared)
        self._join(graph, "s0", "ear", self.delay, Perfect())
        self._join(graph, "s", "r", self.delay, self.channel or ContentLoss(p=self.loss))
        return Topology(graph)

    def _join(self, graph: "nx.DiGraph[str]", near: str, far: str, delay: float, loss: Any) -> None:
        graph.add_edge(near, far, link=LinkSpec(delay=delay, loss=loss))
        graph.add_edge(far, near, link=LinkSpec(delay=delay))


@dataclass(slots=True)
class SessionOutcome:
    """Result of a session: the sender's counters, sums of the receivers' counters, and the recorded messages."""

    sender: dict[str, int]
    receivers: dict[str, int]
    received: list[tuple[float, Message]]
    complete: int
    """Number of receivers that received all objects."""
    elapsed: float
    network: Network = field(repr=False)


def run_session(
    star: StarTestbed,
    name: str,
    settings: dict[str, Any],
    *jobs: tuple[float, int],
    seed: int = 1,
    wanted: Callable[[Message], bool] = lambda message: False,
) -> SessionOutcome:
    """Send objects from the sender to all receivers by protocol `name` until the flush after the last one completes.

    `jobs` are (submission time in seconds, size in bytes) of each object; the listener records messages accepted by `wanted`.
    """
    kind = protocol(name)
    config = kind.config(**settings)
    network = Network(star.build(), seed=seed)
    ended: list[float] = []

    def received(event: Event) -> None:
        if isinstance(event, FlushCompleted) and network.env.now >= jobs[-1][0]:
            ended.append(network.env.now)

    makers = kind.makers(fast=True)
    sender = makers.make_sender(network.host("sender"), config, 1, GROUP, 1)
    listener = PassiveListener(network.host("ear"), GROUP, wanted)
    machines = []
    for number in range(1, star.receivers + 1):
        host = network.host(f"r{number}")
        machine = makers.make_receiver(host, config, 1 + number, GROUP)
        machines.append(machine)
        host.run(machine, ignore, lambda offer: SINK)
    network.host("ear").run(listener, ignore)
    network.host("sender").run(sender, received)
    for when, size in jobs:
        content = Content(Extent(size))
        network.later(when, partial(_submit, network.host("sender"), sender, content))
    network.run(over=lambda: bool(ended))
    sums: dict[str, int] = {}
    complete = 0
    for machine in machines:
        counts = machine.counts()
        complete += counts["objects_received"] == len(jobs)
        for key, count in counts.items():
            sums[key] = sums.get(key, 0) + count
    return SessionOutcome(sender.counts(), sums, listener.received, complete, network.env.now, network)


def _submit(host: SimHost, sender: Sender, content: Content) -> None:
    host.call(sender.submit, content)


def ignore(event: Event) -> None:
    """Discard an event; results are taken from counters and from recorded messages."""
