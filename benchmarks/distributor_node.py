"""A publisher or subscriber of the Distributor as a program that measures itself.

    python -m benchmarks.distributor_node pub --group 239.7.7.8:5656 --iface eth0 --count 1000000 --rate 400000
    python -m benchmarks.distributor_node sub --group 239.7.7.8:5656 --iface eth0 --count 1000000

Updates are numbered, and subscribers compare each of them with what was published. A publisher at rate 0 is as fast as it can.
"""

import argparse
import asyncio
import json
import sys
import time
from typing import Any

import mcastlab
from emu.node import raise_priority
from experiments.running.live import live
from protocols.distributor.events import SegmentsLost

__all__ = ["main"]

SUBJECT = "/test-subject-name"
CYCLE = 50_000
"""Different contents; they repeat."""
TICK = 0.01
"""Seconds between two bursts of a publisher with a rate."""
SILENCE = 3.0
"""Seconds without an update after which a subscriber that has received some ends."""


def contents(size: int) -> list[bytes]:
    """Return the contents of a cycle, each with its number."""
    return [number.to_bytes(4, "big") + bytes(size - 4) for number in range(CYCLE)]


async def publish(options: argparse.Namespace) -> dict[str, Any]:
    """Publish at the rate; return how long that took."""
    cycle = contents(options.size)
    async with _connection(options) as connection:
        await connection.announce()
        # Subscribers have heard of the publisher before the first update.
        await asyncio.sleep(0.2)
        began, cpu, sent = time.monotonic(), time.process_time(), 0
        while sent < options.count:
            due = min(options.count, int((time.monotonic() - began + TICK) * options.rate)) if options.rate else options.count
            while sent < due:
                start = sent % CYCLE
                part = cycle[start : min(CYCLE, start + due - sent)]
                await connection.publish_many(SUBJECT, part)
                sent += len(part)
            if options.rate:
                await asyncio.sleep(TICK)
        took, used = time.monotonic() - began, time.process_time() - cpu
        await connection.flush()
        # Requests for the last updates are answered.
        await asyncio.sleep(options.stay)
        return {"seconds": took, "cpu": used, **connection.statistics()}


async def subscribe(options: argparse.Namespace) -> dict[str, Any]:
    """Receive all updates; return when the first and the last of them came, and what was wrong with them."""
    cycle = contents(options.size)
    async with _connection(options) as connection:
        updates = connection.subscribe("/...", most=4 * CYCLE * 100)
        received, wrong, began, ended, cpu = 0, 0, 0.0, 0.0, 0.0
        while received < options.count:
            try:
                together = await asyncio.wait_for(updates.together(), SILENCE if received else None)
            except TimeoutError:
                break
            assert together is not None
            batch = together.contents
            ended = time.monotonic()
            if not received:
                began, cpu = ended, time.process_time()
            start = received % CYCLE
            expected = (
                (cycle[start:] + cycle)[: len(batch)] if start + len(batch) > CYCLE else cycle[start : start + len(batch)]
            )
            wrong += batch != expected
            received += len(batch)
        lost = sum(event.count for event in connection._events if isinstance(event, SegmentsLost))
        found = {"received": received, "wrong": wrong, "began": began, "ended": ended, "told_lost": lost}
        return {**found, "cpu": time.process_time() - cpu, **connection.statistics()}


def _connection(options: argparse.Namespace) -> Any:
    return mcastlab.distributor(
        options.group, options.iface, segment=options.segment, holdback="100ms", holdback_threshold=0, cache=options.cache
    )


def main() -> int:
    """Run the program and print its result as a JSON line."""
    parser = argparse.ArgumentParser(description="Publish or subscribe, and measure.")
    parser.add_argument("role", choices=("pub", "sub"))
    parser.add_argument("--group", required=True)
    parser.add_argument("--iface", required=True)
    parser.add_argument("--count", type=int, required=True)
    parser.add_argument("--rate", type=float, default=0.0, help="updates per second")
    parser.add_argument("--size", type=int, default=50)
    parser.add_argument("--segment", type=int, default=62_000)
    parser.add_argument("--cache", type=int, default=100_000_000)
    parser.add_argument("--stay", type=float, default=1.0, help="seconds a publisher goes on answering requests")
    options = parser.parse_args()
    raise_priority()
    found: list[dict[str, Any]] = []

    async def work() -> None:
        found.append(await (publish if options.role == "pub" else subscribe)(options))

    with live() as runner:
        runner.play(work())
    for result in found:
        print(json.dumps(result), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
