"""The web server of a registry in an emulated network."""

import asyncio
import gc

import httpx

from emu.host import UdpHost
from emu.loop import new_loop
from experiments.contract.worlds import free_port
from experiments.running.role_node import RoleNode
from experiments.running.web_registry import WebRegistryProgram
from protocols.admin.config import AdminOptions
from protocols.admin.registry import make_registry
from protocols.admin.wire import AdminCodec
from protocols.machine import Group
from protocols.rng import Rng
from protocols.roles import Role


def test_it_serves_on_after_its_garbage_is_collected() -> None:
    """An event loop has weak references to its tasks alone."""
    port, statuses = free_port(), []

    async def ask() -> None:
        loop, names = asyncio.get_running_loop(), {"a": ("127.0.0.1", port)}
        host = UdpHost(loop, AdminCodec(), interface="127.0.0.1", port=0, rng=Rng(1), names=names)
        program = WebRegistryProgram(RoleNode(Role(make_registry), None, 1, Group("all"), ("a", 0), AdminOptions()))
        program.start(host)
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", trust_env=False) as http:
            for _ in range(3):
                await asyncio.sleep(0.1)
                gc.collect()
                statuses.append((await http.get("/nodes")).status_code)
        host.close()

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(ask())
    assert statuses == [200, 200, 200]
