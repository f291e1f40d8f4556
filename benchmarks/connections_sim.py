"""The part "sim" of benchmarks.connections.

A publisher sends messages to a relay, which copies each to all subscribers; the cost is CPU time per message delivered to a
subscriber, and `ratio_textbook` that of the simulator divided by that of textbook SimPy, which has a process and a Store for
each end of a connection and each link. `bytes_per_connection` is the memory of both ends of an idle connection.
"""

import gc
import tracemalloc
from collections.abc import Sequence
from typing import Any

from benchmarks.relaying import Publisher, Relay, Subscriber
from benchmarks.textbook import TextbookNetwork
from benchmarks.textbook_connections import TextbookConnections
from benchmarks.yardsticks import timed
from protocols.machine import Machine
from sim.network import Network
from topologies.generators import Star
from topologies.spec import Topology

__all__ = ["measure_sim"]

SIZE, SUBSCRIBERS, MESSAGES = 1000, 8, 2000
RATE = 12.5e6
DELAY = 0.005
LOAD = 0.8
"""Share of the relay's link that the copies need."""
TIMES = 3


def _star(subscribers: int) -> Topology:
    """Return a star: the relay is its sender, `r1` the publisher, the others are subscribers."""
    link = {"rate": RATE * 8, "delay": DELAY}
    return Star.model_validate({"kind": "star", "receivers": subscribers + 1, "trunk": link, "link": link}).build()


def _machines(hosts: Sequence[str], size: int, messages: int) -> dict[str, Any]:
    """Return what makes the machine of each host: the first is the relay, the second the publisher."""
    relay, publisher, *subscribers = hosts
    gap = (size + 4) * len(subscribers) / (LOAD * RATE)
    makers: dict[str, Any] = {
        relay: Relay,
        publisher: lambda ports: Publisher(ports, relay, messages, size, gap, 0.2),
    }
    return makers | {name: lambda ports: Subscriber(ports, relay) for name in subscribers}


def _ours(topology: Topology, size: int, messages: int) -> float:
    """Return the CPU seconds of a run of the simulator."""
    network = Network(topology, seed=1)
    machines: list[Machine] = []
    for name, make in _machines(topology.hosts, size, messages).items():
        host = network.host(name)
        machines.append(make(host))
        host.run(machines[-1], _ignore)
    used = timed(lambda: network.run(until=60.0))
    _check(machines, messages)
    return used


def _textbook(topology: Topology, size: int, messages: int) -> float:
    """Return the CPU seconds of the same in textbook SimPy."""
    network = TextbookNetwork(topology, seed=1)
    layers: list[TextbookConnections] = []
    for name, make in _machines(topology.hosts, size, messages).items():
        host = network.host(name)
        layers.append(TextbookConnections(host, make))
        host.run(layers[-1], _ignore)
    used = timed(lambda: network.run(60.0, lambda: False))
    _check([layer.machine for layer in layers], messages)
    return used


def _check(machines: Sequence[Machine], messages: int) -> None:
    """Every subscriber has received every message."""
    received = [machine.received for machine in machines if isinstance(machine, Subscriber)]
    assert received == [messages] * len(received), f"of {messages} messages arrived {received}"


def _ignore(event: object) -> None:
    del event


def _idle(connections: int) -> float:
    """Return the bytes of memory of both ends of an idle connection, over which a message was sent."""
    topology = _star(connections)
    network = Network(topology, seed=1)
    for name, make in _machines(topology.hosts, 100, 1).items():
        host = network.host(name)
        host.run(make(host), _ignore)
    gc.collect()
    tracemalloc.start()
    network.run(until=1.0)
    gc.collect()
    used = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return used / (connections + 1)


def measure_sim(size: int = SIZE, subscribers: int = SUBSCRIBERS, messages: int = MESSAGES) -> dict[str, float]:
    """Return the figures of connections in the simulator."""
    topology = _star(subscribers)
    ours, textbook = [], []
    for _ in range(TIMES):
        # Alternately, so that other load disturbs both.
        ours.append(_ours(topology, size, messages))
        textbook.append(_textbook(topology, size, messages))
    delivered = messages * subscribers
    return {
        "us_per_message": 1e6 * min(ours) / delivered,
        "ratio_textbook": min(ours) / min(textbook),
        "bytes_per_connection": _idle(1000),
    }
