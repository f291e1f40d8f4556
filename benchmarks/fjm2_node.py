"""A publisher or subscriber of FJM2 as a program that measures itself.

    python -m benchmarks.fjm2_node pub --group 239.7.7.12:6010 --iface eth0 --count 20000 --size 1024 --rate 100Mbit
    python -m benchmarks.fjm2_node sub --group 239.7.7.12:6010 --iface eth0 --count 20000 --size 1024

Messages begin with their number, and subscribers compare each of them with what was published. With `--gap` a publisher waits
so many seconds after each, and subscribers tell how long messages were under way, by the clock that all processes share.
"""

import argparse
import asyncio
import cProfile
import json
import time
from typing import Any

from emu.node import raise_priority
from experiments.running.live import live
from mcastlab.messaging import MessageBus, MessagesLost, connect

__all__ = ["contents", "main"]

TOPIC = "t"
STAMP = 8
"""Bytes at the beginning of a message: when it was published, in nanoseconds, or its number."""
SILENCE = 5.0
"""Seconds without a message after which a subscriber that has received some ends."""


def contents(size: int) -> bytes:
    """Return what follows the number of each message of `size` bytes."""
    return bytes(range(256)) * (size // 256 + 1)


async def publish(options: argparse.Namespace) -> dict[str, Any]:
    """Publish everything; return how long it took until the end was announced."""
    rest = contents(options.size)[: options.size - STAMP]
    async with _bus(options) as bus:
        await bus.announce()
        # Subscribers have heard of the publisher before the first message.
        await asyncio.sleep(0.2)
        began, cpu = time.monotonic(), time.process_time()
        for number in range(options.count):
            if options.gap:
                await asyncio.sleep(options.gap)
                number = time.monotonic_ns()
            await bus.publish(TOPIC, number.to_bytes(STAMP, "big") + rest)
        await bus.flush()
        took, used = time.monotonic() - began, time.process_time() - cpu
    return {"seconds": took, "cpu": used, **bus.statistics()}


async def subscribe(options: argparse.Namespace) -> dict[str, Any]:
    """Receive everything; return when the first and the last message came, and what was wrong with them."""
    rest = contents(options.size)[: options.size - STAMP]
    known, wrong, began, ended, cpu = set[int](), 0, 0.0, 0.0, 0.0
    delays: list[float] = []
    async with _bus(options) as bus:
        stream = bus.subscribe(TOPIC, most=2 * options.count)
        while len(known) < options.count:
            try:
                message = await anext(stream) if stream.waiting else await asyncio.wait_for(anext(stream), SILENCE)
            except TimeoutError:
                if known or wrong:
                    break
                continue
            if not known:
                began, cpu = time.monotonic(), time.process_time()
            body = message.body
            assert body is not None
            number = int.from_bytes(body[:STAMP])
            if len(body) != options.size or not body.endswith(rest) or number in known:
                wrong += 1
            if options.gap:
                delays.append((time.monotonic_ns() - number) * 1e-6)
            known.add(number)
        ended, cpu = time.monotonic(), time.process_time() - cpu
        lost = await _lost(bus)
    found = {"received": len(known), "wrong": wrong, "told_lost": lost, "began": began, "ended": ended, "cpu": cpu}
    return {**found, "delays": delays, **bus.statistics()}


async def _lost(bus: MessageBus) -> int:
    """Return how many messages were told to be lost."""
    count = 0
    while True:
        try:
            event = await asyncio.wait_for(anext(bus), 0.01)
        except TimeoutError:
            return count
        count += event.count if isinstance(event, MessagesLost) else 0


def _bus(options: argparse.Namespace) -> MessageBus:
    roles = {"publish": options.role == "pub", "subscribe": options.role == "sub"}
    # What is sent during 10 GRTT is kept for repairs, and at these rates that is more than the pool and the cache usually have.
    return connect(options.group, options.iface, **roles, rate=options.rate, grtt="5ms", cache_size="64MB", pool="64MB")


def main() -> int:
    """Run the program and print its result as a JSON line."""
    parser = argparse.ArgumentParser(description="Publish or subscribe, and measure.")
    parser.add_argument("role", choices=("pub", "sub"))
    parser.add_argument("--group", required=True)
    parser.add_argument("--iface", required=True)
    parser.add_argument("--count", type=int, required=True)
    parser.add_argument("--size", type=int, default=1024)
    parser.add_argument("--rate", default="1Gbit", help="of the publisher")
    parser.add_argument("--gap", type=float, default=0.0, help="seconds after each message")
    parser.add_argument("--profile", help="file for the profile of this program (cProfile)")
    options = parser.parse_args()
    raise_priority()
    found: list[dict[str, Any]] = []

    async def work() -> None:
        found.append(await (publish if options.role == "pub" else subscribe)(options))

    profile = cProfile.Profile()
    if options.profile:
        profile.enable()
    with live() as runner:
        runner.play(work())
    if options.profile:
        profile.disable()
        profile.dump_stats(options.profile)
    for result in found:
        print(json.dumps(result), flush=True)
    return 0


if __name__ == "__main__":
    main()
