"""`mcastlab admin` as a process, and tunnels that are in its list."""

import asyncio
import json
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from tempfile import TemporaryFile
from typing import IO, Any

from emu.admin.client import HttpRegistryClient
from protocols.admin.node import Node
from protocols.admin.registration import Registration
from tests.support.transfers import COMMAND

__all__ = ["GROUP", "Served", "Tunnel", "admin", "start", "until"]

GROUP = "239.1.2.3:6003"


@dataclass(frozen=True, slots=True)
class Served:
    """A registry: its process, its address, and the file with what it prints."""

    process: subprocess.Popen[str]
    url: str
    output: IO[str]

    def printed(self) -> list[str]:
        """Return the lines that it has printed."""
        self.output.seek(0)
        return self.output.readlines()


def start(*options: str) -> Served:
    """Start a registry, on a free port if none is named."""
    listen = [] if "--listen" in options else ["--listen", "127.0.0.1:0"]
    output = TemporaryFile("w+")  # noqa: SIM115
    process = subprocess.Popen(
        [*COMMAND, "admin", "--json", *listen, *options], stdout=output, stderr=subprocess.PIPE, text=True
    )
    served = Served(process, "", output)
    while not any(line.endswith("\n") for line in served.printed()):
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)
    return replace(served, url=json.loads(served.printed()[0])["url"])


@contextmanager
def admin(*options: str) -> Iterator[str]:
    """Start a registry on a free port; yield its address. It must end without a word on stderr."""
    served = start(*options)
    try:
        yield served.url
    finally:
        served.process.terminate()
        _, err = served.process.communicate(timeout=20)
        assert err == ""


class Tunnel:
    """A tunnel without a network: a client of the registry with made-up counters. `told` has the lists that it received."""

    def __init__(self, url: str, name: str, site: int, port: int, **options: Any) -> None:
        self.name = name
        self.told: list[tuple[float, Sequence[Node]]] = []
        self.begin = time.monotonic()
        registration = Registration(name, site, port, GROUP)
        self.client = HttpRegistryClient(url, registration, self._update, self._counters, address="127.0.0.1", **options)

    def _update(self, nodes: Sequence[Node]) -> None:
        self.told.append((time.monotonic(), nodes))

    def _counters(self) -> dict[str, float]:
        sent = 1000.0 * (time.monotonic() - self.begin)
        return {"ring_used": 25, "ring_size": 100, "carried": sent / 100, "bytes_out": sent, "bytes_in": 0, "dropped": 3}

    def peers(self) -> set[str]:
        """Return the names of the tunnels in the list that it received last."""
        return {node.name for node in self.told[-1][1]} if self.told else set()

    async def serve(self) -> None:
        """Be in the list until cancelled."""
        async with self.client:
            await self.client.run()


async def until(condition: Callable[[], object], seconds: float) -> None:
    """Wait until a condition holds."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        await asyncio.sleep(0.01)
