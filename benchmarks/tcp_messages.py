"""Compare the goodput of messages over TCP, of a relay that publisher and subscriber are connected to, with that in Mininet.

    python -m benchmarks.tcp_messages

Messages of one size, of which the publisher has so many on the way (`window`) that are not accepted yet, over links of 1 Gbit/s
to the relay and one of this rate to the subscriber. Small segments and delayed ACKs decide how fast that is. Then the same over
links of one rate, where each exchange waits for the time that segments take on them: Mininet's token buckets leave it out, its
links with exact rates do not.
"""

import sys
from typing import Any, NamedTuple

from emu.requirements import check_tools
from experiments.running.run import run
from experiments.scenario.scenario import Scenario, parse
from protocols.errors import UnsupportedError

__all__ = ["CASES", "Case", "scenario"]


class Case(NamedTuple):
    """Bytes of a message, messages on the way, and the rates to the subscriber and of the other links in Mbit/s."""

    size: int
    window: int
    rate: int
    others: int = 1000
    nagle: bool = True


CASES = [Case(1400, 64, 50), Case(1400, 2, 20), Case(536, 4, 20), Case(100, 16, 20)]
_EQUAL = [Case(1400, 1, 5, 5), Case(1400, 2, 5, 5), Case(1400, 2, 20, 20), Case(536, 4, 20, 20), Case(100, 16, 20, 20)]
EQUAL = [case._replace(nagle=nagle) for nagle in (True, False) for case in _EQUAL]
"""Links of one rate."""


def scenario(case: Case, rates: str = "any") -> Scenario:
    """Return a session of a publisher, a relay and a subscriber; `rates` are those of `emu` in a scenario."""
    work = {"to": "topic:t", "size": case.size, "rate": "saturated", "at": "500ms", "until": "1500ms", "linger": "1s"}
    links = {"p": case.others, "m": case.others, "r": case.rate}
    written: dict[str, Any] = {
        "name": "relayed",
        "topology": {
            "kind": "graph",
            "nodes": {"p": {}, "s": {"kind": "switch"}, "m": {}, "r": {}},
            "links": [{"ends": ["s", name], "rate": f"{rate}Mbit"} for name, rate in links.items()],
        },
        "protocol": {"name": "relay", "window": case.window, "queue": case.window},
        "connections": {"buffer": "1MB", "nagle": case.nagle},
        "emu": {"rates": rates},
        "nodes": {"m": {"role": "relay"}},
        "workload": [{"kind": "publish", "hosts": ["p"], **work}, {"kind": "subscribe", "hosts": ["r"], "to": "topic:t"}],
        "duration": "20s",
    }
    return parse(written, "relayed")


def main() -> int:
    """Run the program and return its exit code."""
    try:
        check_tools()
        print(f"| message | window | rates | Nagle | simulator | Mininet | Mininet, exact rates |\n{7 * '|---'}|")
        for case in [*CASES, *EQUAL]:
            # Links of 1 Gbit/s in user space would take longer than the segments do.
            worlds = [("sim", "any"), ("emu", "any"), *([("emu", "exact")] if case.others == case.rate else [])]
            found = [run(scenario(case, rates), world).metrics["goodput_mbit_s"] for world, rates in worlds]
            nagle = "yes" if case.nagle else "no"
            what = f"{case.size} B | {case.window} | {case.others}, {case.rate} Mbit/s | {nagle}"
            print(f"| {what} | {' | '.join(f'{goodput:.2f}' for goodput in found)} |", flush=True)
    except UnsupportedError as error:
        sys.stderr.write(f"{error}\n")
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main())
