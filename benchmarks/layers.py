"""Measure what each layer of the fast wing buys: `python -m benchmarks.layers [--json]`.

Microseconds of CPU time per packet delivered to a receiver, one NORM sender and its receivers in a star. Each layer
is added to those before it; all of them give the same run.
"""

import argparse
import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from benchmarks.simulator import fill, star
from benchmarks.yardsticks import Measure, best, timed
from protocols.machine import Machine
from protocols.norm import NormReceiver, NormSender
from protocols.norm.fast import FastNormReceiver, FastNormSender
from sim.network import Network

__all__ = ["main", "measure_layers"]

CASES = ((10, 0.01), (100, 0.01), (1000, 0.01), (1000, 0.0), (10_000, 0.001))
"""Receivers and loss."""
DELIVERIES = 200_000
"""Packets delivered in one run, about."""


class PerPacketSender(FastNormSender):
    """A fast sender whose packets are events of their own: it plans no bursts."""

    __slots__ = ()
    plans_bursts = False


@dataclass(frozen=True)
class Layer:
    """An engine and the machines that run in it."""

    name: str
    engine: str
    sender: type[NormSender]
    receiver: Callable[..., Machine]


LAYERS = (
    Layer("strict engine, plain machines", "strict", NormSender, NormReceiver),
    Layer("grouped delivery", "auto", NormSender, NormReceiver),
    Layer("lockstep groups", "auto", PerPacketSender, FastNormReceiver),
    Layer("lookahead", "auto", FastNormSender, FastNormReceiver),
)


def measure_layer(layer: Layer, loss: float, receivers: int, packets: int) -> Measure:
    """Measure one run of a layer."""
    topology = star(receivers, loss)
    network = Network(topology, seed=1, engine=layer.engine)
    hosts = [network.host(name) for name in topology.hosts]
    outcome = fill(hosts, packets, sender_class=layer.sender, receiver_class=layer.receiver)
    cpu = timed(lambda: network.run(1e6, lambda: outcome.flushed))
    assert outcome.received == receivers
    return Measure(cpu, network.deliveries, network.events)


def measure_layers() -> dict[str, dict[str, float]]:
    """Return microseconds per delivery by layer and case."""
    found: dict[str, dict[str, float]] = {}
    for receivers, loss in CASES:
        packets = max(DELIVERIES // receivers, 20)
        for layer in LAYERS:
            measured = best(partial(measure_layer, layer, loss), receivers, packets)
            found.setdefault(layer.name, {})[f"{receivers}, {loss:.1%}"] = round(measured.each * 1e6, 3)
    return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Measure what each layer of the fast wing buys.")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    as_json = parser.parse_args().json
    found = measure_layers()
    if as_json:
        print(json.dumps(found))
        return
    print(f"{'us per delivery':32}" + "".join(f"{case:>16}" for case in next(iter(found.values()))))
    for name, row in found.items():
        print(f"{name:32}" + "".join(f"{value:16.2f}" for value in row.values()))


if __name__ == "__main__":
    main()
