"""Measure the memory of simulated receivers of every protocol: `python -m benchmarks.memory [--receivers N ...] [--json]`.

The peak of a run in bytes per receiver, without topology and network. Receivers of files are those of `benchmarks.cases`.
Subscribers of a messaging protocol begin one after the other within four seconds, those of FJM at most 250 in one; a second
later they get five messages of 1000 bytes. A connection counts with both ends. They are in a star with 0.1 % loss on the last
hops, or without any where the protocol uses connections.

    python -m benchmarks.memory --protocols bus fjm2 --receivers 1000
"""

import argparse
import gc
import json
import tracemalloc
from collections.abc import Callable
from math import inf
from typing import Any, cast

from benchmarks.simulator import bytes_per_receiver, star
from benchmarks.yardsticks import GROUP
from protocols.broker.config import BrokerConfig
from protocols.events import Event, FlushCompleted, ObjectReceived
from protocols.fjm2 import Fjm2Config
from protocols.messaging import MessageReceived, Publication, Publisher, PublisherIdle, Subscriber, Subscription
from protocols.registry import names, protocol
from protocols.relay.config import RelayConfig
from protocols.roles import RoleContext
from sim.network import Network

__all__ = ["FJM2", "LOSS", "Outcome", "bytes_per_subscriber", "main", "subscribe_all"]

LOSS = 0.001
SPREAD, PAUSE, LONGEST = 4.0, 1.0, 56.0
"""Seconds in which subscribers begin, from then until messages are published, and after which a run ends without them all."""
MOST_PER_SECOND = {"fjm": 250}
"""Subscribers that begin in a second at most: those of FJM take longer with more of them.

Each that waits for its registration registers again whenever the guard answers another one, and all are told of each.
"""
FILES = {"parity": 200, "plain": 200, "n1": 200, "n2": 200, "a": 20, "srm": 2}
"""Packets of content by the case of a protocol of files."""
MOST = {"a": 1000, "srm": 1000}
"""The most receivers of protocols whose runs would take too long."""
LEAST = {"datagram": 0.99, "distributor": 0.99}
"""Least share of the messages that arrive where not all have to.

Datagrams are not repeated. A subscriber that began after a publisher of the distributor gets what follows the first segment or
heartbeat that it hears.
"""
FJM2 = Fjm2Config(rate=1.25e6, grtt=0.05)
CONFIGS = {"fjm2": FJM2, "relay": RelayConfig(clients=1_000_000), "broker": BrokerConfig(clients=1_000_000)}
"""Parameters of protocols that are not the defaults; a server serves any number of clients."""


class Outcome:
    """Events of all hosts: messages or objects that were delivered, and whether the sender has finished."""

    def __init__(self) -> None:
        self.delivered, self.is_over = 0, False

    def on_event(self, event: Event) -> None:
        """Count an event."""
        if isinstance(event, (MessageReceived, ObjectReceived)):
            self.delivered += 1
        elif isinstance(event, (PublisherIdle, FlushCompleted)):
            self.is_over = True


def subscribe_all(network: Network, name: str, config: Any, spread: float = 0.0) -> tuple[Outcome, Callable[[int, int], None]]:
    """Run a subscriber on all hosts but the first, which publishes, and but one after it for a server that the protocol needs.

    They begin evenly within `spread` seconds. Returns their outcome, and what publishes so many messages of so many bytes.
    """
    outcome, roles = Outcome(), protocol(name).roles_for(fast=True)
    topic = Subscription(0, "/t" if name == "distributor" else "topic:t")
    first, *others = [network.host(host) for host in network.topology.hosts]
    # Bound once, so that its memory is not counted for every subscriber.
    on_event = outcome.on_event
    addresses = {}
    for server in roles["subscriber"].needs:
        host = others.pop(0)
        addresses[server] = [host.address_of(host.name)]
        host.run(roles[server].make(host, RoleContext(config, 2, GROUP, address=addresses[server][0])), on_event)
    publisher = cast(Publisher, roles["publisher"].make(first, RoleContext(config, 1, GROUP, addresses=addresses)))
    first.run(publisher, on_event)
    for place, host in enumerate(others):
        if spread:
            network.run(spread * place / len(others))
        context = RoleContext(config, place + 3, GROUP, addresses=addresses)
        machine = cast(Subscriber, roles["subscriber"].make(host, context))
        host.run(machine, on_event)
        host.call(machine.subscribe, topic)

    def publish(messages: int, size: int) -> None:
        outcome.is_over = False
        for number in range(messages):
            first.call(publisher.publish, Publication(1, number, topic.destination, size))

    return outcome, publish


def bytes_per_subscriber(name: str, receivers: int, messages: int = 5, size: int = 1000) -> float:
    """Return the peak memory of a run in bytes per subscriber of a messaging protocol, without topology and network."""
    spec = protocol(name)
    config = CONFIGS.get(name) or spec.config()
    roles = spec.roles_for(fast=True)
    gc.collect()
    topology = star(receivers + len(roles["subscriber"].needs), 0.0 if spec.connected else LOSS)
    # Made when they are asked for first; they belong to the topology.
    assert topology.hosts
    tracemalloc.start()
    network = Network(topology, seed=1)
    before = tracemalloc.get_traced_memory()[0]
    spread = max(SPREAD, receivers / MOST_PER_SECOND.get(name, inf))
    outcome, publish = subscribe_all(network, name, config, spread)
    network.run(spread + PAUSE)
    publish(messages, size)
    network.run(spread + LONGEST, lambda: outcome.is_over and outcome.delivered >= receivers * messages)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert outcome.delivered >= receivers * messages * LEAST.get(name, 1), "messages are missing"
    return (peak - before) / receivers


def measure(name: str, receivers: int) -> float:
    """Return the bytes per receiver of a case of files, or of a messaging protocol."""
    return bytes_per_receiver(receivers, FILES[name], case=name) if name in FILES else bytes_per_subscriber(name, receivers)


def main() -> None:
    """Measure and print."""
    messaging = [name for name in names() if protocol(name).guarantees is not None]
    cases = [*FILES, *messaging]
    parser = argparse.ArgumentParser(prog="python -m benchmarks.memory", description=__doc__)
    parser.add_argument("--receivers", nargs="+", type=int, default=[1000, 10_000], metavar="N", help="numbers of receivers")
    parser.add_argument("--protocols", nargs="+", choices=cases, default=cases, metavar="NAME", help=f"only these of {cases}")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args()
    if min(options.receivers) < 1:
        parser.error(f"--receivers: {min(options.receivers)} is not allowed; a whole number from 1")
    found: dict[str, dict[int, int]] = {}
    for name in options.protocols:
        sizes = sorted({min(size, MOST.get(name, size)) for size in options.receivers})
        found[name] = {size: round(measure(name, size)) for size in sizes}
        if not options.json:
            print(f"{name:12}" + "".join(f"{octets:>9} B of {size}" for size, octets in found[name].items()), flush=True)
    if options.json:
        print(json.dumps(found))


if __name__ == "__main__":
    main()
