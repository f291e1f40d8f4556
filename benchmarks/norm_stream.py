"""Compare streams of this project's NORM and of NRL's libnorm1, from one sender to one receiver in another network namespace.

    python -m benchmarks.norm_stream [--json] [--cases messages_100 writes_64k] [--code plain] [--size 32MB]
        [--rates 300Mbit 600Mbit 1000Mbit 1600Mbit 2600Mbit] [--repeat 1]

`messages_100`: messages of 100 bytes, each with its boundary marked, and nothing flushed; `writes_64k`: writes of 64 kB. Both
implementations are programs with the same options in the same network (`emu.peers.nrl_norm`, `benchmarks.norm_node`), in turns,
at each rate, and the highest goodput of each counts. With a buffer of 16 MB a stream waits where it is faster than its repairs.
Beside them the goodput of a data object of this project at the same rates is measured, to which `of_data` relates the stream.
Time is from when the sender begins to write to the receiver's last byte; hashes prove the content and are not in it.
"""

import argparse
import sys
from collections.abc import Callable
from typing import Any

from benchmarks.command import parser_of, run_benchmark
from benchmarks.norm_goodput import CODES, PROGRAMS, TIMING, receive_errors, result_of
from emu.namespaces import run_isolated
from emu.node import raise_priority
from emu.peers.libnorm import load
from emu.requirements import check_tools
from tests.emu.lab import Lab
from topologies.generators import Star
from topologies.units import format_rate, parse_rate, parse_size

__all__ = ["main", "measure"]

ADDRESS, PORT = "239.7.7.10", 6003
CASES = {"messages_100": ["--kind", "stream", "--message", "100"], "writes_64k": ["--kind", "stream", "--message", "64000"]}
DATA = ["--kind", "data"]
RATES = ("300Mbit", "600Mbit", "1000Mbit", "1600Mbit", "2600Mbit")
BUFFER = 16 << 20
LONGEST = 20.0


def transfer(who: str, options: list[str], size: int, rate: float, parity: int) -> dict[str, float]:
    """Send once; return the goodput in bytes per second and CPU seconds. Raises AssertionError for wrong content."""

    def work() -> dict[str, Any]:
        lab = Lab(Star(receivers=1).build())

        def start(host: str, role: str, *more: str) -> Any:
            common = [role, "--addr", ADDRESS, "--port", str(PORT), "--iface", lab.device(host), "--timeout", str(LONGEST)]
            return lab.start(host, [*PROGRAMS[who], *common, *more])

        receiver = start("r1", "recv", "--node", "2", "--expect", "1", "--buffer", str(2 * size))
        lab.await_join("r1", ADDRESS)
        what = [*options, "--sizes", str(size), "--stream-buffer", str(BUFFER)]
        sender = start("sender", "send", *what, "--rate", str(rate * 8), "--parity", str(parity), *TIMING)
        received = lab.end(receiver, 2 * LONGEST)
        overflows = receive_errors(lab.network.pid("r1"))
        return {"sent": lab.end(sender, 2 * LONGEST), "received": [received], "overflows": overflows}

    found = result_of(size=size, **run_isolated(work))
    return {"goodput": found.goodput, "cpu_sender": found.cpu_sender, "cpu_receiver": found.cpu_receivers}


def measure(options: argparse.Namespace, say: Callable[[str], None]) -> dict[str, Any]:
    """Measure all cases; goodputs in Mbit/s, messages in 1/s."""
    rows: list[dict[str, Any]] = []
    columns = [(case, who) for case in options.cases for who in PROGRAMS] + [("data", "ours")]
    parity = CODES[options.code]
    for rate in options.rates * options.repeat:
        for case, who in columns:
            found = transfer(who, CASES.get(case, DATA), options.size, rate, parity)
            row = {"case": case, "who": who, "rate": rate * 8e-6, **found, "goodput": round(found["goodput"] * 8e-6, 1)}
            rows.append(row)
            used = f"CPU {found['cpu_sender']:.2f} + {found['cpu_receiver']:.2f} s"
            say(f"{case:12} {who:5} at {format_rate(rate):>8}: {row['goodput']:7.1f} Mbit/s  {used}")
    best = {column: max(row["goodput"] for row in rows if (row["case"], row["who"]) == column) for column in columns}
    result: dict[str, Any] = {"ratio_nrl": {}, "of_data": {}, "size": options.size, "code": options.code, "runs": rows}
    for case in options.cases:
        ours, theirs = best[case, "ours"], best[case, "nrl"]
        if not theirs:
            raise SystemExit("libnorm1 completed no stream: try lower --rates")
        result["ratio_nrl"][case] = round(ours / theirs, 3)
        result["of_data"][case] = round(ours / best["data", "ours"], 3)
        say(f"{case:12} ratio {ours / theirs:.2f} ({ours:.0f} / {theirs:.0f} Mbit/s), of data {result['of_data'][case]:.2f}")
    if "messages_100" in options.cases:
        result["messages_per_second"] = round(best["messages_100", "ours"] * 1e6 / 800)
        say(f"{result['messages_per_second']} messages of 100 bytes a second")
    return result


def main() -> int:
    """Run the program and return its exit code."""
    parser = parser_of("Compare streams of this project's NORM and NRL's.")
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--code", choices=CODES, default="plain")
    parser.add_argument("--size", type=parse_size, default=32_000_000)
    parser.add_argument("--rates", type=parse_rate, nargs="+", default=[parse_rate(rate) for rate in RATES])
    parser.add_argument("--repeat", type=int, default=1, help="times each rate is measured")
    return run_benchmark(parser, _check, measure)


def _check() -> None:
    load()
    check_tools()
    # Programs inherit the priority.
    raise_priority()


if __name__ == "__main__":
    sys.exit(main())
