"""Output in a thread: a slow reader keeps only who writes waiting, nothing is lost at the end, and failures are told."""

import asyncio
import os
import time
from contextlib import nullcontext, suppress

import pytest

from experiments.running.standard_streams import BufferedOutput

LINES = [b"%06d" % number + b"." * 993 + b"\n" for number in range(4000)]


def finished(output: BufferedOutput) -> None:
    """Wait until the rest is taken."""
    is_done, deadline = output.finish(), time.monotonic() + 30.0
    while not is_done():
        assert time.monotonic() < deadline
        time.sleep(0.001)


def test_a_reader_that_reads_nothing_holds_up_the_writer_and_not_the_event_loop() -> None:
    reading, writing = os.pipe()
    output = BufferedOutput(writing)
    put = 0

    async def write() -> None:
        nonlocal put
        for line in LINES:
            await output.put(line)
            put += 1

    async def both() -> bytes:
        tasks = [asyncio.create_task(output.run()), asyncio.create_task(write())]
        # The loop goes on, or this would never be reached; a pipe and the buffer are full by then.
        while put < 1000:
            await asyncio.sleep(0)
        for _ in range(1000):
            await asyncio.sleep(0)
        assert put < len(LINES)
        got = bytearray()
        while not tasks[1].done():
            got += await asyncio.to_thread(os.read, reading, 1 << 16)
        tasks[0].cancel()
        with suppress(asyncio.CancelledError):
            await tasks[0]
        return bytes(got)

    got = bytearray(asyncio.run(both()))
    is_done = output.finish()
    while len(got) < len(LINES) * len(LINES[0]):
        got += os.read(reading, 1 << 16)
    assert bytes(got) == b"".join(LINES)
    while not is_done():
        time.sleep(0.001)
    output.check()
    os.close(reading)
    os.close(writing)


def test_what_waits_at_the_end_is_written_behind_what_is_under_way() -> None:
    reading, writing = os.pipe()
    output = BufferedOutput(writing)

    async def cancelled() -> None:
        running = asyncio.create_task(output.run())
        await output.put(b"a" * 10)
        await asyncio.sleep(0)
        await output.put(b"b" * 10)
        running.cancel()

    asyncio.run(cancelled())
    finished(output)
    assert os.read(reading, 100) == b"a" * 10 + b"b" * 10
    os.close(reading)
    os.close(writing)


@pytest.mark.parametrize("when", ["while it runs", "at the end"])
def test_an_output_that_takes_nothing_is_told(when: str) -> None:
    full = os.open("/dev/full", os.O_WRONLY)
    output = BufferedOutput(full)

    async def run() -> None:
        await output.put(b"a")
        if when == "while it runs":
            await output.run()

    with pytest.raises(OSError, match="No space left") if when == "while it runs" else nullcontext():
        asyncio.run(run())
    finished(output)
    with pytest.raises(OSError, match="No space left"):
        output.check()
    os.close(full)
