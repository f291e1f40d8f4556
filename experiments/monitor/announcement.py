"""Answer a monitor of the same user with the statistics of a session that runs in this process.

A session listens at an abstract Unix socket (unix(7)) named `@mcastlab-session/USER/PROCESS/TOKEN`. Whoever connects gets one
JSON object and the end of the stream; other users get nothing. Nothing is computed while nobody asks, and the kernel removes
the name with the process, so a session that is killed is gone at once.
"""

import asyncio
import json
import os
import socket
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

from emu.attachment import peer_user
from protocols.snapshot import Measure, Snapshot

__all__ = ["PREFIX", "Announcement"]

PREFIX = "mcastlab-session/"
MOST_CLIENTS = 8
"""Monitors that are answered at a time; one more is refused."""
SLOWEST = 2.0
"""Seconds that a monitor may take to read an answer."""


class Announcement:
    """Announces one session from construction to `close`. `snapshot()` returns (time in seconds, statistics)."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        snapshot: Callable[[], tuple[float, Snapshot]],
        measures: Iterable[Measure],
    ) -> None:
        self._loop = loop
        self._snapshot = snapshot
        self._about = {
            "pid": os.getpid(),
            "command": " ".join(sys.argv[1:2]),
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
            async with asyncio.timeout(SLOWEST):
                await self._loop.sock_sendall(connection, json.dumps(self._told()).encode())

    def _told(self) -> dict[str, Any]:
        now, snapshot = self._snapshot()
        return {**self._about, "time": now, "statistics": snapshot.plain()}
