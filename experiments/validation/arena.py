"""The place where protocols are measured: a star in the simulator, with the assumptions of the theory and nothing else.

Receivers `r1` to `rN` hang on one switch; `ear` hangs before the shared loss and hears everything that is sent, at the
moments at which the receivers hear it. Losses of content are the simulator's own keyed draws; control packets pass, as the
closed forms assume.
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

__all__ = ["Ear", "FirstLoss", "Outcome", "Star", "play"]

GROUP = Group("validation")
SINK = Accounted()


class _Script(LinkLoss):
    """Loses the first transmission of what `lose` names."""

    __slots__ = ("_known", "_lose")

    def __init__(self, key: int, lose: Callable[[int], bool]) -> None:
        super().__init__(key, 0.5)
        self._lose = lose
        self._known: set[int] = set()

    def lost(self, identity: int | None) -> bool:
        """Is it the first of a doomed identity?"""
        if identity is None or identity in self._known or not self._lose(identity):
            return False
        self._known.add(identity)
        return True


class FirstLoss(Perfect):
    """Loses the first transmission of each identity for which `lose` is true, before any receiver sees it."""

    lose: Callable[[int], bool]

    def link(self, key: int) -> LinkLoss | None:
        """The sampler of one link."""
        return _Script(key, self.lose)


class Ear(Machine):
    """Hears everything the receivers hear, and says nothing: rows (time, message, came to the group?)."""

    __slots__ = ("_group", "_wanted", "heard")

    def __init__(self, ports: Ports, group: Group, wanted: Callable[[Message], bool]) -> None:
        super().__init__(ports)
        self._group, self._wanted = group, wanted
        self.heard: list[tuple[float, Message]] = []

    def start(self, now: float) -> None:
        """Join."""
        self.ports.join(self._group)

    def receive(self, message: Message, source: Address, to: Address, now: float) -> None:
        """Note it."""
        if self._wanted(message):
            self.heard.append((now, message))

    def wake(self, now: float) -> None:
        """Never asked for."""

    def counts(self) -> dict[str, int]:
        """Nothing of interest."""
        return {}


@dataclass(frozen=True, slots=True)
class Star:
    """Links without rate limit. `delay` (seconds): from the switch to each receiver, `trunk`: from the sender to the switch."""

    receivers: int
    delay: float = 0.0
    trunk: float = 0.0
    loss: float = 0.0
    trunk_loss: float = 0.0
    lose: Callable[[int], bool] | None = None
    """First transmissions that the trunk loses, instead of `trunk_loss`."""
    channel: ContentLoss | None = None
    """What the receivers' links do, instead of `loss`."""

    def build(self) -> Topology:
        """The topology; hosts `sender`, `ear` and `r1` to `rN`."""
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
class Outcome:
    """What a session came to: the sender's counts, the sums of the receivers' counts, what the ear heard."""

    sender: dict[str, int]
    receivers: dict[str, int]
    heard: list[tuple[float, Message]]
    complete: int
    """Receivers that have everything."""
    elapsed: float
    network: Network = field(repr=False)


def play(
    star: Star,
    name: str,
    settings: dict[str, Any],
    *jobs: tuple[float, int],
    seed: int = 1,
    wanted: Callable[[Message], bool] = lambda message: False,
) -> Outcome:
    """Objects from the sender to all receivers by the protocol `name`, until the flush after the last is completed.

    `jobs` are (time, bytes) of each object; the ear notes the messages that are `wanted`.
    """
    kind = protocol(name)
    config = kind.config(**settings)
    network = Network(star.build(), seed=seed)
    ended: list[float] = []

    def heard(event: Event) -> None:
        if isinstance(event, FlushCompleted) and network.env.now >= jobs[-1][0]:
            ended.append(network.env.now)

    makers = kind.makers(fast=True)
    sender = makers.make_sender(network.host("sender"), config, 1, GROUP, 1)
    ear = Ear(network.host("ear"), GROUP, wanted)
    machines = []
    for number in range(1, star.receivers + 1):
        host = network.host(f"r{number}")
        machine = makers.make_receiver(host, config, 1 + number, GROUP)
        machines.append(machine)
        host.run(machine, _ignore, lambda offer: SINK)
    network.host("ear").run(ear, _ignore)
    network.host("sender").run(sender, heard)
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
    return Outcome(sender.counts(), sums, ear.heard, complete, network.env.now, network)


def _submit(host: SimHost, sender: Sender, content: Content) -> None:
    host.call(sender.submit, content)


def _ignore(event: Event) -> None:
    """What receivers tell is in their counts."""
