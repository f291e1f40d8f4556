"""Subscribers of FJM2 in the simulator: their processor time beside that of NORM receivers."""

from collections.abc import Callable
from math import inf

from benchmarks.memory import FJM2, LOSS, Outcome, subscribe_all
from benchmarks.simulator import star
from benchmarks.yardsticks import GROUP, timed
from experiments.running.content import Extent
from experiments.running.program import accounted
from protocols.jms import FIXED_SIZE
from protocols.machine import Content
from protocols.norm.fast import make_receiver, make_sender
from sim.network import Network

__all__ = ["sim_ratio_norm"]

SIZE, TIMES = 4000, 3
"""Bytes of a message, and runs of which the fastest counts."""
HEAD = FIXED_SIZE + 2
"""Bytes of the head of a message to a topic of one letter."""


def _subscribers(network: Network, messages: int) -> Outcome:
    """Run subscribers of one topic on all hosts but the first, and there a publisher."""
    outcome, publish = subscribe_all(network, "fjm2", FJM2)
    publish(messages, SIZE)
    return outcome


def _receivers(network: Network, messages: int) -> Outcome:
    """Run NORM receivers, and a sender of objects as large as such messages."""
    outcome = Outcome()
    first, *others = [network.host(name) for name in network.topology.hosts]
    on_event = outcome.on_event
    for node, host in enumerate(others, 2):
        host.run(make_receiver(host, FJM2, node, GROUP), on_event, accounted)
    sender = make_sender(first, FJM2, 1, GROUP, 1)
    first.run(sender, outcome.on_event)
    for _ in range(messages):
        first.call(sender.submit, Content(Extent(SIZE + HEAD), b"", is_file=False))
    return outcome


def sim_ratio_norm(receivers: int = 1000, messages: int = 100) -> float:
    """Return the processor time of subscribers over that of NORM receivers that get the same packets, least of some runs."""
    subscribers, norm = inf, inf
    for _ in range(TIMES):
        norm = min(norm, _processor_time(_receivers, receivers, messages))
        subscribers = min(subscribers, _processor_time(_subscribers, receivers, messages))
    return subscribers / norm


def _processor_time(fill: Callable[[Network, int], Outcome], receivers: int, messages: int) -> float:
    network = Network(star(receivers, LOSS), seed=1)
    outcome = fill(network, messages)
    seconds = timed(lambda: network.run(1e6, lambda: outcome.is_over))
    assert outcome.delivered == receivers * messages, "messages or objects are missing"
    return seconds
