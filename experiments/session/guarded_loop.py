"""An event loop as one host sees it: an exception in a callback ends the host's session, and nothing else of the program."""

import asyncio
from collections.abc import Callable
from typing import Any

from emu.loop import HostLoop

__all__ = ["GuardedLoop"]


class GuardedLoop:
    """The methods of `loop` that one host uses (`emu.loop.HostLoop`).

    What a callback raises goes to `failed`, once; then, and after `close`, nothing is called any more.
    """

    def __init__(self, loop: HostLoop, failed: Callable[[Exception], None]) -> None:
        self._loop = loop
        self._failed = failed
        self._is_closed = False
        self.time = loop.time
        self.remove_reader, self.remove_writer = loop.remove_reader, loop.remove_writer

    def close(self) -> None:
        """Call nothing any more that was scheduled here; the loop itself goes on."""
        self._is_closed = True

    def _run(self, callback: Callable[..., object], *args: Any) -> None:
        if self._is_closed:
            return
        try:
            callback(*args)
        except Exception as error:  # noqa: BLE001 (whatever it is, the session ends with it)
            self._is_closed = True
            self._failed(error)

    def call_soon(self, callback: Callable[..., object], *args: Any) -> asyncio.Handle:
        """See `asyncio.loop.call_soon`."""
        return self._loop.call_soon(self._run, callback, *args)

    def call_soon_threadsafe(self, callback: Callable[..., object], *args: Any) -> asyncio.Handle:
        """See `asyncio.loop.call_soon_threadsafe`."""
        return self._loop.call_soon_threadsafe(self._run, callback, *args)

    def call_later(self, delay: float, callback: Callable[..., object], *args: Any) -> asyncio.TimerHandle:
        """See `asyncio.loop.call_later`."""
        return self._loop.call_later(delay, self._run, callback, *args)

    def call_at(self, when: float, callback: Callable[..., object], *args: Any) -> asyncio.TimerHandle:
        """See `asyncio.loop.call_at`."""
        return self._loop.call_at(when, self._run, callback, *args)

    def add_reader(self, fd: Any, callback: Callable[..., object], *args: Any) -> None:
        """See `asyncio.loop.add_reader`."""
        self._loop.add_reader(fd, self._run, callback, *args)

    def add_writer(self, fd: Any, callback: Callable[..., object], *args: Any) -> None:
        """See `asyncio.loop.add_writer`."""
        self._loop.add_writer(fd, self._run, callback, *args)
