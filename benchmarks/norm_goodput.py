"""Compare the goodput of this project's NORM and NRL's libnorm1, from one sender to 1 or 4 receivers, with and without loss.

    python -m benchmarks.norm_goodput [--json] [--codes plain rs64_16] [--cases loss0_rx1 loss1_rx1 loss0_rx4 loss1_rx4]
        [--size 64MB] [--rates 600Mbit 1000Mbit 1600Mbit 2600Mbit] [--repeat 1]

One data object goes from memory to memory over a bridge, in segments of 1400 bytes; each implementation with itself, both as
programs with the same options (`emu.peers.nrl_norm`, `benchmarks.norm_node`), in turns, at each rate, and the highest goodput
of each counts. Nodes are network namespaces. Time is from when the sender is given the object to the receiver's last byte,
and of several receivers the slowest counts; the start of programs and the hashes that prove the content are not in it.

`loss1`: the kernel drops 1 % of the packets to each receiver, independently, at the port of the switch (a BPF filter of
tc(8) draws a random number for each packet). For that the sender's device segments what it is given in batches, as a network
card does, and the receivers' devices coalesce packets that arrive together (GRO), as network cards do. `loss0`: batches pass
the virtual network as they are. Both implementations run in the same network.
"""

import argparse
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.command import parser_of, run_benchmark
from emu.namespaces import run_isolated
from emu.node import raise_priority
from emu.peers.libnorm import load
from emu.requirements import LOSS, check_kernel, check_tools, run
from tests.emu.lab import NRL, Lab
from topologies.generators import Star
from topologies.units import format_rate, parse_rate, parse_size

__all__ = ["main", "measure"]

PORT = 6003
ADDRESS = "239.7.7.9"
CODES = {"plain": 0, "rs64_16": 16}
CASES = {"loss0_rx1": (0.0, 1), "loss1_rx1": (0.01, 1), "loss0_rx4": (0.0, 4), "loss1_rx4": (0.01, 4)}
"""Probability of loss and number of receivers."""
PROGRAMS = {"ours": [sys.executable, "-m", "benchmarks.norm_node"], "nrl": NRL}
TIMING = ["--grtt", "0.005", "--grtt-max", "0.05", "--backoff", "4", "--gsize", "10", "--robust", "20"]
LONGEST = 30.0
RATES = ("600Mbit", "1000Mbit", "1600Mbit", "2600Mbit")


@dataclass(frozen=True, slots=True)
class Measured:
    """Goodput in bytes per second, and CPU seconds of the sender and of all receivers.

    The goodput of a transfer that is incomplete somewhere is 0: a rate may be too high for this machine.
    """

    goodput: float
    cpu_sender: float
    cpu_receivers: float
    overflows: int
    """Packets lost at all receivers because their socket buffers were full."""


def transfer(who: str, size: int, rate: float, parity: int, loss: float, receivers: int) -> Measured:
    """Run a sender and its receivers, each in its own process. Raises AssertionError for wrong content."""
    names = [f"r{number}" for number in range(1, receivers + 1)]

    def work() -> dict[str, Any]:
        lab = Lab(Star(receivers=receivers).build())
        if loss:
            lose(lab, names, loss)

        def start(host: str, role: str, *options: str) -> Any:
            common = [role, "--addr", ADDRESS, "--port", str(PORT), "--iface", lab.device(host), "--timeout", str(LONGEST)]
            return lab.start(host, [*PROGRAMS[who], *common, *options])

        waiting = [
            start(name, "recv", "--node", str(number), "--expect", "1", "--buffer", str(2 * size))
            for number, name in enumerate(names, 2)
        ]
        for name in names:
            lab.await_join(name, ADDRESS)
        sender = start("sender", "send", "--sizes", str(size), "--rate", str(rate * 8), "--parity", str(parity), *TIMING)
        received = [lab.end(receiver, 2 * LONGEST) for receiver in waiting]
        overflows = sum(receive_errors(lab.network.pid(name)) for name in names)
        return {"sent": lab.end(sender, 2 * LONGEST), "received": received, "overflows": overflows}

    return result_of(size=size, **run_isolated(work))


