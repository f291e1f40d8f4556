"""The life of what a program enters by `async with`: until the end of the block, or until it fails in the background."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Iterable
from contextlib import nullcontext, suppress
from types import TracebackType
from typing import ClassVar

from emu.host import UdpHost
from experiments.session.guarded_loop import GuardedLoop
from protocols.errors import TransferError, UsageError

__all__ = ["Lifetime", "SessionClosed"]


class SessionClosed(TransferError):
    """The block of a session, a connection or a bus has ended."""


class Lifetime(ABC):
    """A session, a connection or a bus, named by `_what`, with hosts of its own.

    Leaving the block waits until what was submitted is sent; an exception or a cancellation of the block closes at once. If a
    callback of the event loop raises, every call that waits raises TransferError, and so does the end of the block.
    """

    _what: ClassVar[str]
    _loop: GuardedLoop

    def __init__(self) -> None:
        self._is_entered = False
        self.is_closed = False
        """Whether the block has ended, or what it is about has failed."""
        self._failure: Exception | None = None

    def _guard(self) -> GuardedLoop:
        """Return the running event loop, guarded, at the beginning of the block. UsageError for a second block."""
        if self._is_entered:
            raise UsageError(f"a {self._what} is entered once; make another one")
        self._is_entered = True
        self._loop = GuardedLoop(asyncio.get_running_loop(), self._fail)
        return self._loop

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Wait until everything is sent if the block ended normally, then close."""
        try:
            if kind is None and not self.is_closed:
                await self._finish()
        finally:
            self._close()
        if kind is None and self._failure is not None:
            raise self._ended() from self._failure

    @abstractmethod
    async def _finish(self) -> None:
        """Wait until everything is sent."""

    @abstractmethod
    def _release(self, error: TransferError) -> None:
        """Raise an error in all calls that wait, and close what is not a host."""

    @abstractmethod
    def _own_hosts(self) -> Iterable[UdpHost]:
        """Return the hosts that are open."""

    def _check(self) -> None:
        if self.is_closed:
            raise self._ended()

    def _fail(self, error: Exception) -> None:
        """Close after an exception in a callback of the event loop."""
        self._failure = error
        self._close()

    def _ended(self) -> TransferError:
        if self._failure is None:
            return SessionClosed(f"the {self._what} is closed")
        return TransferError(f"the {self._what} failed: {self._failure!r}")

    def _close(self) -> None:
        """Close everything that is open."""
        if self.is_closed:
            return
        self.is_closed = True
        error = self._ended()
        error.__cause__ = self._failure
        self._release(error)
        self._loop.close()
        for host in self._own_hosts():
            try:
                with suppress(Exception) if self._failure is not None else nullcontext():
                    host.stop()
            finally:
                host.close()
