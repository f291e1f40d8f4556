"""Compare the goodput of messages over TCP, of a relay that publisher and subscriber are connected to, with that in Mininet.

    python -m benchmarks.tcp_messages

Messages of one size, of which the publisher has so many on the way (`window`) that are not accepted yet, over links of 1 Gbit/s
to the relay and one of this rate to the subscriber. Small segments and delayed ACKs decide how fast that is.
"""

import sys
from typing import Any, NamedTuple

from emu.requirements import check_tools
from experiments.running.run import run
from experiments.scenario.scenario import Scenario, parse
from protocols.errors import UnsupportedError

__all__ = ["CASES", "Case", "scenario"]


class Case(NamedTuple):
    """Bytes of a message, messages on the way, and the rate to the subscriber in Mbit/s."""

    size: int
    window: int
    rate: int


CASES = [Case(1400, 64, 50), Case(1400, 2, 20), Case(536, 4, 20), Case(100, 16, 20)]


def scenario(case: Case) -> Scenario:
    """Return a session of a publisher, a relay and a subscriber."""
    work = {"to": "topic:t", "size": case.size, "rate": "saturated", "at": "500ms", "until": "1500ms", "linger": "1s"}
    rates = {"p": "1Gbit", "m": "1Gbit", "r": f"{case.rate}Mbit"}
    written: dict[str, Any] = {
        "name": "relayed",
        "topology": {
            "kind": "graph",
            "nodes": {"p": {}, "s": {"kind": "switch"}, "m": {}, "r": {}},
            "links": [{"ends": ["s", name], "rate": rate} for name, rate in rates.items()],
        },
        "protocol": {"name": "relay", "window": case.window, "queue": case.window},
        "connections": {"buffer": "1MB"},
        "nodes": {"m": {"role": "relay"}},
        "workload": [{"kind": "publish", "hosts": ["p"], **work}, {"kind": "subscribe", "hosts": ["r"], "to": "topic:t"}],
        "duration": "20s",
    }
    return parse(written, "relayed")


def main() -> int:
    """Run the program and return its exit code."""
    try:
        check_tools()
        print("| message | window | rate | simulator | Mininet |\n|---|---|---|---|---|")
        for case in CASES:
            found = [run(scenario(case), world).metrics["goodput_mbit_s"] for world in ("sim", "emu")]
            what = f"{case.size} B | {case.window} | {case.rate} Mbit/s"
            print(f"| {what} | {' | '.join(f'{goodput:.2f}' for goodput in found)} |", flush=True)
    except UnsupportedError as error:
        sys.stderr.write(f"{error}\n")
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main())
