"""The registry of an emulated network: behind a real HTTP server, on its host's own address."""

import asyncio
from typing import cast

from emu.addresses import SocketAddress
from experiments.output.extras import need
from experiments.output.prometheus import exposition
from experiments.running.role_node import RoleNode, RoleProgram
from protocols.admin.config import AdminOptions
from protocols.admin.registry import MEASURES
from protocols.hosting import PortsHost
from protocols.snapshot import measures_by_name

__all__ = ["WebRegistryProgram"]


class WebRegistryProgram(RoleProgram):
    """Runs a registry whose tunnels come by HTTP. No token is wanted: an emulated network is private.

    UnsupportedError if a library is missing.
    """

    def __init__(self, node: RoleNode) -> None:
        super().__init__(node)
        need("role admin in Mininet", "fastapi", "uvicorn", "httpx", "prometheus_client")
        self._serving: asyncio.Task[None] | None = None

    def start(self, host: PortsHost) -> None:
        """Listen, and serve from the beginning of the run on."""
        from emu.admin.service import RegistryService
        from emu.web.listening import open_server

        self.restarts += 1
        node = self.node
        address, port = cast(SocketAddress, host.address_of(*node.place))[:2]
        instance = (node.instance + self.restarts) & 0xFFFF
        service = RegistryService(host, address, node.options or AdminOptions(), instance)
        registry, measures = service.registry, measures_by_name(MEASURES)
        self.machine = registry
        server = open_server((address, port))

        async def serve() -> None:
            async with service.serving(server, lambda: exposition(registry.snapshot(host.now), measures, registry.table.most)):
                await asyncio.Event().wait()

        def begin() -> None:
            # A loop has weak references to its tasks: one that nobody else refers to is collected as garbage in the middle.
            self._serving = asyncio.get_running_loop().create_task(serve())
            self._serving.add_done_callback(_raise)

        service.start()
        host.later(host.now, begin)


def _raise(task: asyncio.Task[None]) -> None:
    """Raise what ended a task, which stops a node's event loop."""
    if not task.cancelled():
        task.result()
