"""Measure throughput and lateness of a user-space link: packets of NORM at several rates through a link of 10 ms.

    python -m benchmarks.wire [--json] [--rates 10000 20000 30000] [--delay 10ms] [--loss 1%] [--seconds 4]

One host sends to another through a bridge and a user-space link, in packets of 1400 bytes; sender, receiver and link are a
process each. *late* is the time by which a packet leaves the link too late; *CPU* is the link's share of one core. As long as
the link keeps up, every packet is delivered that the channel did not lose.
"""

import argparse
import json
import os
import socket
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from math import inf
from typing import Any

from emu.health import assess
from emu.namespaces import in_network_namespace, run_isolated
from emu.network import EmulatedNetwork
from emu.plan import plan_emulation
from emu.requirements import check_tools
from emu.tap import check_tap
from protocols.errors import UnsupportedError
from protocols.norm.messages import Data, Fti, Origin
from protocols.norm.wire.codec import NormCodec
from topologies.generators import Star

__all__ = ["main", "measure"]

PORT = 6003
SEGMENT, BLOCK = 1364, 64
"""With its header, a segment is a packet of 1400 bytes of UDP payload."""
TICK = 0.001
"""Seconds: the sender sends what is due every millisecond."""
GRACE = 0.2
BUFFER = 64 << 20


def measure(rate: float, delay: str, loss: str, seconds: float) -> dict[str, Any]:
    """Measure one rate, in packets per second."""
    topology = Star.model_validate({"receivers": 1, "link": {"down": {"delay": delay, "loss": loss}}}).build()
    plan = plan_emulation(topology, seed=1, keyed=True)

    def work() -> dict[str, Any]:
        check_tap(plan.unsupported_by_kernel)
        network = EmulatedNetwork(plan, NormCodec)
        total = round(rate * seconds)
        with in_network_namespace(network.pid("r1")):
            receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        # SO_RCVBUFFORCE exceeds the system's limit.
        receiver.setsockopt(socket.SOL_SOCKET, 33, BUFFER)
        receiver.bind((plan.addresses["r1"], PORT))
        receiver.settimeout(seconds + 1)
        sender = os.fork()
        if sender == 0:
            with in_network_namespace(network.pid("sender")):
                transmitter = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            transmitter.connect((plan.addresses["r1"], PORT))
            _send(transmitter, total, rate)
            os._exit(0)
        _raise_priority()
        received, first, last = _receive(receiver)
        os.waitpid(sender, 0)
        statistics = network.collect()
        counts = statistics.counts["s1-r1"]
        span = max(last - first, TICK)
        found = {
            "rate": rate,
            "sent": total,
            "heard": received,
            "passed": received / span,
            **counts,
            **assess(statistics, 0, 0),
        }
        return found | {"cpu": found["cpu_s"] / span}

    result: dict[str, Any] = run_isolated(work)
    return result


def _raise_priority() -> None:
    """Set a real-time priority below that of the link, so that other load of this machine does not affect the measurement."""
    with suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))


def _send(transmitter: socket.socket, total: int, rate: float) -> None:
    """Send source symbols of one object, one after the other."""
    _raise_priority()
    encode = NormCodec().encode
    origin, fti = Origin(1, 1, 100, 4, 4), Fti(5, total * SEGMENT, SEGMENT, BLOCK, 0)
    payload, begin = bytes(SEGMENT), time.monotonic()
    sent = 0
    while sent < total:
        due = min(total, int((time.monotonic() - begin) * rate) + 1)
        for number in range(sent, due):
            block, symbol = divmod(number, BLOCK)
            transmitter.send(encode(Data(origin, number & 0xFFFF, 0, 5, 1, block, symbol, BLOCK, fti, payload, SEGMENT)))
        sent = max(sent, due)
        time.sleep(TICK)


def _receive(receiver: socket.socket) -> tuple[int, float, float]:
    """Count packets until none arrives for a while; return their number and the times of the first and the last."""
    received, first, last = 0, inf, 0.0
    while True:
        try:
            receiver.recv(2048)
        except TimeoutError:
            return received, first, last
        last = time.monotonic()
        if not received:
            first = last
            receiver.settimeout(GRACE)
        received += 1


def run(options: argparse.Namespace, say: Callable[[str], None]) -> list[dict[str, Any]]:
    """Measure all rates."""
    rows = []
    for rate in options.rates:
        row = measure(rate, options.delay, options.loss, options.seconds)
        late = row["lateness"]
        missing = row["sent"] - row["heard"] - row["lost"]
        say(
            f"{rate:8.0f}/s: {row['heard']} of {row['sent']} received, {row['lost']} lost by the channel, {missing} otherwise; "
            f"late {late['p50'] * 1e3:.3f} ms (99 %: {late['p99'] * 1e3:.3f}, most {late['max'] * 1e3:.2f}); "
            f"{row['passed']:.0f}/s came out, CPU {row['cpu']:.0%}; {'; '.join(row['reasons']) or 'healthy'}"
        )
        rows.append(row)
    return rows


def main() -> int:
    """Run the program and return its exit code."""
    parser = argparse.ArgumentParser(description="Measure throughput and lateness of a user-space link.")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--rates", type=float, nargs="+", default=[10_000, 20_000, 30_000], metavar="PACKETS/S")
    parser.add_argument("--delay", default="10ms")
    parser.add_argument("--loss", default="1%")
    parser.add_argument("--seconds", type=float, default=4.0)
    options = parser.parse_args()
    try:
        check_tools()
        rows = run(options, lambda line: print(line, file=sys.stderr, flush=True))
    except UnsupportedError as error:
        print(error, file=sys.stderr)
        return 3
    if options.json:
        print(json.dumps(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
