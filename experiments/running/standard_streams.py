"""Standard input and output as streams of an event loop: threads read and write, so that files, pipes and terminals all do."""

import asyncio
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from threading import Event, Thread
from typing import Any

__all__ = ["BufferedOutput", "PipeReader", "PipeWriter", "output_line"]

_PIECE = 1 << 16
_MOST_BUFFERED = 1 << 20
"""Bytes in the buffer from which on writers wait."""


class _Pipe:
    """A descriptor and a thread that makes one call at a time; a call that never returns does not keep the program."""

    def __init__(self, descriptor: int, name: str) -> None:
        self._descriptor = descriptor
        # What to call, and what is given the result or the error.
        self._calls: SimpleQueue[tuple[Callable[[], Any], Callable[[Any, OSError | None], object]]] = SimpleQueue()
        Thread(target=self._run, name=name, daemon=True).start()

    async def _call(self, function: Callable[[], Any]) -> Any:
        """Call a function in the thread and return its result, or raise its OSError."""
        loop = asyncio.get_running_loop()
        answer = loop.create_future()

        def settle(result: Any, error: OSError | None) -> None:
            # The loop is closed when the program has ended.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(_settle, answer, result, error)

        self._calls.put((function, settle))
        return await answer

    def _run(self) -> None:
        while True:
            function, settle = self._calls.get()
            try:
                result, error = function(), None
            except OSError as failure:
                result, error = None, failure
            settle(result, error)


def _settle(answer: "asyncio.Future[Any]", result: Any, error: OSError | None) -> None:
    if answer.done():
        # The task that waited was cancelled.
        return
    if error is None:
        answer.set_result(result)
    else:
        answer.set_exception(error)


class PipeReader(_Pipe):
    """Reads a descriptor."""

    def __init__(self, descriptor: int) -> None:
        super().__init__(descriptor, "input")

    async def read(self) -> bytes:
        """Wait for the next piece; b"" at the end. OSError if the descriptor can't be read."""
        data: bytes = await self._call(lambda: os.read(self._descriptor, _PIECE))
        return data


class PipeWriter(_Pipe):
    """Writes to a descriptor."""

    def __init__(self, descriptor: int) -> None:
        super().__init__(descriptor, "output")

    async def write(self, data: bytes) -> None:
        """Write bytes after those given before, and wait until they are. OSError when the reader is gone."""
        await self._call(lambda: self._write(data))

    def _write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(self._descriptor, view) :]


def output_line(text: str) -> bytes:
    """Return a line as standard output has it."""
    return f"{text}\n".encode(sys.stdout.encoding, sys.stdout.errors or "strict")


class BufferedOutput(PipeWriter):
    """Writes to a descriptor while `run` runs; a slow reader makes writers wait, and not the event loop."""

    def __init__(self, descriptor: int) -> None:
        super().__init__(descriptor)
        self._buffer = bytearray()
        self._filled, self._emptied = asyncio.Event(), asyncio.Event()
        self._failure: OSError | None = None

    async def put(self, data: bytes) -> None:
        """Write bytes after those given before; wait while many wait to be taken."""
        self._buffer += data
        self._filled.set()
        while len(self._buffer) >= _MOST_BUFFERED:
            self._emptied.clear()
            await self._emptied.wait()

    async def run(self) -> None:
        """Write until cancelled. OSError when the reader is gone."""
        while True:
            await self._filled.wait()
            self._filled.clear()
            data = bytes(self._buffer)
            self._buffer.clear()
            self._emptied.set()
            await self.write(data)

    def finish(self) -> Callable[[], bool]:
        """Write the rest when `run` has ended; return a function: whether it is written. `check` raises failures."""
        ended, data = Event(), bytes(self._buffer)
        self._calls.put((lambda: self._write(data), lambda result, error: ended.set()))
        return ended.is_set

    def check(self) -> None:
        """Raise the OSError with which writing has failed, if it has."""
        if self._failure is not None:
            raise self._failure

    def _write(self, data: bytes) -> None:
        if self._failure is not None:
            return
        try:
            super()._write(data)
        except OSError as error:
            self._failure = error
            raise
