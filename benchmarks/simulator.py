"""How fast the simulator is: `python -m benchmarks.simulator [--json]`.

All numbers are CPU time per packet delivered to a machine, as ratios within one run. The work: a star with 1 % independent
loss on the last hops, one NORM sender, real NORM receivers, repair by parity (64, 16), until the sender has flushed.
"""

import argparse
import gc
import json
import time
import tracemalloc
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

from benchmarks.textbook import TextbookStar, at_random
from experiments.content import Extent
from experiments.program import accounted
from protocols.events import Event, FlushCompleted, ObjectReceived
from protocols.machine import Address, Content, Group, Machine, Message, Ports, fan_out
from protocols.norm import NormConfig, NormReceiver, NormSender
from protocols.norm.messages import Eot, Origin
from sim.host import SimHost
from sim.network import Network
from topologies.generators import Star
from topologies.spec import Topology

__all__ = ["main"]

GROUP = Group("239.0.0.1:6003")
RATE, DELAY, LOSS = 12.5e6, 0.005, 0.01


def config_for(receivers: int) -> NormConfig:
    """A sender of 10 Mbit/s."""
    return NormConfig(rate=1.25e6, segment=1400, block=64, parity=16, grtt=0.05, gsize=receivers, backoff=4)


def star(receivers: int) -> Topology:
    """Links of 100 Mbit/s and 5 ms."""
    link = {"rate": RATE * 8, "delay": DELAY}
    return Star.model_validate(
        {"kind": "star", "receivers": receivers, "trunk": link, "link": {**link, "down": {"loss": LOSS}}}
    ).build()


@dataclass
class Outcome:
    """What became of a session."""

    flushed: bool = False
    received: int = 0

    def on_event(self, event: Event) -> None:
        """Count completions."""
        if isinstance(event, FlushCompleted):
            self.flushed = True
        elif isinstance(event, ObjectReceived):
            self.received += 1


def fill(hosts: Sequence[Any], packets: int) -> Outcome:
    """One NORM sender on the first host, receivers on the others, an object of so many segments."""
    outcome, config = Outcome(), config_for(len(hosts) - 1)
    # Made once, so that their bytes are not counted for every receiver.
    on_event, accept = outcome.on_event, accounted
    for node, host in enumerate(hosts[1:], 2):
        host.run(NormReceiver(cast(Ports, host), config, node, GROUP), on_event, accept)
    host = hosts[0]
    sender = NormSender(cast(Ports, host), config, 1, GROUP, 1)
    host.run(sender, on_event, accept)
    host.call(sender.submit, Content(Extent(packets * config.segment), b"", is_file=False))
    return outcome


@dataclass
class Measure:
    """CPU seconds, deliveries to machines, SimPy events, packets sent."""

    cpu: float
    deliveries: int
    events: int = 0
    packets: int = 1

    @property
    def each(self) -> float:
        """Seconds per delivery."""
        return self.cpu / self.deliveries


def timed(run: Callable[[], object]) -> float:
    """CPU seconds of `run()`, with what exists already kept out of the garbage collector's way."""
    gc.collect()
    gc.freeze()
    begin = time.process_time()
    run()
    cpu = time.process_time() - begin
    gc.unfreeze()
    return cpu


def ours(receivers: int, packets: int) -> Measure:
    """The simulator of this project."""
    topology = star(receivers)
    network = Network(topology, seed=1)
    outcome = fill([network.host(name) for name in topology.hosts], packets)
    cpu = timed(lambda: network.run(1e6, lambda: outcome.flushed))
    assert outcome.received == receivers
    return Measure(cpu, network.deliveries, network.events, sum(network.traffic.packets.values()))


def textbook(receivers: int, packets: int) -> Measure:
    """The yardstick."""
    world = TextbookStar(receivers, RATE, DELAY, at_random(LOSS))
    outcome = fill(world.hosts, packets)
    cpu = timed(lambda: world.run(lambda: outcome.flushed))
    assert outcome.received == receivers
    return Measure(cpu, world.deliveries)


class Deaf(Machine):
    """Does nothing with what it receives."""

    __slots__ = ()

    def start(self, now: float) -> None:
        """Nothing."""

    def receive(self, message: Message, source: Address, to: Address, now: float) -> None:
        """Nothing."""

    def wake(self, now: float) -> None:
        """Nothing."""

    def counts(self) -> dict[str, int]:
        """Nothing."""
        return {}


