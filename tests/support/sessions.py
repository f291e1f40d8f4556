"""Sessions of tests, over multicast on the loopback device."""

import asyncio
import gc
import os
from collections.abc import Coroutine
from contextlib import AbstractAsyncContextManager
from typing import Any, TypeVar

import mcastlab
from mcastlab import ContentReceived, Event, Session

__all__ = ["QUICK", "contents", "first", "opened", "opened_on", "run", "sockets"]

QUICK: dict[str, Any] = {"rate": "100Mbit", "grtt": "5ms", "robust": 4, "backoff": 0}
T = TypeVar("T")
E = TypeVar("E", bound=Event)


def opened(group: str, **options: Any) -> AbstractAsyncContextManager[Session]:
    """Return a session on the loopback device that is quick."""
    return opened_on(group, **{**QUICK, **options})


def opened_on(group: str, **options: Any) -> AbstractAsyncContextManager[Session]:
    """Return a session on the loopback device."""
    return mcastlab.session(group, "127.0.0.1", **options)


def run(main: Coroutine[Any, Any, T], seconds: float = 20.0) -> T:
    """Run a coroutine; it must leave no task behind, and end in time."""

    async def watched() -> T:
        async with asyncio.timeout(seconds):
            result = await main
        assert asyncio.all_tasks() == {asyncio.current_task()}
        return result

    return asyncio.run(watched())


async def first(where: Session, kind: type[E]) -> E:
    """Return the next event of a kind."""
    async for event in where:
        if isinstance(event, kind):
            return event
    raise AssertionError(f"the session ended without {kind.__name__}")


async def contents(where: Session, count: int) -> list[bytes]:
    """Return the content of the next objects."""
    return [(await first(where, ContentReceived)).read() for _ in range(count)]


def sockets() -> list[str]:
    """Return what the descriptors of this process are, sorted: sockets and files, without the descriptor of the listing."""
    # Sockets that earlier tests left to the garbage collection would be closed at any time.
    gc.collect()
    found = []
    for name in os.listdir("/proc/self/fd"):
        try:
            found.append(os.readlink(f"/proc/self/fd/{name}"))
        except FileNotFoundError:
            continue
    return sorted(item for item in found if not item.startswith("/proc"))
