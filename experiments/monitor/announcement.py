"""Answer a monitor of the same user with the statistics of a session that runs in this process.

A session listens at an abstract Unix socket (unix(7)) named `@mcastlab-session/USER/PROCESS/TOKEN`. Whoever connects gets two
lines of JSON, the time and the statistics, and two more for each byte that it sends; other users get nothing. Nothing is
computed while nobody asks, and the kernel removes the name with the process, so a session that is killed is gone at once.
"""

import asyncio
import json
import os
import socket
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any

from emu.attachment import peer_user
from protocols.snapshot import Measure, Snapshot

__all__ = ["PREFIX", "Announcement", "encoded"]

PREFIX = "mcastlab-session/"


def encoded(about: Mapping[str, Any], time: float, snapshot: Snapshot) -> bytes:
    """Return an answer; `about` has what does not change."""
    return f"{json.dumps(time)}\n{json.dumps({**about, 'statistics': snapshot.plain()})}\n".encode()


MOST_CLIENTS = 8
"""Monitors that are answered at a time; one more is refused."""
SLOWEST = 2.0
"""Seconds that a monitor may take to read an answer."""


class Announcement:
    """Announces one session from construction to `close`. `snapshot()` returns (time in seconds, statistics).

    `managed` is the id by which the process announces itself on a management group, if it does.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        snapshot: Callable[[], tuple[float, Snapshot]],
        measures: Iterable[Measure],
        managed: int | None = None,
    ) -> None:
        self._loop = loop
        self._snapshot = snapshot
        self._about = {
            "pid": os.getpid(),
            "command": " ".join(sys.argv[1:2]),
            "managed": managed,
            "measures": [[each.name, each.kind, each.unit, each.help] for each in measures],
        }
        self._clients: set[asyncio.Task[None]] = set()
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.setblocking(False)
        self._socket.bind(f"\0{PREFIX}{os.geteuid()}/{os.getpid()}/{os.urandom(4).hex()}")
        self._socket.listen()
        loop.add_reader(self._socket, self._accept)

    def close(self) -> None:
        """Stop answering."""
        self._loop.remove_reader(self._socket)
        self._socket.close()
        for task in list(self._clients):
            task.cancel()

    def _accept(self) -> None:
        with suppress(OSError):
            connection, _ = self._socket.accept()
            connection.setblocking(False)
            if len(self._clients) >= MOST_CLIENTS or peer_user(connection) not in (0, os.geteuid()):
                connection.close()
                return
            task = self._loop.create_task(self._answer(connection))
            self._clients.add(task)
            task.add_done_callback(self._clients.discard)

    async def _answer(self, connection: socket.socket) -> None:
        with connection, suppress(OSError, TimeoutError):
            asked = b"?"
            while asked:
                async with asyncio.timeout(SLOWEST):
                    await self._loop.sock_sendall(connection, encoded(self._about, *self._snapshot()))
                asked = await self._loop.sock_recv(connection, 1)
