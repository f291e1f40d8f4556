"""Measure the speed of the simulator: `python -m benchmarks.simulator [--json]`.

All numbers are CPU time per packet delivered to a machine, and ratios within one run. `benchmarks.cases` has the sessions; each
is run until its senders have finished, here and in textbook SimPy. With a compiled build, `compiled` is how many times as fast
it runs the same session.

    python -m benchmarks.simulator --cases plain n2 --receivers 100
"""

import argparse
import gc
import json
import sys
import tracemalloc
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from benchmarks.cases import CASES, OURS, TEXTBOOK, run
from benchmarks.compiled import check, find_build, speed_up
from benchmarks.yardsticks import GROUP, Measure, bare_loop, best, timed
from experiments.running.content import Extent
from experiments.running.program import accounted
from protocols.events import Event, FlushCompleted, ObjectReceived
from protocols.machine import Content, Machine
from protocols.norm import NormConfig, NormSender
from protocols.norm.fast import FastNormReceiver, FastNormSender
from protocols.registry import protocol
from sim.host import SimHost
from sim.network import Network
from topologies.generators import Star
from topologies.spec import Topology

__all__ = ["fill", "main", "star"]

RATE, DELAY, LOSS = 12.5e6, 0.005, 0.01
LEAN = "plain", "n1", "n2"
"""Cases of which memory is measured besides `parity`."""
SAME = 0.02
"""Share by which packets and deliveries of equal sessions may differ."""


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
    config: Any = None,
    sender_class: Callable[..., Any] = FastNormSender,
    receiver_class: Callable[..., Machine] = FastNormReceiver,
    senders: int = 1,
) -> Outcome:
    """Run senders on the first hosts, each of an object of `packets` segments, and receivers on the others."""
    outcome, config = Outcome(), config or config_for(len(hosts) - senders)
    # Bound once, so that their memory is not counted for every receiver.
    on_event, accept = outcome.on_event, accounted
    for node, host in enumerate(hosts[senders:], senders + 1):
        host.run(receiver_class(host, config, node, GROUP), on_event, accept)
    for node, host in enumerate(hosts[:senders], 1):
        sender = sender_class(host, config, node, GROUP, 1)
        host.run(sender, on_event, accept)
        host.call(sender.submit, Content(Extent(packets * config.segment), b"", is_file=False))
    return outcome


def bytes_per_receiver(receivers: int, packets: int = 200, senders: int = 1, case: str = "parity") -> float:
    """Return the peak memory of a run with the protocol of a case in bytes per receiver, without topology and network."""
    choice = CASES[case].scenario(receivers, packets).protocol
    makers = protocol(choice.name).makers(fast=True)
    gc.collect()
    topology = star(receivers + senders - 1)
    names = topology.hosts
    tracemalloc.start()
    network = Network(topology, seed=1)
    before = tracemalloc.get_traced_memory()[0]
    # The list is not kept.
    makers_of = makers.make_sender, makers.make_receiver
    outcome = fill([network.host(name) for name in names], packets, choice.config, *makers_of, senders)
    network.run(1e6, lambda: outcome.flushed and outcome.received == receivers * senders)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert outcome.received == receivers * senders
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


Cells = dict[str, dict[str, dict[str, float]]]
"""Figures by case and number of receivers."""


def measure_case(name: str, receivers: int, lengths: tuple[int, int], rounds: int = 2) -> dict[str, float]:
    """Measure a case in both simulators in turn; the fastest run of each counts.

    `lengths` are the packets of content in this simulator and in the textbook. Asserts that both simulators send and deliver
    the same packets when they have the same content, and that every receiver gets everything.
    """
    long, short = (CASES[name].scenario(receivers, packets) for packets in lengths)
    mine: list[Measure] = []
    theirs: list[Measure] = []
    for _ in range(rounds):
        theirs.append(run(TEXTBOOK, short))
        mine += [run(OURS, long) for _ in range(3)]
    check_same(run(OURS, short), theirs[0])
    ours, textbook = (min(measures, key=lambda known: known.each) for measures in (mine, theirs))
    return {
        "ratio_textbook": round(textbook.each / ours.each, 1),
        "us": round(ours.each * 1e6, 4),
        "events_per_packet": round(ours.events / ours.packets, 2),
    }


