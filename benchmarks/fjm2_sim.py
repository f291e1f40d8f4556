"""Subscribers of FJM2 in the simulator: their memory, and their processor time beside that of NORM receivers."""

import gc
import tracemalloc
from collections.abc import Callable
from math import inf
from typing import cast

from benchmarks.simulator import star
from benchmarks.yardsticks import GROUP, timed
from experiments.running.content import Extent
from experiments.running.program import accounted
from protocols.events import Event, FlushCompleted, ObjectReceived
from protocols.fjm2 import Fjm2Config
from protocols.fjm2.fast import ROLES
from protocols.jms import FIXED_SIZE
from protocols.machine import Content
from protocols.messaging import MessageReceived, Publication, Publisher, PublisherIdle, Subscriber, Subscription
from protocols.norm.fast import make_receiver, make_sender
from protocols.roles import RoleContext
from sim.network import Network

__all__ = ["bytes_per_subscriber", "sim_ratio_norm"]

TOPIC = "topic:t"
HEAD = FIXED_SIZE + 2
"""Bytes of the head of a message to a topic of one letter."""
CONFIG = Fjm2Config(rate=1.25e6, grtt=0.05)
LOSS = 0.001


class _Outcome:
    """Events of all hosts: messages or objects that were delivered, and whether the sender has finished."""

    def __init__(self) -> None:
        self.delivered, self.is_over = 0, False

    def on_event(self, event: Event) -> None:
        """Count an event."""
        if isinstance(event, (MessageReceived, ObjectReceived)):
            self.delivered += 1
        elif isinstance(event, (PublisherIdle, FlushCompleted)):
            self.is_over = True


def _subscribers(network: Network, messages: int, size: int) -> _Outcome:
    """Run subscribers of one topic on all hosts but the first, and there a publisher of messages of `size` bytes."""
    outcome, wanted = _Outcome(), Subscription(0, TOPIC)
    first, *others = [network.host(name) for name in network.topology.hosts]
    # Bound once, so that its memory is not counted for every subscriber.
    on_event = outcome.on_event
    for node, host in enumerate(others, 2):
        machine = cast(Subscriber, ROLES["subscriber"].make(host, RoleContext(CONFIG, node, GROUP)))
        host.run(machine, on_event)
        host.call(machine.subscribe, wanted)
    publisher = cast(Publisher, ROLES["publisher"].make(first, RoleContext(CONFIG, 1, GROUP)))
    first.run(publisher, outcome.on_event)
    for number in range(messages):
        first.call(publisher.publish, Publication(1, number, TOPIC, size))
    return outcome


def _receivers(network: Network, messages: int, size: int) -> _Outcome:
    """Run NORM receivers, and a sender of objects as large as such messages."""
    outcome = _Outcome()
    first, *others = [network.host(name) for name in network.topology.hosts]
    on_event = outcome.on_event
    for node, host in enumerate(others, 2):
        host.run(make_receiver(host, CONFIG, node, GROUP), on_event, accounted)
    sender = make_sender(first, CONFIG, 1, GROUP, 1)
    first.run(sender, outcome.on_event)
    for _ in range(messages):
        first.call(sender.submit, Content(Extent(size + HEAD), b"", is_file=False))
    return outcome


def bytes_per_subscriber(receivers: int = 10_000, messages: int = 20, size: int = 4000) -> float:
    """Return the peak memory of a run in bytes per subscriber, without topology and network."""
    gc.collect()
    topology = star(receivers, LOSS)
    tracemalloc.start()
    network = Network(topology, seed=1)
    before = tracemalloc.get_traced_memory()[0]
    outcome = _subscribers(network, messages, size)
    network.run(1e6, lambda: outcome.is_over)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert outcome.delivered == receivers * messages, "messages are missing"
    return (peak - before) / receivers


def sim_ratio_norm(receivers: int = 1000, messages: int = 100, size: int = 4000, times: int = 3) -> float:
    """Return the processor time of subscribers over that of NORM receivers that get the same packets, least of some runs."""
    subscribers, norm = inf, inf
    for _ in range(times):
        norm = min(norm, _processor_time(_receivers, receivers, messages, size))
        subscribers = min(subscribers, _processor_time(_subscribers, receivers, messages, size))
    return subscribers / norm


def _processor_time(fill: Callable[[Network, int, int], _Outcome], receivers: int, messages: int, size: int) -> float:
    network = Network(star(receivers, LOSS), seed=1)
    outcome = fill(network, messages, size)
    seconds = timed(lambda: network.run(1e6, lambda: outcome.is_over))
    assert outcome.delivered == receivers * messages, "messages or objects are missing"
    return seconds
