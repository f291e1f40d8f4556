"""Standard input and output as streams of an event loop: threads read and write, so that files, pipes and terminals all do."""

import asyncio
import os
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from threading import Thread
from typing import Any

__all__ = ["PipeReader", "PipeWriter"]

_PIECE = 1 << 16


class _Pipe:
    """A descriptor and a thread that makes one call at a time; a call that never returns does not keep the program."""

    def __init__(self, descriptor: int, name: str) -> None:
        self._descriptor = descriptor
        self._calls: SimpleQueue[tuple[Callable[[], Any], asyncio.Future[Any], asyncio.AbstractEventLoop]] = SimpleQueue()
        Thread(target=self._run, name=name, daemon=True).start()

    async def _call(self, function: Callable[[], Any]) -> Any:
        """Call a function in the thread and return its result, or raise its OSError."""
        loop = asyncio.get_running_loop()
        answer = loop.create_future()
        self._calls.put((function, answer, loop))
        return await answer

    def _run(self) -> None:
        while True:
            function, answer, loop = self._calls.get()
            try:
                result, error = function(), None
            except OSError as failure:
                result, error = None, failure
            # The loop is closed when the program has ended.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(_settle, answer, result, error)


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
