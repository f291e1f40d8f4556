"""Compare the goodput of simulated TCP with that of the kernel's, over the same links in the simulator and in Mininet.

    python -m benchmarks.tcp_goodput --json
    python -m benchmarks.tcp_goodput --write docs/fidelity.md

Flows go side by side, each from a host of its own over a link of its own, and always have something to send. Goodput is what
arrived from the beginning of the run to its end.
"""

import argparse
import json
import sys
from collections.abc import Iterator
from itertools import product
from math import hypot, sqrt
from pathlib import Path
from statistics import fmean, stdev
from typing import Any, ClassVar, NamedTuple

from emu.launch import emulate
from emu.requirements import check_tools
from protocols.connection import Connection
from protocols.errors import UnsupportedError, WireError
from protocols.events import Event
from protocols.hosting import PortsHost, Program
from protocols.machine import Address, Machine, Message, Packet, Ports
from protocols.tcp.congestion import CONTROLS
from protocols.tcp.options import TcpOptions
from sim.network import Network
from topologies.inline import Inline
from topologies.spec import Topology

__all__ = ["main"]

PORT = 6003
SIZE = 16_000
BUFFER = 4_000_000
QUEUE = 200
_TITLE = "## TCP"
_TEXT = """\
`python -m benchmarks.tcp_goodput --write docs/fidelity.md` measures the goodput (Mbit/s) of flows of the simulator's TCP and
of the kernel's over a link of this rate and delay, with a queue of 200 packets and buffers of 4 MB. Segments are lost at
random, but not the same ones in both worlds, so runs with loss are repeated with other seeds; +- is the standard error of the
difference. Without loss a difference of 10 % is allowed, with loss 20 %.

`reno` and `cubic` are those of RFC 5681 and RFC 9438, `reno-linux` and `cubic-linux` what the kernel makes of them. They
differ where losses are but a few short round trips apart (100 Mbit/s, 2 ms, 1 %: 100 segments, 8 round trips, 40 ms). The
kernel computes the growth of CUBIC again when the window has changed or after 28 ms (HZ / 32), so behind each loss the window
stands still for several round trips; and its estimate of Reno's window grows by 0.53 segments per round trip for ever, where
RFC 9438 takes 1 after the window of the last loss is reached. Its Reno halves whole segments, and forgets with a loss the
segments that were acknowledged since the window grew. What is left is the round trip: 4.8 to 4.9 ms in Mininet and 4.6 to 4.7
in the simulator, since the process that reads the connection does so 0.1 to 0.2 ms late and the kernel acknowledges then. It is
longer where the machine is busy with other work, as it was here.
"""
LATE, ATTEMPTS = 0.005, 3
"""Seconds by which a link may be late in a run that counts, and runs until the least late one counts: a stop of 40 ms fills a
queue of 200 packets."""
ALLOWED = {0.0: 0.10, 0.01: 0.20}
"""Difference allowed by loss rate."""


class Case(NamedTuple):
    """Congestion control, rate in bits per second, delay of the link in seconds, and loss rate."""

    control: str
    rate: float
    delay: float
    loss: float

    @property
    def runs(self) -> int:
        """Number of runs, each with a seed of its own: several where chance decides."""
        return 4 if self.loss else 1

    @property
    def kernel(self) -> "Case":
        """The case that the kernel knows."""
        return self._replace(control=TcpOptions(self.control).kernel_control)

    @property
    def flows(self) -> int:
        """Number of flows: the fewer packets are lost in a run, the more of them."""
        return 8 if self.loss and self.delay > 0.01 else 2 if self.loss else 1

    @property
    def seconds(self) -> float:
        """Length of a run."""
        return 20.0 if self.loss or self.delay > 0.01 else 5.0


class _Content(Message):
    """A message of SIZE bytes."""

    kind: ClassVar[str] = "content"
    __slots__ = ()


class _Codec:
    def encode(self, message: Message) -> bytes:
        return bytes(SIZE)

    def decode(self, data: bytes) -> Message:
        if len(data) != SIZE:
            raise WireError(f"{len(data)} bytes")
        return _Content()


class _Machine(Machine):
    """Fills a connection with `peer`, or receives what others send, and counts it."""

    def __init__(self, ports: Ports, peer: Address | None) -> None:
        super().__init__(ports)
        self._peer = peer
        self.received = 0

    def start(self, now: float) -> None:
        if self._peer is None:
            self.ports.listen()
        else:
            self.ports.connect(self._peer)

    def opened(self, connection: Connection, now: float) -> None:
        if self._peer is not None:
            self.drained(connection, now)

    def drained(self, connection: Connection, now: float) -> None:
        while not self.ports.send(Packet(_Content(), SIZE, connection)):
            pass

    def receive(self, message: Message, source: Address, to: Address, now: float) -> None:
        self.received += 1

    def wake(self, now: float) -> None:
        """Do nothing: no deadline is set."""

    def counts(self) -> dict[str, int]:
        return {"received": self.received}


class _Program:
    """One end of a flow, in either world; `peer` is the name of the host to send to, None: it receives."""

    def __init__(self, peer: str | None) -> None:
        self._peer = peer
        self._machine: _Machine | None = None

    def start(self, host: PortsHost) -> None:
        self._machine = _Machine(host, None if self._peer is None else host.address_of(self._peer))
        host.run(self._machine, _ignore)

    def finished(self) -> bool:
        return False

    def result(self) -> dict[str, Any]:
        assert self._machine is not None
        return {"octets": self._machine.received * SIZE}


def _ignore(event: Event) -> None:
    """Ignore an event."""


