"""Measure the long-run share of a bottleneck that NORM with congestion control gets beside a TCP, both in the simulator.

    python -m benchmarks.congestion_share [--rates 1Mbit,10Mbit,100Mbit] [--rtts 5ms,50ms,200ms] [--seconds N] [--write PAGE]

One flow of NORM to one receiver and one TCP send without an end through a drop-tail queue of a bandwidth-delay product, but
at least 15 packets. Goodput is that of the second half of a run, whose length grows with the time that a rate needs to
recover. With `--write` the table goes between its marks on a page; each row is printed to stderr, with its CPU time.
"""

import argparse
import sys
import time
from collections.abc import Iterable, Iterator
from itertools import product
from pathlib import Path
from typing import NamedTuple

from experiments.running.content import Accounted, Extent
from protocols.cross import BulkSource, FlowSink
from protocols.machine import Content, Group
from protocols.norm import NormConfig, NormSender
from protocols.norm.run_reception import NormBatchReceiver
from protocols.tcp import TcpOptions
from sim.network import Network
from tests.emu.tables import write_table
from topologies.generators import Dumbbell
from topologies.units import format_rate, parse_duration, parse_rate

__all__ = ["Share", "main", "measure"]

CONTROLS = ("reno", "cubic")
SEGMENT = 1400
BUFFER = 1 << 25
LEAST_QUEUE = 15


class Share(NamedTuple):
    """Goodput of both flows in bytes per second, and the share of the link that they use together."""

    norm: float
    tcp: float
    used: float

    @property
    def ratio(self) -> float:
        """Goodput of NORM over that of TCP."""
        return self.norm / self.tcp


def measure(rate: float, rtt: float, control: str, seconds: float, seed: int = 1) -> Share:
    """Return the share of a link of so many bytes per second and this round-trip time, over the second half of the run."""
    queue = max(LEAST_QUEUE, round(rate * rtt / SEGMENT))
    spec = {
        "kind": "dumbbell",
        "receivers": 1,
        "pairs": 1,
        "link": {"rate": "10Gbit", "delay": 0.05 * rtt},
        "bottleneck": {"rate": format_rate(rate), "delay": 0.4 * rtt, "queue": queue},
    }
    network = Network(Dumbbell.model_validate(spec).build(), seed=seed, connections=TcpOptions(control=control, buffer=BUFFER))
    receiver, sink = _flows(network, NormConfig(congestion="norm", fair_to=control, grtt=2 * rtt, parity=0, gsize=10))
    network.run(seconds / 2)
    before = _octets(receiver), sink.octets
    network.run(seconds)
    norm, tcp = 2 * (_octets(receiver) - before[0]) / seconds, 2 * (sink.octets - before[1]) / seconds
    return Share(norm, tcp, (norm + tcp) / rate)


def _flows(network: Network, config: NormConfig) -> tuple[NormBatchReceiver, FlowSink]:
    """Start both flows; return what receives them."""
    near, far, group = network.host("sender"), network.host("r1"), Group("239.1.1.1:5000")
    sender, receiver = NormSender(near, config, 1, group, 1), NormBatchReceiver(far, config, 2, group)
    far.run(receiver, lambda event: None, lambda offer: Accounted())
    near.run(sender, lambda event: None)
    near.call(sender.submit, Content(Extent(1 << 40)))
    source, target = network.host("x1"), network.host("y1")
    sink = FlowSink(target, 1, False, True)
    target.run(sink, lambda event: None)
    source.run(BulkSource(source, 1, source.address_of("y1"), SEGMENT, 0.0), lambda event: None)
    return receiver, sink


def _octets(receiver: NormBatchReceiver) -> int:
    return sum(sender.received for sender in receiver.senders()) * SEGMENT


def _length(rate: float, rtt: float) -> float:
    """Return the seconds of a run: a rate that rises by a segment per round trip and round trip is at its share by then."""
    return max(120.0, 4 * rate / 2 / SEGMENT * rtt**2)


def _rows(rates: Iterable[str], rtts: Iterable[str], seconds: float | None) -> Iterator[list[str]]:
    for rate, rtt in product(rates, rtts):
        row = [rate, rtt]
        for control in CONTROLS:
            began, octets, delay = time.process_time(), parse_rate(rate), parse_duration(rtt)
            share = measure(octets, delay, control, seconds or _length(octets, delay))
            row += [f"{8 * share.norm / 1e6:.3g}", f"{8 * share.tcp / 1e6:.3g}", f"{share.ratio:.2f}", f"{share.used:.0%}"]
            print(*row, f"{time.process_time() - began:.0f} s", file=sys.stderr, flush=True)
        yield row


def table(rows: Iterable[list[str]]) -> str:
    """Return the rows as a table of Markdown."""
    head = [f"{what}{control}" for control in CONTROLS for what in ("NORM beside ", "", "NORM / ", "used with ")]
    lines = ["| link | RTT | " + " | ".join(head) + " |", "|---:|---:|" + "---:|" * len(head)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])


def main(arguments: list[str] | None = None) -> None:
    """Measure all combinations."""
    parser = argparse.ArgumentParser(description="Shares of a bottleneck between NORM and TCP in the simulator.")
    parser.add_argument("--rates", default="1Mbit,10Mbit,100Mbit")
    parser.add_argument("--rtts", default="5ms,50ms,200ms")
    parser.add_argument("--seconds", type=float, help="length of each run; by default it grows with rate and round trip")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="write the table into this page")
    options = parser.parse_args(arguments)
    found = table(_rows(options.rates.split(","), options.rtts.split(","), options.seconds))
    write_table(found, "shares", options.write)


if __name__ == "__main__":
    main()
