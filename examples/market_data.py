"""A market-data feed on a real network: one publisher, several subscribers, and how old a price is when it arrives.

    python -m examples.market_data --iface lo

Prices are messages of one stream in push mode: a feed never waits for a subscriber, and what is older than the buffer is
dropped. So a subscriber may miss prices, but knows where (`gaps`) and always goes on with a whole one. Publisher and
subscribers are sessions of one event loop here; on a network each is a program of its own with the same functions.
"""

import argparse
import asyncio
import math
import random
import struct
import time
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any

import mcastlab
from examples import at_least_one

__all__ = ["Subscriber", "feed", "main", "publish"]

TICK = struct.Struct("!IdQ8s")
"""Number, price, time in nanoseconds, symbol."""
SYMBOLS = (b"AAA", b"BBB", b"CCC", b"DDD")
SETTINGS: dict[str, Any] = {"rate": "20Mbit", "grtt": "5ms", "block": 16, "parity": 4}
BUFFER = 1 << 18


async def publish(session: mcastlab.Session, prices: int, per_second: float) -> None:
    """Send so many `prices` of a random walk, `per_second` of them in a second."""
    chance = random.Random(1)
    last = dict.fromkeys(SYMBOLS, 100.0)
    begin = time.monotonic()
    async with await session.open_stream(BUFFER, push=True) as out:
        for number in range(prices):
            symbol = chance.choice(SYMBOLS)
            last[symbol] += chance.gauss(0.0, 0.05)
            await out.write(TICK.pack(number, last[symbol], time.time_ns(), symbol))
            # Prices that are due together are sent together.
            ahead = begin + number / per_second - time.monotonic()
            if ahead > 0:
                await asyncio.sleep(ahead)


@dataclass
class Subscriber:
    """The last price of each symbol, and the ages of prices on arrival in seconds."""

    last: dict[bytes, float] = field(default_factory=dict)
    ages: list[float] = field(default_factory=list)
    gaps: int = 0

    async def follow(self, session: mcastlab.Session) -> None:
        """Take prices until the feed ends."""
        async for event in session:
            if isinstance(event, mcastlab.StreamOpened):
                async for message in event.stream:
                    _, price, at, symbol = TICK.unpack(message)
                    self.last[symbol.rstrip(b"\0")] = price
                    self.ages.append((time.time_ns() - at) * 1e-9)
                self.gaps = event.stream.gaps
                return

    def within(self, share: float) -> float:
        """Return the age in milliseconds that so large a share of the prices did not exceed; nan without prices."""
        ages = sorted(self.ages)
        return ages[math.ceil(share * len(ages)) - 1] * 1e3 if ages else math.nan


async def feed(group: str, iface: str | None, subscribers: int, prices: int, per_second: float) -> list[Subscriber]:
    """Run a publisher and subscribers in one event loop; return what the subscribers have."""
    found = [Subscriber() for _ in range(subscribers)]
    async with AsyncExitStack() as stack:
        receiving = [await stack.enter_async_context(mcastlab.session(group, iface, send=False, **SETTINGS)) for _ in found]
        publisher = await stack.enter_async_context(mcastlab.session(group, iface, receive=False, **SETTINGS))
        async with asyncio.TaskGroup() as tasks:
            for subscriber, session in zip(found, receiving, strict=True):
                tasks.create_task(subscriber.follow(session))
            await publish(publisher, prices, per_second)
    return found


async def main() -> None:
    """Run the feed and print the ages of the prices."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--group", default="239.7.7.12:6003", help="multicast address and port")
    parser.add_argument("--iface", help="device or IPv4 address")
    parser.add_argument("--subscribers", type=at_least_one, default=3)
    parser.add_argument("--prices", type=at_least_one, default=20_000)
    parser.add_argument("--per-second", type=float, default=10_000)
    options = parser.parse_args()
    if not 0 < options.per_second < math.inf:
        parser.error(f"argument --per-second: {options.per_second} is not allowed; a number above 0")
    try:
        found = await feed(options.group, options.iface, options.subscribers, options.prices, options.per_second)
    except mcastlab.McastlabError as error:
        parser.error(str(error))
    for number, subscriber in enumerate(found, 1):
        got = f"prices {len(subscriber.ages)}, gaps {subscriber.gaps}"
        print(f"subscriber {number}: {got}, age {subscriber.within(0.5):.2f} ms, 99 % within {subscriber.within(0.99):.2f} ms")


if __name__ == "__main__":
    asyncio.run(main())
