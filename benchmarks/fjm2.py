"""Measure FJM2 between network namespaces, beside NORM and brokers of others, and its subscribers in the simulator.

    python -m benchmarks.fjm2 [--json] [--only messages_per_s ...] [--seconds 3]

Each publisher and subscriber is a program in a namespace of its own (`benchmarks.fjm2_node`); links are unlimited unless said.
A publisher offers messages at one rate after the other, and the highest that the slowest subscriber receives counts, from the
first message to the last, with nothing missing, nothing twice and every byte compared. Wall clock; the machine should be idle.

`messages_per_s`: by size in bytes and subscribers. `ratio_norm`: goodput of messages of 64 kB over that of one data object by
NORM (`benchmarks.norm_goodput`) at its best rate. `ratio_mosquitto`, `ratio_activemq`: messages per second over those of a
broker on a third host; mosquitto's publisher and subscribers are its own C programs, those of ActiveMQ read and
write bytes of STOMP.
16 kB go to two subscribers over links of 100 Mbit/s. `latency_ms`: from `publish` to the program of the subscriber, messages of
1 kB every 5 ms. `selector_us`: processor time of a selector of three terms, in microseconds. `pool_gain`: processor time of
filling a new buffer for each message of 16 kB over that of a container from the pool. `bytes_per_subscriber` and
`sim_ratio_norm`: memory of a simulated subscriber of one topic among 10,000, and processor time over that of a NORM receiver
that gets the same packets. `tunnel_packets_per_s`: from a sender of NORM through two tunnels to a receiver at
another site.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from math import inf
from typing import Any

from benchmarks.fjm2_brokers import activemq_rate, mosquitto_rate
from benchmarks.fjm2_sim import sim_ratio_norm
from benchmarks.memory import bytes_per_subscriber
from benchmarks.norm_goodput import PROGRAMS, TIMING, Measured, receive_errors, result_of, transfer
from emu.namespaces import run_isolated
from emu.node import raise_priority
from emu.requirements import check_tools
from protocols.errors import UnsupportedError
from protocols.fjm2.pool import Container, Pool
from protocols.messaging import Value
from protocols.selector import selector
from tests.emu.lab import MCASTLAB, Lab
from topologies.generators import Inline, Star
from topologies.units import parse_rate

__all__ = ["MEASURES", "main", "measure", "session"]

GROUP, PORT = "239.7.7.12", 6010
NODE = [sys.executable, "-m", "benchmarks.fjm2_node"]
OVERHEAD = 52
"""Bytes of NORM and of the head of a message beside each body or segment, which the rate of a publisher counts."""
CASES = {"256_rx1": (256, 1), "1024_rx1": (1024, 1), "1024_rx2": (1024, 2), "16384_rx1": (16384, 1)}
OFFERED = (40_000, 30_000, 24_000, 19_000, 15_000, 12_000, 9_500, 7_500, 6_000, 4_800, 3_800, 3_000, 2_400, 1_900, 1_500)
"""Messages per second; a coarser step would show in what is found."""
NORM_RATES = ("1000Mbit", "1600Mbit", "2600Mbit")
SEGMENT = 1400
TUNNELLED = (4_000, 8_000, 12_000, 16_000, 20_000, 26_000)
"""Packets per second, up to the first rate that does not arrive."""
TUNNEL_PORT = 7411
SITES = {
    "kind": "graph",
    "nodes": {
        "p": {},
        "t1": {},
        "l1": {"kind": "switch"},
        "g": {"kind": "router"},
        "l2": {"kind": "switch"},
        "t2": {},
        "r": {},
    },
    "links": [{"ends": ends} for ends in (["p", "l1"], ["t1", "l1"], ["l1", "g"], ["g", "l2"], ["l2", "t2"], ["l2", "r"])],
}
SLOW, SLOW_RATE = "100Mbit", 0.95
"""The slow links, and the share of them that a publisher uses."""
SELECTOR = "symbol = 'A' AND price > 10 AND size < 500"


def session(
    size: int, receivers: int, offered: float, count: int, *, link: Mapping[str, Any] | None = None, gap: float = 0.0
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Publish messages of `size` bytes at an offered rate per second; return the results of publisher and subscribers."""
    segments = -(-size // 1400)
    rate = f"{offered * (size + OVERHEAD * segments) * 8:.0f}"

    def work() -> tuple[dict[str, Any], list[dict[str, Any]]]:
        lab = Lab(Star.model_validate({"kind": "star", "receivers": receivers, "link": link or {}}).build())
        names = [f"r{number}" for number in range(1, receivers + 1)]
        common = ["--group", f"{GROUP}:{PORT}", "--count", str(count), "--size", str(size), "--gap", str(gap)]

        def start(host: str, role: str, *more: str) -> Any:
            return lab.start(host, [*NODE, role, *common, "--iface", lab.device(host), *more])

        waiting = [start(name, "sub") for name in names]
        for name in names:
            lab.await_join(name, GROUP)
        publisher = start("sender", "pub", "--rate", rate)
        return lab.end(publisher, 120)[-1], [lab.end(process, 120)[-1] for process in waiting]

    published, received = run_isolated(work)
    return published, received


def held(count: int, received: list[dict[str, Any]]) -> float:
    """Return the messages per second of the slowest subscriber; 0 if anything is missing, wrong or twice anywhere."""
    if any(row["received"] != count or row["wrong"] or row["told_lost"] for row in received):
        return 0.0
    return float(min((count - 1) / (row["ended"] - row["began"]) for row in received))


def best_rate(size: int, receivers: int, options: argparse.Namespace, say: Callable[[str], None]) -> float:
    """Return the most messages per second that all subscribers received, over all offered rates."""
    most = 0.0
    # A rate beyond the largest goodput of NORM is not worth trying.
    worth = [rate for rate in OFFERED if rate * size < parse_rate(NORM_RATES[-1])]
    for rate in worth:
        count = max(int(options.seconds * min(rate, 10_000)), 500)
        published, received = session(size, receivers, rate, count)
        kept = held(count, received)
        most = max(most, kept)
        used = published["cpu"] / count * 1e6, max(row["cpu"] for row in received) / count * 1e6
        say(
            f"{size:6} bytes to {receivers}, {rate:6} offered: {kept:6.0f} messages/s, CPU {used[0]:.0f} + {used[1]:.0f} us, "
            f"{sum(row['receive_drops'] for row in received)} drops, {published['repairs_sent']} repairs"
        )
        if most and rate < 0.8 * most:
            break
    return most


def norm_goodput(options: argparse.Namespace, say: Callable[[str], None]) -> float:
    """Return the best goodput of a data object by NORM, in bytes per second."""
    best = 0.0
    for name in NORM_RATES:
        found = transfer("ours", int(32_000_000 * options.seconds), parse_rate(name), 0, 0.0, 1)
        say(f"NORM at {name}: {found.goodput * 8e-6:.0f} Mbit/s, CPU {found.cpu_sender:.2f} + {found.cpu_receivers:.2f} s")
        best = max(best, found.goodput)
    return best


def messages_per_s(options: argparse.Namespace, say: Callable[[str], None]) -> dict[str, float]:
    """Return the rates of all cases."""
    return {name: round(best_rate(*case, options, say)) for name, case in CASES.items()}


def ratio_norm(options: argparse.Namespace, say: Callable[[str], None]) -> dict[str, float]:
    """Return the goodput of large messages over that of NORM."""
    goodput = best_rate(65536, 1, options, say) * 65536
    return {"65536_rx1": round(goodput / norm_goodput(options, say), 3)}


def ratio_mosquitto(options: argparse.Namespace, say: Callable[[str], None]) -> dict[str, float]:
    """Return the rates over those of mosquitto."""
    theirs = mosquitto_rate(1024, 1, int(20_000 * options.seconds))
    say(f"mosquitto, 1024 bytes to 1: {theirs:.0f} messages/s")
    small = best_rate(1024, 1, options, say) / theirs
    count, link = int(200 * options.seconds), {"rate": SLOW}
    theirs = mosquitto_rate(16384, 2, count, link)
    # 16 kB are 12 packets, each with 42 bytes of UDP, IP and Ethernet.
    offered = SLOW_RATE * parse_rate(SLOW) / (16384 + 12 * (OVERHEAD + 42))
    ours = held(count, session(16384, 2, offered, count, link=link)[1])
    say(f"16384 bytes to 2 at {SLOW}: {ours:.0f} messages/s, mosquitto {theirs:.0f}")
    return {"1024_rx1": round(small, 3), "16384_rx2": round(ours / theirs, 3)}


def ratio_activemq(options: argparse.Namespace, say: Callable[[str], None]) -> dict[str, float]:
    """Return the rate over that of ActiveMQ."""
    theirs = activemq_rate(1024, int(7_000 * options.seconds))
    say(f"ActiveMQ, 1024 bytes to 1: {theirs:.0f} messages/s")
    return {"1024_rx1": round(best_rate(1024, 1, options, say) / theirs, 3)}


def latency_ms(options: argparse.Namespace, say: Callable[[str], None]) -> dict[str, float]:
    """Return percentiles of the time from `publish` to the program of a subscriber."""
    count = int(150 * options.seconds)
    _, (row,) = session(1024, 1, 10_000, count, gap=0.005)
    assert held(count, [row]), "messages are missing"
    delays = sorted(row["delays"])
    return {name: round(delays[int(share * (count - 1))], 3) for name, share in (("p50", 0.5), ("p99", 0.99))}


def selector_us(options: argparse.Namespace, say: Callable[[str], None]) -> float:
    """Return the least processor time of an evaluation, which ends true."""
    chosen, rounds, least = selector(SELECTOR), 2000, inf
    fields: dict[str, Value] = {"symbol": "A", "price": 12.5, "size": 100}
    assert chosen.selects(fields)
    for _ in range(50):
        began = time.process_time()
        for _ in range(rounds):
            chosen.selects(fields)
        least = min(least, time.process_time() - began)
    return round(least / rounds * 1e6, 3)


def pool_gain(options: argparse.Namespace, say: Callable[[str], None]) -> float:
    """Return the processor time of new buffers over that of containers from the pool, for messages of 16 kB that are kept."""
    size, kept, rounds = 16384, 1000, 5
    data = bytes(size)

    def plain() -> None:
        buffers = []
        for _ in range(kept):
            container = Container(size)
            container.memory[:size] = data
            buffers.append(container)

    pool = Pool(2 * kept * size, Container)

    def pooled() -> None:
        containers = []
        for _ in range(kept):
            container = pool.take(size)
            assert container is not None
            container.memory[:size] = data
            containers.append(container)
        for container in containers:
            pool.give_back(container)

    least = {plain: inf, pooled: inf}
    for _ in range(rounds):
        for fill, before in least.items():
            began = time.process_time()
            fill()
            least[fill] = min(before, time.process_time() - began)
    return round(least[plain] / least[pooled], 2)


def tunnel_packets_per_s(options: argparse.Namespace, say: Callable[[str], None]) -> float:
    """Return the most packets per second of NORM from one site to another through a tunnel at each."""
    best = 0.0
    for offered in TUNNELLED:
        segments = int(offered * options.seconds)
        found = through_tunnels(offered, segments)
        say(f"tunnels, {offered:6} offered: {found.goodput / SEGMENT:.0f} packets/s, {found.overflows} overflows")
        best = max(best, found.goodput / SEGMENT)
        if found.goodput < 0.5 * offered * SEGMENT:
            break
    return round(best)


def through_tunnels(offered: float, segments: int) -> Measured:
    """Send an object by NORM between hosts of two sites that only tunnels join, at an offered rate of packets."""

    def work() -> dict[str, Any]:
        lab = Lab(Inline.model_validate(SITES).build())

        def start(host: str, role: str, *more: str) -> Any:
            common = [role, "--addr", GROUP, "--port", str(PORT), "--iface", lab.device(host), "--timeout", "20"]
            return lab.start(host, [*PROGRAMS["ours"], *common, *more])

        where = {host: f"{lab.network.address(host)}:{TUNNEL_PORT}" for host in ("t1", "t2")}
        for host, peer in (("t1", "t2"), ("t2", "t1")):
            own = ["--lan", lab.device(host), "--listen", where[host], "--peer", where[peer], "--ring", "4096"]
            lab.start(host, [*MCASTLAB, "tunnel", "--group", f"{GROUP}:{PORT}", *own])
        receiver = start("r", "recv", "--node", "2", "--expect", "1", "--buffer", str(2 * segments * SEGMENT))
        for host in ("t1", "t2", "r"):
            lab.await_join(host, GROUP)
        rate = offered * (SEGMENT + OVERHEAD) * 8
        sender = start("p", "send", "--sizes", str(segments * SEGMENT), "--rate", str(rate), "--parity", "0", *TIMING)
        received = [lab.end(receiver, 120)]
        overflows = sum(receive_errors(lab.network.pid(host)) for host in ("t1", "t2", "r"))
        return {"sent": lab.end(sender, 120), "received": received, "overflows": overflows}

    return result_of(size=segments * SEGMENT, **run_isolated(work))


MEASURES: Mapping[str, Callable[[argparse.Namespace, Callable[[str], None]], Any]] = {
    "messages_per_s": messages_per_s,
    "ratio_norm": ratio_norm,
    "ratio_mosquitto": ratio_mosquitto,
    "ratio_activemq": ratio_activemq,
    "latency_ms": latency_ms,
    "selector_us": selector_us,
    "tunnel_packets_per_s": tunnel_packets_per_s,
    "pool_gain": pool_gain,
    "bytes_per_subscriber": lambda options, say: round(bytes_per_subscriber("fjm2", 10_000, 20, 4000)),
    "sim_ratio_norm": lambda options, say: round(sim_ratio_norm(), 2),
}


def measure(options: argparse.Namespace, names: Sequence[str], say: Callable[[str], None]) -> dict[str, Any]:
    """Measure what is named."""
    found = {}
    for name in names:
        found[name] = MEASURES[name](options, say)
        say(f"{name}: {found[name]}")
    return found


def main() -> int:
    """Run the program and return its exit code."""
    parser = argparse.ArgumentParser(description="Measure FJM2 between network namespaces.")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--only", nargs="+", choices=MEASURES, default=list(MEASURES))
    parser.add_argument("--seconds", type=float, default=3.0, help="of messages at each rate, as far as they are not many")
    options = parser.parse_args()
    try:
        check_tools()
    except UnsupportedError as error:
        print(error, file=sys.stderr)
        return 3
    # Programs inherit the priority.
    raise_priority()
    result = measure(options, options.only, lambda line: print(line, file=sys.stderr, flush=True))
    if options.json:
        print(json.dumps(result))
    return 0


if __name__ == "__main__":
    sys.exit(main())