def _topology(case: Case) -> Topology:
    """Return hosts a1, a2, ... and b1, b2, ... on a switch; links to the latter have the attributes."""
    nodes: dict[str, Any] = {"s": {"kind": "switch"}}
    links: list[dict[str, Any]] = []
    for flow in range(1, case.flows + 1):
        nodes |= {f"a{flow}": {}, f"b{flow}": {}}
        link = {"rate": case.rate, "delay": case.delay, "queue": QUEUE, "down": {"loss": case.loss}}
        links += [{"ends": [f"a{flow}", "s"]}, {"ends": ["s", f"b{flow}"], **link}]
    return Inline.model_validate({"nodes": nodes, "links": links}).build()


def _programs(case: Case) -> dict[str, Program]:
    made: dict[str, Program] = {}
    for flow in range(1, case.flows + 1):
        made |= {f"a{flow}": _Program(f"b{flow}"), f"b{flow}": _Program(None)}
    return made


def _goodput(case: Case, results: dict[str, Any]) -> float:
    """Return the mean goodput of the flows in Mbit/s."""
    octets = sum(int(result["octets"]) for result in results.values())
    return octets * 8 / case.seconds / case.flows / 1e6


def simulated(case: Case, seed: int) -> float:
    """Return the goodput in the simulator in Mbit/s."""
    options = TcpOptions(case.control, buffer=BUFFER)
    network = Network(_topology(case), seed=seed, connections=options)
    made = _programs(case)
    for name, program in made.items():
        program.start(network.host(name))
    network.run(case.seconds)
    return _goodput(case, {name: program.result() for name, program in made.items()})


def emulated(case: Case, seed: int) -> float:
    """Return the goodput in Mininet in Mbit/s, of the first run whose links were never late, or of the one that was least."""
    found: list[tuple[float, float]] = []
    while len(found) < ATTEMPTS and not any(late <= LATE for late, _ in found):
        found.append(_emulated(case, seed))
    return min(found)[1]


def _emulated(case: Case, seed: int) -> tuple[float, float]:
    """Return by how many seconds a link was late at most, and the goodput."""
    run = emulate(
        _topology(case),
        _programs(case),
        codec=_Codec,
        port=PORT,
        duration=case.seconds,
        over=lambda finished: False,
        seed=seed,
        tcp=TcpOptions(case.control, buffer=BUFFER),
    )
    errors = [node.error for node in run.nodes.values() if node.error is not None]
    if errors:
        raise UnsupportedError(errors[0])
    return run.health["lateness"]["max"], _goodput(case, {name: node.result for name, node in run.nodes.items()})


def measure(cases: Iterator[Case]) -> Iterator[dict[str, Any]]:
    """Yield a row of each case: what it is, and the goodput in both worlds."""
    measured: dict[Case, list[float]] = {}
    for case in cases:
        seeds = range(1, case.runs + 1)
        expected = [simulated(case, seed) for seed in seeds]
        if case.kernel not in measured:
            measured[case.kernel] = [emulated(case.kernel, seed) for seed in seeds]
        found = measured[case.kernel]
        difference = fmean(found) / fmean(expected) - 1
        error = hypot(_relative_error(expected), _relative_error(found)) * (1 + difference)
        yield {
            **case._asdict(),
            "sim": round(fmean(expected), 2),
            "kernel": round(fmean(found), 2),
            "differs": round(difference, 4),
            "error": round(error, 4),
            "agrees": abs(difference) <= ALLOWED[case.loss],
        }


def _relative_error(values: list[float]) -> float:
    """Return the standard error of a mean as a fraction of it; 0 for one value."""
    return stdev(values) / sqrt(len(values)) / fmean(values) if len(values) > 1 else 0.0


def main() -> int:
    """Run the program and return its exit code."""
    parser = argparse.ArgumentParser(description="Compare simulated TCP with the kernel's.")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="write the table into a page")
    parser.add_argument("--controls", nargs="+", default=["reno", "reno-linux", "cubic", "cubic-linux"], choices=[*CONTROLS])
    parser.add_argument("--rates", type=float, nargs="+", default=[10e6, 100e6], metavar="BIT/S")
    parser.add_argument("--delays", type=float, nargs="+", default=[0.002, 0.05], metavar="SECONDS")
    parser.add_argument("--losses", type=float, nargs="+", default=[0.0, 0.01], choices=[*ALLOWED])
    options = parser.parse_args()
    cases = (Case(*parts) for parts in product(options.controls, options.rates, options.delays, options.losses))
    rows = []
    try:
        check_tools()
        for row in measure(cases):
            rows.append(row)
            sys.stderr.write(_line(row) + "\n")
    except UnsupportedError as error:
        sys.stderr.write(f"{error}\n")
        return 3
    if options.json:
        sys.stdout.write(json.dumps(rows) + "\n")
    if options.write is not None:
        _write(options.write, rows)
    return 0 if all(row["agrees"] for row in rows) else 1


def _line(row: dict[str, Any]) -> str:
    what = f"{row['control']} | {row['rate'] / 1e6:g} Mbit/s | {row['delay'] * 1e3:g} ms | {row['loss']:.0%}"
    verdict = "agrees" if row["agrees"] else "differs"
    error = f" +- {row['error']:.1%}" if row["error"] else ""
    return f"| {what} | {row['sim']:.2f} | {row['kernel']:.2f} | {row['differs']:+.1%}{error} | {verdict} |"


def _write(page: Path, rows: list[dict[str, Any]]) -> None:
    """Write the last section of a page, in place of the one that is there."""
    head = "| control | rate | delay | loss | simulator | kernel | difference | verdict |\n|---|---|---|---|---|---|---|---|"
    before = page.read_text().partition(_TITLE)[0].rstrip()
    page.write_text("\n".join([before, "", _TITLE, "", _TEXT, head, *map(_line, rows), ""]))


if __name__ == "__main__":
    sys.exit(main())