def check_same(ours: Measure, textbook: Measure) -> None:
    """Assert that two simulators did the same work.

    They have the same losses and random numbers, so runs are equal but for inputs of one instant, which may come in another
    order.
    """
    for mine, theirs in ((ours.deliveries, textbook.deliveries), (ours.packets, textbook.packets)):
        assert abs(mine - theirs) <= SAME * theirs, f"{ours} here, {textbook} in the textbook: these are different runs"


def measure_cases(
    names: Sequence[str], receivers: Sequence[int] | None, say: Callable[[str], None], build: Path | None = None
) -> Cells:
    """Measure cases at their numbers of receivers, or at those of `receivers` they have; `say` is given a line after each.

    With the folder `build` of a compiled build, also how many times as fast it is.
    """
    cells = [(name, size) for name in names for size in CASES[name].lengths if receivers is None or size in receivers]
    found: Cells = {name: {} for name in names}
    for number, (name, size) in enumerate(cells, 1):
        lengths = CASES[name].lengths[size]
        cell = measure_case(name, size, lengths)
        if build is not None:
            cell["compiled"] = round(speed_up(build, name, size, lengths[0]), 2)
        found[name][str(size)] = cell
        figures = ", ".join(f"{key} {value}" for key, value in cell.items())
        say(f"{number}/{len(cells)} {name} {size}: {figures}")
    return found


def measure_all(cases: Cells, memory_receivers: int = 10_000, storm_receivers: int = 100_000) -> dict[str, Any]:
    """Measure all that is not a case, and summarise the case `parity`.

    `memory_receivers` is the number of receivers for memory, `storm_receivers` that of the storms.
    """
    parity = cases["parity"]
    most = max(parity, key=int)
    bare = best(bare_loop, int(most), 1000)
    return {
        "ratio_textbook": {size: cell["ratio_textbook"] for size, cell in parity.items()},
        "ratio_bare_loop": {most: round(parity[most]["us"] / 1e6 / bare.each, 2)},
        "ns_per_delivery": {size: round(cell["us"] * 1e3, 1) for size, cell in parity.items()},
        "events_per_packet": {size: cell["events_per_packet"] for size, cell in parity.items()},
        "bytes_per_receiver": {str(memory_receivers): round(bytes_per_receiver(memory_receivers))},
        "bytes_per_receiver_in": {
            case: {str(memory_receivers): round(bytes_per_receiver(memory_receivers, case=case))} for case in LEAN
        },
        "bytes_per_receiver_of_8": {str(memory_receivers): round(bytes_per_receiver(memory_receivers, 100, senders=8))},
        f"storm_{storm_receivers // 1000}k": least_disturbed(lambda: storm(storm_receivers)),
        f"storm_{storm_receivers // 1000}k_ill_set": least_disturbed(lambda: storm(storm_receivers, well_set=False)),
        "cases": cases,
    }


def print_cases(cases: Cells) -> None:
    """Print a line for each case and number of receivers."""
    heads = "ratio to textbook", "us per delivery", "events per packet", "compiled"
    print(f"{'case':12}{'receivers':>10}" + "".join(f"{head:>19}" for head in heads))
    for name, row in cases.items():
        for size, cell in row.items():
            print(f"{name:12}{size:>10}" + "".join(f"{value:>19}" for value in cell.values()))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.simulator", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--cases", nargs="+", choices=CASES, metavar="CASE", help=f"only these of {', '.join(CASES)}")
    parser.add_argument("--receivers", nargs="+", type=int, metavar="N", help="only these numbers of receivers")
    parser.add_argument(
        "--compiled",
        type=Path,
        metavar="FOLDER",
        help="a compiled build (default: that of make)",
    )
    options = parser.parse_args()
    names = options.cases or list(CASES)
    sizes = sorted({size for name in names for size in CASES[name].lengths})
    if unknown := sorted(set(options.receivers or ()) - set(sizes)):
        parser.error(f"argument --receivers: no case here has {unknown[0]}; allowed are {', '.join(map(str, sizes))}")
    build = options.compiled or find_build()
    if build is not None:
        check(build)
    cases = measure_cases(names, options.receivers, lambda line: print(line, file=sys.stderr), build)
    everything = options.cases is None and options.receivers is None
    found = measure_all(cases) if everything else {"cases": cases}
    if options.json:
        print(json.dumps(found))
        return
    print_cases(found.pop("cases"))
    for name, value in found.items():
        print(f"{name:20} {value}")


if __name__ == "__main__":
    main()
