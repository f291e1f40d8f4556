"""The event loop of hosts: asyncio's, with exact timers and room for many sockets."""

import asyncio
import ctypes
import select
import selectors
import time
from collections.abc import Callable
from math import inf
from typing import Any, Protocol

__all__ = ["HostLoop", "Loop", "new_loop", "spend"]

_PR_SET_TIMERSLACK = 29
_SLEEP_ERROR = 0.0002
"""Seconds by which the kernel may end a sleep too late."""


class HostLoop(Protocol):
    """The methods of an asyncio event loop that hosts use."""

    def time(self) -> float:
        """See `asyncio.loop.time`."""

    def call_soon(self, callback: Callable[..., object], *args: Any) -> asyncio.Handle:
        """See `asyncio.loop.call_soon`."""

    def call_soon_threadsafe(self, callback: Callable[..., object], *args: Any) -> asyncio.Handle:
        """See `asyncio.loop.call_soon_threadsafe`."""

    def call_later(self, delay: float, callback: Callable[..., object], *args: Any) -> asyncio.TimerHandle:
        """See `asyncio.loop.call_later`."""

    def call_at(self, when: float, callback: Callable[..., object], *args: Any) -> asyncio.TimerHandle:
        """See `asyncio.loop.call_at`."""

    def add_reader(self, fd: Any, callback: Callable[..., object], *args: Any) -> None:
        """See `asyncio.loop.add_reader`."""

    def remove_reader(self, fd: Any) -> bool:
        """See `asyncio.loop.remove_reader`."""

    def add_writer(self, fd: Any, callback: Callable[..., object], *args: Any) -> None:
        """See `asyncio.loop.add_writer`."""

    def remove_writer(self, fd: Any) -> bool:
        """See `asyncio.loop.remove_writer`."""


class _ExactEpoll(selectors.EpollSelector):
    """Epoll that waits with the resolution of select(2).

    Time-outs of epoll are milliseconds, and select(2) has no descriptors above 1023. The descriptor of an epoll is readable
    while one that it watches is ready (epoll(7)), so select waits for this one; it is made with the loop and has a low number.
    """

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Wait for `timeout` seconds at most, None: for ever; return what is ready."""
        if timeout is not None and timeout > 0:
            ready, _, _ = select.select((self.fileno(),), (), (), timeout)
            if not ready:
                return []
            timeout = 0.0
        return super().select(timeout)


class Loop(asyncio.SelectorEventLoop):
    """An asyncio event loop with exact timers that stops at the first exception of a callback.

    It waits with microsecond resolution; the timer slack of the kernel is set to its minimum for the same reason (prctl(2),
    PR_SET_TIMERSLACK).
    """

    def __init__(self) -> None:
        super().__init__(_ExactEpoll())
        self._failure: BaseException | None = None
        self.set_exception_handler(Loop.failed)
        ctypes.CDLL(None).prctl(_PR_SET_TIMERSLACK, ctypes.c_ulong(1), 0, 0, 0)

    def __del__(self) -> None:
        """Close a loop that nobody has closed, unless Ctrl-C came while it was made."""
        if hasattr(self, "_failure"):
            super().__del__()

    @staticmethod
    def failed(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Stop at an exception: the exception handler of the loop."""
        assert isinstance(loop, Loop)
        if loop._failure is None:
            loop._failure = context.get("exception") or RuntimeError(context["message"])
        loop.stop()

    def run(self, duration: float = inf) -> None:
        """Run until `stop()` or for `duration` seconds; raise the first exception of a callback."""
        limit = None if duration == inf else self.call_later(duration, self.stop)
        try:
            self.run_forever()
        finally:
            if limit is not None:
                limit.cancel()
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure


def new_loop() -> Loop:
    """Return a new loop for one or several hosts."""
    return Loop()


def spend(seconds: float) -> None:
    """Let so much time pass, to about 10 us; the last part is waited for without sleeping."""
    until = time.perf_counter() + seconds
    if seconds > _SLEEP_ERROR:
        time.sleep(seconds - _SLEEP_ERROR)
    while time.perf_counter() < until:
        pass
