"""Measure the speed of the simulator: `python -m benchmarks.simulator [--json]`.

All numbers are CPU time per packet delivered to a machine, and ratios within one run. The session: a star with 1 % independent
loss on the last hops, one NORM sender, NORM receivers, repair by parity (64, 16), until the sender has flushed.
"""

import argparse
import gc
import json
import tracemalloc
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from benchmarks.cases import measure_cases
from benchmarks.textbook import TextbookStar, at_random
from benchmarks.yardsticks import GROUP, Measure, bare_loop, best, timed
from experiments.running.content import Extent
from experiments.running.program import accounted
from protocols.events import Event, FlushCompleted, ObjectReceived
from protocols.machine import Content, Machine
from protocols.norm import NormConfig, NormSender
from protocols.norm.fast import FastNormReceiver, FastNormSender
from sim.host import SimHost
from sim.network import Network
from topologies.generators import Star
from topologies.spec import Topology

__all__ = ["fill", "main", "star"]

RATE, DELAY, LOSS = 12.5e6, 0.005, 0.01


def config_for(receivers: int) -> NormConfig:
    """Return the configuration of a sender of 10 Mbit/s."""
    return NormConfig(rate=1.25e6, segment=1400, block=64, parity=16, grtt=0.05, gsize=receivers, backoff=4)


def star(receivers: int, loss: float = LOSS) -> Topology:
    """Return a star with links of 100 Mbit/s and 5 ms."""
    link = {"rate": RATE * 8, "delay": DELAY}
    return Star.model_validate(
        {"kind": "star", "receivers": receivers, "trunk": link, "link": {**link, "down": {"loss": loss}}}
    ).build()


@dataclass
class Outcome:
    """Progress of a session: the end of the sender's flush, and the number of objects received by all receivers together."""

    flushed: bool = False
    received: int = 0

    def on_event(self, event: Event) -> None:
        """Count completed objects."""
        if isinstance(event, FlushCompleted):
            self.flushed = True
        elif isinstance(event, ObjectReceived):
            self.received += 1


def fill(
    hosts: Sequence[Any],
    packets: int,
    config: NormConfig | None = None,
    sender_class: type[NormSender] = FastNormSender,
    receiver_class: Callable[..., Machine] = FastNormReceiver,
) -> Outcome:
    """Run a NORM sender on the first host, receivers on the others, and submit an object of `packets` segments."""
    outcome, config = Outcome(), config or config_for(len(hosts) - 1)
    # Bound once, so that their memory is not counted for every receiver.
    on_event, accept = outcome.on_event, accounted
    for node, host in enumerate(hosts[1:], 2):
        host.run(receiver_class(host, config, node, GROUP), on_event, accept)
    host = hosts[0]
    sender = sender_class(host, config, 1, GROUP, 1)
    host.run(sender, on_event, accept)
    host.call(sender.submit, Content(Extent(packets * config.segment), b"", is_file=False))
    return outcome


def ours(receivers: int, packets: int, loss: float = LOSS) -> Measure:
    """Measure this project's simulator."""
    topology = star(receivers, loss)
    network = Network(topology, seed=1)
    outcome = fill([network.host(name) for name in topology.hosts], packets)
    cpu = timed(lambda: network.run(1e6, lambda: outcome.flushed))
    assert outcome.received == receivers
    return Measure(cpu, network.deliveries, network.events, sum(network.traffic.packets.values()))


def textbook(receivers: int, packets: int) -> Measure:
    """Measure the textbook implementation."""
    world = TextbookStar(receivers, RATE, DELAY, at_random(LOSS))
    outcome = fill(world.hosts, packets)
    cpu = timed(lambda: world.run(lambda: outcome.flushed))
    assert outcome.received == receivers
    return Measure(cpu, world.deliveries)


def bytes_per_receiver(receivers: int, packets: int = 200) -> float:
    """Return the peak memory of a run in bytes per receiver, without topology and network."""
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


def storm(receivers: int, packets: int = 64, *, well_set: bool = True) -> dict[str, float]:
    """Lose one packet on the shared trunk, so that every receiver requests it, and measure until it is repaired.

    With `well_set` false the back-off assumes half of the true round-trip time, so that many more NACKs are sent.
    """
    config = config_for(receivers)
    if not well_set:
        config = replace(config, grtt=2 * DELAY, grtt_max=2 * DELAY, probing="none")
    link = {"rate": RATE * 8, "delay": DELAY}
    topology = Star.model_validate({"kind": "star", "receivers": receivers, "trunk": link, "link": link}).build()
    network = Network(topology, seed=1)
    outcome = fill([network.host(name) for name in topology.hosts], 1, config)
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


def least_disturbed(run: Callable[[], dict[str, float]]) -> dict[str, float]:
    """Return the fastest of three storms."""
    return min((run() for _ in range(3)), key=lambda found: found["ratio_bare_loop"])


def lose_next(host: SimHost) -> None:
    """Lose the next content the host sends, on the trunk."""
    trunk: Any = next(iter(host.endpoint.uplinks.values()))

    class Once:
        """Loses the first content."""

        def __init__(self) -> None:
            self.left = 1

        def lost(self, identity: int | None) -> bool:
            """Whether the packet is lost; control packets never are."""
            if identity is None or not self.left:
                return False
            self.left -= 1
            return True

    trunk.sampler = Once()


SIZES = {10: 10_000, 100: 5_000, 1000: 2_560}
"""Receivers -> packets, for both simulators: enough that the start of a session does not matter."""


def in_turn(receivers: int, packets: int) -> tuple[Measure, Measure]:
    """Measure this simulator and the textbook in turn; return the fastest run of each."""
    mine: list[Measure] = []
    theirs: list[Measure] = []
    for _ in range(3):
        mine.append(best(ours, receivers, packets, 4))
        theirs.append(textbook(receivers, packets))
    return min(mine, key=lambda known: known.each), min(theirs, key=lambda known: known.each)


def measure_all(
    sizes: dict[int, int] = SIZES, memory_receivers: int = 10_000, storm_receivers: int = 100_000, share: float = 1.0
) -> dict[str, Any]:
    """Measure everything.

    `memory_receivers` is the number of receivers for memory, `storm_receivers` that of the storms; `share` scales the content
    of the other cases.
    """
    # The largest first, which suffers most from memory in pieces.
    pairs = {receivers: in_turn(receivers, sizes[receivers]) for receivers in sorted(sizes, reverse=True)}
    mine, theirs = ({receivers: pair[side] for receivers, pair in pairs.items()} for side in range(2))
    most = max(sizes)
    bare = best(bare_loop, most, sizes[most])
    return {
        "ratio_textbook": {str(r): round(theirs[r].each / mine[r].each, 1) for r in sizes},
        "ratio_bare_loop": {str(most): round(mine[most].each / bare.each, 2)},
        "ns_per_delivery": {str(r): round(mine[r].each * 1e9, 1) for r in sizes},
        "events_per_packet": {str(r): round(mine[r].events / mine[r].packets, 2) for r in sizes},
        "bytes_per_receiver": {str(memory_receivers): round(bytes_per_receiver(memory_receivers))},
        f"storm_{storm_receivers // 1000}k": least_disturbed(lambda: storm(storm_receivers)),
        f"storm_{storm_receivers // 1000}k_ill_set": least_disturbed(lambda: storm(storm_receivers, well_set=False)),
        "cases": measure_cases(share),
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.simulator", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args()
    found = measure_all()
    if options.json:
        print(json.dumps(found))
        return
    for name, value in found.items():
        print(f"{name:20} {value}")


if __name__ == "__main__":
    main()
