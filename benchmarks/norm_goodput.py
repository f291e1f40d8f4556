"""Compare the goodput of this project's NORM and NRL's libnorm1, between two network namespaces of this machine.

    python -m benchmarks.norm_goodput [--json] [--size 64MB] [--rates 1200Mbit 1600Mbit 2000Mbit 2400Mbit]

One data object goes from one sender to one receiver over a bridge, without loss, in segments of 1400 bytes; each
implementation with itself, at each rate, and the highest goodput counts. Time ends at the receiver's last byte; it starts at
the receiver's first event for NRL, and when the sender is given the object, which is earlier, for this project. Without parity
("plain") and with RS (64, 16), where the parity is never needed ("rs64_16").
"""

import argparse
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from emu.launch import emulate
from emu.namespaces import run_isolated
from emu.peers.libnorm import load
from emu.requirements import check_tools
from experiments.running.program import Job, Node, ReceiverProgram, SenderProgram
from protocols.errors import UnsupportedError
from protocols.machine import Content, Group, Offer
from protocols.norm import NormConfig
from protocols.registry import protocol
from tests.emu.lab import NRL, Lab
from topologies.generators import Star
from topologies.units import format_rate, parse_rate, parse_size

__all__ = ["main", "measure"]

PORT = 6003
GROUP = Group(f"239.7.7.9:{PORT}")
CODES = {"plain": 0, "rs64_16": 16}
TOPOLOGY = Star(receivers=1).build()
GRTT, GRTT_MAX, BACKOFF, GSIZE = 0.005, 0.05, 4, 10
LONGEST = 20.0


class Memory:
    """Content in memory: a source and a sink."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._data = bytearray(size)
        self._view = memoryview(self._data)

    def read(self, offset: int, n: int) -> bytes:
        """Return `n` bytes from `offset`."""
        return bytes(self._view[offset : offset + n])

    def write(self, offset: int, data: bytes | memoryview) -> None:
        """Store a segment at `offset`."""
        self._view[offset : offset + len(data)] = data

    def commit(self, info: bytes) -> None:
        """Do nothing."""

    def abort(self) -> None:
        """Do nothing."""


@dataclass(frozen=True, slots=True)
class Measured:
    """Goodput in bytes per second at the configured rate (bytes per second), and CPU seconds of sender and receiver.

    The goodput of an incomplete transfer is 0: a rate may be too high for this machine.
    """

    rate: float
    goodput: float
    cpu_sender: float
    cpu_receiver: float


def ours(size: int, rate: float, parity: int) -> Measured:
    """Run this project's sender and receiver, each in its own process."""
    norm = protocol("norm")
    config = NormConfig(
        rate=rate, parity=parity, grtt=GRTT, grtt_max=GRTT_MAX, backoff=BACKOFF, gsize=GSIZE, buffer=2 * size, robust=20
    )
    content = Content(Memory(size), b"", is_file=False)
    run = emulate(
        TOPOLOGY,
        {
            "sender": SenderProgram(Node(norm, config, 1, GROUP), [Job(0.0, content)]),
            "r1": ReceiverProgram(Node(norm, config, 2, GROUP), sink, expected=1),
        },
        codec=norm.codec,
        port=PORT,
        duration=LONGEST,
        over=lambda finished: "r1" in finished,
        seed=1,
    )
    sender, receiver = run.nodes["sender"], run.nodes["r1"]
    result = receiver.result or {}
    # The object is submitted at time 0 of the clock of both hosts.
    goodput = size / result["last_at"] if result.get("received") else 0.0
    return Measured(rate, goodput, sender.cpu, receiver.cpu)


def sink(offer: Offer) -> Memory:
    """Return the sink of a received object."""
    return Memory(offer.size)


def nrl(size: int, rate: float, parity: int) -> Measured:
    """Run libnorm1's sender and receiver, each in its own process."""

    def work() -> list[dict[str, Any]]:
        lab = Lab(TOPOLOGY)
        common = ["--port", str(PORT), "--addr", GROUP.name.split(":")[0], "--timeout", str(LONGEST), "--iface"]
        receiving = ["--expect", "1", "--no-hash", "--linger", "0"]
        receiver = lab.start("r1", [*NRL, "recv", *common, lab.device("r1"), *receiving, "--buffer", str(2 * size)])
        lab.await_join("r1", GROUP.name.split(":")[0])
        timing = ["--grtt", str(GRTT), "--grtt-max", str(GRTT_MAX), "--backoff", str(BACKOFF), "--gsize", str(GSIZE)]
        arguments = ["--sizes", str(size), "--rate", str(rate * 8), "--parity", str(parity), "--robust", "20", *timing]
        sender = lab.start("sender", [*NRL, "send", *common, lab.device("sender"), *arguments])
        return [lab.end(receiver, 2 * LONGEST)[-1], lab.end(sender, 2 * LONGEST)[-1]]

    receiver, sender = run_isolated(work)
    goodput = receiver["bytes"] / receiver["seconds"] if receiver["ok"] else 0.0
    return Measured(rate, goodput, sender["cpu_tx"], receiver["cpu_rx"])


RUNS: dict[str, Callable[[int, float, int], Measured]] = {"ours": ours, "nrl": nrl}


def measure(size: int, rates: list[float], say: Callable[[str], None]) -> dict[str, Any]:
    """Measure both implementations at all rates; goodputs in Mbit/s."""
    ratios: dict[str, dict[str, float]] = {}
    rows = []
    for name, parity in CODES.items():
        best = dict.fromkeys(RUNS, 0.0)
        # In turns, so that other load of this machine affects both.
        for rate in rates:
            for who, run in RUNS.items():
                result = run(size, rate, parity)
                goodput = round(result.goodput * 8e-6, 1)
                best[who] = max(best[who], goodput)
                row = {"who": who, "code": name, "rate": rate * 8e-6, "goodput": goodput}
                rows.append(row | {"cpu_sender": result.cpu_sender, "cpu_receiver": result.cpu_receiver})
                cpu = f"CPU {result.cpu_sender:.2f} + {result.cpu_receiver:.2f} s"
                say(f"{name:8} {who:5} at {format_rate(rate):>8}: {goodput:7.1f} Mbit/s  {cpu}")
        if not best["nrl"]:
            raise SystemExit("libnorm1 completed no transfer: try lower --rates")
        ratios[name] = {"loss0_rx1": round(best["ours"] / best["nrl"], 3)}
        say(f"{name:8} ratio {ratios[name]['loss0_rx1']:.2f}")
    return {"ratio_nrl": ratios, "size": size, "runs": rows}


def main() -> int:
    """Run the program and return its exit code."""
    parser = argparse.ArgumentParser(description="Compare the goodput of this project's NORM and NRL's.")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--size", type=parse_size, default=64_000_000)
    parser.add_argument("--rates", type=parse_rate, nargs="+", default=[150e6, 200e6, 250e6, 300e6])
    options = parser.parse_args()
    try:
        load()
        check_tools()
    except UnsupportedError as error:
        print(error, file=sys.stderr)
        return 3
    result = measure(options.size, options.rates, lambda line: print(line, file=sys.stderr, flush=True))
    if options.json:
        print(json.dumps(result))
    return 0


if __name__ == "__main__":
    sys.exit(main())