def result_of(size: int, sent: list[dict[str, Any]], received: list[list[dict[str, Any]]], overflows: int) -> Measured:
    """Return the goodput of the slowest receiver, from the output of the programs."""
    began, digest = next((line["t"], line["sha256"]) for line in sent if line["event"] == "TX_OBJECT")
    complete = [line["sha256"] for lines in received for line in lines if line["event"] == "RX_OBJECT_COMPLETED"]
    assert all(found == digest for found in complete), "a receiver has other content than the sender"
    slowest = max(lines[-1]["at"] for lines in received)
    goodput = size / (slowest - began) if len(complete) == len(received) else 0.0
    return Measured(goodput, sent[-1]["cpu_tx"], sum(lines[-1]["cpu_rx"] for lines in received), overflows)


def receive_errors(pid: int) -> int:
    """Return the packets for which the receive buffers in the network namespace of a process had no room."""
    names, values = [line.split() for line in Path(f"/proc/{pid}/net/snmp").read_text().splitlines() if line.startswith("Udp:")]
    return int(values[names.index("RcvbufErrors")])


def lose(lab: Lab, receivers: list[str], loss: float) -> None:
    """Drop packets at the switch's ports to the receivers; segment at the sender's device and coalesce at the receivers'."""
    run(f"ethtool -K {lab.device('sender')} tx-udp-segmentation off", pid=lab.network.pid("sender"))
    code = LOSS.format(threshold=round(loss * 2**32))
    for name in receivers:
        port, pid = lab.network.ends("s1", name)[0]
        run(f"tc qdisc add dev {port} clsact && tc filter add dev {port} egress protocol ip bpf da bytecode '{code}'", pid=pid)
        # veth(4) coalesces what comes from a device that segments everything itself.
        run(f"ethtool -K {port} tso off", pid=pid)
        run(f"ethtool -K {lab.device(name)} gro on", pid=lab.network.pid(name))


def measure(options: argparse.Namespace, say: Callable[[str], None]) -> dict[str, Any]:
    """Measure all cases with both implementations; goodputs in Mbit/s."""
    ratios: dict[str, dict[str, float]] = {code: {} for code in options.codes}
    rows: list[dict[str, Any]] = []
    for code in options.codes:
        for case in options.cases:
            found = measure_case(options, code, case, say)
            rows += found
            best = {who: max(row["goodput"] for row in found if row["who"] == who) for who in PROGRAMS}
            if not best["nrl"]:
                raise SystemExit("libnorm1 completed no transfer: try lower --rates")
            ratios[code][case] = round(best["ours"] / best["nrl"], 3)
            say(f"{code:8} {case} ratio {ratios[code][case]:.2f}  ({best['ours']:.0f} / {best['nrl']:.0f} Mbit/s)")
    return {"ratio_nrl": ratios, "size": options.size, "runs": rows}


def measure_case(options: argparse.Namespace, code: str, case: str, say: Callable[[str], None]) -> list[dict[str, Any]]:
    """Measure one case at all rates: in turns, so that other load of this machine affects both."""
    rows = []
    for rate in options.rates * options.repeat:
        for who in PROGRAMS:
            result = transfer(who, options.size, rate, CODES[code], *CASES[case])
            goodput = round(result.goodput * 8e-6, 1)
            found = asdict(result) | {"goodput": goodput, "cpu_receivers": round(result.cpu_receivers, 4)}
            rows.append({"who": who, "code": code, "case": case, "rate": rate * 8e-6, **found})
            used = f"CPU {result.cpu_sender:.2f} + {result.cpu_receivers:.2f} s, overflows {result.overflows}"
            say(f"{code:8} {case} {who:5} at {format_rate(rate):>8}: {goodput:7.1f} Mbit/s  {used}")
    return rows


def main() -> int:
    """Run the program and return its exit code."""
    parser = parser_of("Compare the goodput of this project's NORM and NRL's.")
    parser.add_argument("--codes", nargs="+", choices=CODES, default=list(CODES))
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--size", type=parse_size, default=64_000_000)
    parser.add_argument("--rates", type=parse_rate, nargs="+", default=[parse_rate(rate) for rate in RATES])
    parser.add_argument("--repeat", type=int, default=1, help="times each rate is measured")
    return run_benchmark(parser, _check, measure)


def _check() -> None:
    load()
    check_tools()
    run_isolated(lambda: check_kernel(("loss",)))
    # Programs inherit the priority.
    raise_priority()


if __name__ == "__main__":
    sys.exit(main())