def bare_loop(receivers: int, packets: int) -> Measure:
    """A Python loop that calls an empty method per delivery."""
    machines = [Deaf(cast(Ports, None)) for _ in range(receivers)]
    message = Eot(Origin(1, 1, 0, 0, 0), 0)

    def run() -> None:
        for _ in range(packets):
            fan_out(machines, message, "sender", GROUP, 0.0)

    return Measure(timed(run), receivers * packets)


def best(measure: Callable[[int, int], Measure], receivers: int, packets: int, times: int = 3) -> Measure:
    """The quickest of a few runs, which is the least disturbed."""
    return min((measure(receivers, packets) for _ in range(times)), key=lambda known: known.each)


def bytes_per_receiver(receivers: int, packets: int = 200) -> float:
    """Peak of memory during a run, above the same topology and network without a protocol."""
    gc.collect()
    topology = star(receivers)
    names = topology.hosts
    tracemalloc.start()
    network = Network(topology, seed=1)
    before = tracemalloc.get_traced_memory()[0]
    outcome = fill([network.host(name) for name in names], packets)
    network.run(1e6, lambda: outcome.flushed)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert outcome.received == receivers
    return (peak - before) / receivers


def storm(receivers: int, packets: int = 64) -> dict[str, float]:
    """One packet of a block lost on the shared trunk: every receiver wants it, few NACKs are said, and it is repaired."""
    link = {"rate": RATE * 8, "delay": DELAY}
    topology = Star.model_validate({"kind": "star", "receivers": receivers, "trunk": link, "link": link}).build()
    network = Network(topology, seed=1)
    outcome = fill([network.host(name) for name in topology.hosts], 1)
    network.run(1e6, lambda: outcome.flushed)
    host = network.host("sender")
    lose_next(host)
    sender = cast(NormSender, host.machine)
    outcome.flushed, outcome.received, before, events = False, 0, network.deliveries, network.events
    host.call(sender.submit, Content(Extent(packets * 1400), b"", is_file=False))
    cpu = timed(lambda: network.run(1e6, lambda: outcome.received == receivers))
    deliveries = network.deliveries - before
    bare = best(bare_loop, receivers, 10)
    return {
        "events": network.events - events,
        "nacks": network.traffic.packets["nack"],
        "deliveries": deliveries,
        "ratio_bare_loop": round(cpu / deliveries / bare.each, 1),
    }


def lose_next(host: SimHost) -> None:
    """The next content the host sends is lost on the trunk."""
    trunk = next(iter(host.leaf.uplinks.values()))

    class Once:
        """Loses the first content."""

        def __init__(self) -> None:
            self.left = 1

        def lost(self, identity: int | None) -> bool:
            """Only content counts."""
            if identity is None or not self.left:
                return False
            self.left -= 1
            return True

    trunk.sampler = cast(Any, Once())


SIZES = {10: (20_000, 500), 100: (5_000, 100), 1000: (2_000, 64)}
"""Receivers -> packets for us and for the textbook, so that every run takes a second or so."""


def measure_all(sizes: dict[int, tuple[int, int]] = SIZES, crowd: int = 10_000, caught: int = 100_000) -> dict[str, Any]:
    """Everything, under the names the issues use; `crowd` for memory, `caught` in the storm."""
    mine = {receivers: best(ours, receivers, packets) for receivers, (packets, _) in sizes.items()}
    theirs = {receivers: best(textbook, receivers, packets, 2) for receivers, (_, packets) in sizes.items()}
    most = max(sizes)
    bare = best(bare_loop, most, sizes[most][0])
    return {
        "ratio_textbook": {str(r): round(theirs[r].each / mine[r].each, 1) for r in sizes},
        "ratio_bare_loop": {str(most): round(mine[most].each / bare.each, 2)},
        "ns_per_delivery": {str(r): round(mine[r].each * 1e9, 1) for r in sizes},
        "events_per_packet": {str(r): round(mine[r].events / mine[r].packets, 2) for r in sizes},
        "bytes_per_receiver": {str(crowd): round(bytes_per_receiver(crowd))},
        f"storm_{caught // 1000}k": storm(caught),
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.simulator", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    asked = parser.parse_args()
    found = measure_all()
    if asked.json:
        print(json.dumps(found))
        return
    for name, value in found.items():
        print(f"{name:20} {value}")


if __name__ == "__main__":
    main()
