"""Contents that `mcastlab pub` publishes, lines of standard input or generated ones, and when each is due."""

import asyncio
import sys
from collections.abc import AsyncIterator
from itertools import count

from experiments.running.standard_streams import PipeReader
from experiments.session.boundaries import MessageCutter

__all__ = ["LARGEST", "Pacer", "generated", "input_lines"]

LARGEST = 1 << 30
"""Most bytes of a message that is generated, or read from a file."""
BURST = 0.005
"""Seconds of messages that are published together, so that a high rate costs few wake-ups."""


async def generated(size: int) -> AsyncIterator[bytes]:
    """Yield contents of `size` bytes for ever, each of which begins with its number."""
    for number in count():
        yield str(number).encode().ljust(size, b".")[:size]


async def input_lines() -> AsyncIterator[bytes]:
    """Yield the lines of standard input without the line feeds. OSError if it can't be read."""
    reader, cutter = PipeReader(sys.stdin.fileno()), MessageCutter("line")
    while data := await reader.read():
        for line in cutter.feed(data):
            yield line.removesuffix(b"\n")
    if rest := cutter.rest():
        yield rest


class Pacer:
    """Waits until messages are due: `rate` per second, from the first one on; None: as fast as possible.

    Without a rate the event loop runs other tasks after `at_once` messages.
    """

    def __init__(self, rate: float | None, at_once: int) -> None:
        self._rate, self._at_once = rate, at_once
        self._first_at = 0.0

    async def wait(self, published: int) -> None:
        """Wait until the message behind so many is due."""
        if self._rate is None:
            if published % self._at_once == 0:
                await asyncio.sleep(0)
            return
        now = asyncio.get_running_loop().time()
        if not published:
            self._first_at = now
        early = self._first_at + published / self._rate - now
        if early > BURST:
            await asyncio.sleep(early)
