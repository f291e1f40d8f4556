"""A registry on a real host: the machine, the board of its page, and its web server."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final

from emu.admin.board import Board
from emu.admin.web import Metrics, application
from emu.web.serving import serving
from protocols.admin.config import AdminOptions
from protocols.admin.events import RegistryOpened
from protocols.admin.registry import Registry
from protocols.events import Event
from protocols.hosting import PortsHost

__all__ = ["RegistryService"]

KEPT: Final = 2
"""A connection is kept so many leases long while its tunnel does not renew."""


class RegistryService:
    """The registry on a host at an IP address; `told` is called with each of its events."""

    def __init__(
        self,
        host: PortsHost,
        address: str,
        options: AdminOptions,
        instance: int = 1,
        told: Callable[[Event], None] = lambda event: None,
    ) -> None:
        self._host, self._address, self._told = host, address, told
        self._is_open = asyncio.Event()
        self.registry = Registry(host, options, instance, listens=False)
        self.board = Board(self.registry, lambda: host.now)

    def start(self) -> None:
        """Run the machine."""
        self._host.run(self.registry, self._heard)

    def _heard(self, event: Event) -> None:
        if isinstance(event, RegistryOpened):
            self._is_open.set()
        self.board.heard(event)
        self._told(event)

    @asynccontextmanager
    async def serving(
        self, server: socket.socket, metrics: Metrics, hosts: frozenset[str] = frozenset(), secret: str | None = None
    ) -> AsyncIterator[None]:
        """Serve on a socket that listens, from when the state is read, while the context lasts; see `application`."""
        await self._is_open.wait()
        app = application(self._host, self._address, self.registry, self.board, metrics, hosts, secret)
        kept = int(KEPT * self.registry.options.lease) + 1
        async with serving(app, server, self.board.end, kept):
            yield
