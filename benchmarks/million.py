"""Measure a session with a million receivers: `python -m benchmarks.million [--receivers N] [--parity N] [--json]`.

A star with 0.1 % independent loss on the last hops, one NORM sender, an object of 100 packets, until the sender has flushed.
"""

import argparse
import json
import resource
from dataclasses import replace
from typing import Any

from benchmarks.simulator import DELAY, RATE, config_for, fill
from benchmarks.yardsticks import timed
from sim.network import Network
from topologies.generators import Star

__all__ = ["main", "measure"]

LOSS = 0.001
MILLION = 1_000_000


def measure(receivers: int, packets: int = 100, parity: int = 16) -> dict[str, Any]:
    """Return CPU seconds of the run, SimPy events, and the peak memory of the process in GB (1e9 bytes).

    Blocks have `parity` parity symbols; 0: repairs are plain retransmissions.
    """
    link = {"rate": RATE * 8, "delay": DELAY}
    topology = Star.model_validate(
        {"kind": "star", "receivers": receivers, "trunk": link, "link": {**link, "down": {"loss": LOSS}}}
    ).build()
    network = Network(topology, seed=1)
    config = replace(config_for(receivers), parity=parity)
    outcome = fill([network.host(name) for name in topology.hosts], packets, config)
    cpu = timed(lambda: network.run(1e6, lambda: outcome.flushed))
    assert outcome.received == receivers
    # Linux reports the peak in KiB.
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {
        "receivers": receivers,
        "packets": packets,
        "parity": parity,
        "cpu": round(cpu, 1),
        "events": network.events,
        "deliveries": network.deliveries,
        "peak_gb": round(peak / 1e9, 2),
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.million", description=__doc__)
    parser.add_argument("--receivers", type=int, default=MILLION, help="number of receivers (default 1000000)")
    parser.add_argument("--parity", type=int, default=16, help="parity symbols of a block of 64 (default 16)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args()
    found = measure(options.receivers, parity=options.parity)
    if options.json:
        print(json.dumps(found))
        return
    for name, value in found.items():
        print(f"{name:20} {value}")


if __name__ == "__main__":
    main()
