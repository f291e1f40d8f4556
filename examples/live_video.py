"""A video-like source with deadlines on a real network: a picture every 40 ms, which is worthless 200 ms later.

    python -m examples.live_video --iface lo

Each picture is an object that carries its number and the time it was taken. The sender cancels those that would come too late
anyway, so that it repairs none of them, and sends parity unasked, so that most losses need no repair at all. A viewer shows
what arrives before its deadline and counts the rest.
"""

import argparse
import asyncio
import os
import struct
import time
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import mcastlab
from examples import at_least_one

__all__ = ["Viewer", "film", "main", "play"]

HEAD = struct.Struct("!Id")
"""Number of the picture, and the Unix time at which it was taken."""
INTERVAL, DEADLINE = 0.04, 0.2
LARGE, SMALL, GROUP_OF_PICTURES = 40_000, 8_000, 12
SETTINGS: dict[str, Any] = {"rate": "8Mbit", "grtt": "10ms", "backoff": 2, "block": 16, "parity": 6, "auto_parity": 1}


async def film(session: mcastlab.Session, pictures: int) -> None:
    """Send a picture every `INTERVAL` seconds, and cancel those whose deadline is over."""
    begin = time.monotonic()
    under_way: deque[tuple[float, mcastlab.Transmission]] = deque()
    for number in range(pictures):
        await asyncio.sleep(begin + number * INTERVAL - time.monotonic())
        while under_way and under_way[0][0] <= time.monotonic():
            session.cancel(under_way.popleft()[1])
        size = SMALL if number % GROUP_OF_PICTURES else LARGE
        picture = await session.send_bytes(HEAD.pack(number, time.time()) + os.urandom(size - HEAD.size))
        under_way.append((time.monotonic() + DEADLINE, picture))


@dataclass
class Viewer:
    """Pictures that were shown, that came late, and that never came; the oldest age of one shown in seconds."""

    shown: int = 0
    late: int = 0
    oldest: float = 0.0

    async def watch(self, session: mcastlab.Session, pictures: int) -> None:
        """Take pictures until the last one is there, or for as long as one can still be shown."""
        async with asyncio.timeout(pictures * INTERVAL + 10 * DEADLINE):
            async for event in session:
                if isinstance(event, mcastlab.ContentReceived):
                    number, taken = HEAD.unpack_from(event.read())
                    age = time.time() - taken
                    self.shown += age <= DEADLINE
                    self.late += age > DEADLINE
                    self.oldest = max(self.oldest, age) if age <= DEADLINE else self.oldest
                    if number == pictures - 1:
                        return


async def play(group: str, iface: str | None, pictures: int) -> Viewer:
    """Run a source and a viewer in one event loop; return what the viewer saw."""
    viewer = Viewer()
    async with (
        mcastlab.session(group, iface, send=False, **SETTINGS) as watching,
        mcastlab.session(group, iface, receive=False, **SETTINGS) as filming,
        asyncio.TaskGroup() as tasks,
    ):
        tasks.create_task(film(filming, pictures))
        with suppress(TimeoutError):
            await viewer.watch(watching, pictures)
    return viewer


async def main() -> None:
    """Play for some seconds and print how many pictures were in time."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--group", default="239.7.7.13:6003", help="multicast address and port")
    parser.add_argument("--iface", help="device or IPv4 address")
    parser.add_argument("--pictures", type=at_least_one, default=50)
    options = parser.parse_args()
    try:
        viewer = await play(options.group, options.iface, options.pictures)
    except mcastlab.McastlabError as error:
        parser.error(str(error))
    lost = options.pictures - viewer.shown - viewer.late
    print(f"{viewer.shown} pictures in time, the oldest after {viewer.oldest * 1e3:.0f} ms; {viewer.late} late, {lost} lost")


if __name__ == "__main__":
    asyncio.run(main())
