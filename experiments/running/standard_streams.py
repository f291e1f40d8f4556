"""Standard input and output as streams of an event loop: threads read and write, so that files, pipes and terminals all do."""

import os
from asyncio import AbstractEventLoop
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from threading import Semaphore, Thread
from typing import Any

__all__ = ["PipeReader", "PipeWriter"]

_PIECE = 1 << 16


class PipeReader:
    """Reads a descriptor until its end and calls `take(data)` in the loop; b"" at the end.

    One piece is read at a time: the next one after `go_on`.
    """

    def __init__(self, loop: AbstractEventLoop, descriptor: int, take: Callable[[bytes], None]) -> None:
        self._loop = loop
        self._descriptor = descriptor
        self._take = take
        self._wanted = Semaphore(0)
        Thread(target=self._run, name="input", daemon=True).start()

    def go_on(self) -> None:
        """Read the next piece."""
        self._wanted.release()

    def _run(self) -> None:
        data = b"."
        while data:
            self._wanted.acquire()
            try:
                data = os.read(self._descriptor, _PIECE)
            except OSError:
                data = b""
            _call(self._loop, self._take, data)


class PipeWriter:
    """Writes to a descriptor what `write` is given, in order.

    `on_room()` is called in the loop whenever all is written, `failed(error)` when the reader is gone.
    """

    def __init__(
        self, loop: AbstractEventLoop, descriptor: int, on_room: Callable[[], None], failed: Callable[[OSError], None]
    ) -> None:
        self._loop = loop
        self._descriptor = descriptor
        self._on_room, self._failed = on_room, failed
        self._pieces: SimpleQueue[bytes] = SimpleQueue()
        self.waiting = 0
        """Bytes that are not written yet."""
        Thread(target=self._run, name="output", daemon=True).start()

    def write(self, data: bytes) -> None:
        """Write bytes after those given before."""
        self.waiting += len(data)
        self._pieces.put(data)

    def _run(self) -> None:
        while True:
            piece = self._pieces.get()
            try:
                view = memoryview(piece)
                while view:
                    view = view[os.write(self._descriptor, view) :]
            except OSError as error:
                _call(self._loop, self._failed, error)
                return
            _call(self._loop, self._written, len(piece))

    def _written(self, size: int) -> None:
        self.waiting -= size
        if not self.waiting:
            self._on_room()


def _call(loop: AbstractEventLoop, function: Callable[..., None], argument: Any) -> None:
    # The loop is closed when the program has ended.
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(function, argument)
