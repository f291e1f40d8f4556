"""Run a web application in an event loop with other tasks, and end it while its pages are still open."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Final

import uvicorn

from emu.loop import Loop

__all__ = ["MOST_CONNECTIONS", "options_of", "serving", "tolerant"]

MOST_CONNECTIONS: Final = 4096
_GRACE: Final = 1
"""Seconds for requests that are being answered when the server ends."""
USUAL: Final = 5
"""Seconds for which a connection without requests is kept."""


def options_of(application: Any, most: int, kept: int = USUAL) -> uvicorn.Config:
    """Return the options of a server with at most `most` connections, `kept` so many seconds without a request."""
    return uvicorn.Config(
        application,
        http="h11",
        ws="none",
        log_level="error",
        access_log=False,
        timeout_graceful_shutdown=_GRACE,
        timeout_keep_alive=kept,
        server_header=False,
        limit_concurrency=most,
    )


class _Guest(uvicorn.Server):
    """A server that leaves signals to the program it is in."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Do nothing."""
        yield


@asynccontextmanager
async def serving(application: Any, server: socket.socket, end: Callable[[], None], kept: int = USUAL) -> AsyncIterator[None]:
    """Serve on a socket that listens, while the context lasts. `end` ends the streams of events, which would go on for ever.

    A connection is `kept` so many seconds without a request.
    """
    guest = _Guest(options_of(application, MOST_CONNECTIONS, kept))
    task = asyncio.create_task(guest.serve(sockets=[server]))
    try:
        yield
    finally:
        end()
        guest.should_exit = True
        await asyncio.wait({task})
        task.result()


@contextmanager
def tolerant(loop: Loop) -> Iterator[None]:
    """Let a loop that stops at the first exception go on after those of single connections of asyncio's.

    Such are a connection that breaks while it is written to, and one that can't be accepted since too many files are open.
    """

    def handle(loop: Any, context: dict[str, Any]) -> None:
        if not {"transport", "socket", "protocol"} & context.keys():
            Loop.failed(loop, context)

    loop.set_exception_handler(handle)
    yield
    loop.set_exception_handler(Loop.failed)
