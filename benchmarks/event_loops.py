"""Compare the processor time of a NORM receiver on asyncio's event loop with that on a loop of the same methods over anyio.

    python -m benchmarks.event_loops [--size 60MB] [--rate 300Mbit] [--repeat 3] [--json]

anyio and trio have to be installed. Sender and receiver are processes on the loopback device, and each transfer is complete.
The least processor time of the receiver counts.
"""

import argparse
import asyncio
import heapq
import json
import socket
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from itertools import count
from math import inf
from typing import Any

from emu.host import UdpHost
from emu.loop import HostLoop, new_loop
from experiments.running.content import Accounted, Generated
from protocols.events import Event, FlushCompleted, ObjectReceived
from protocols.machine import Content, Group
from protocols.norm import PROTOCOL, NormConfig
from protocols.rng import Rng
from topologies.units import parse_rate, parse_size

__all__ = ["LOOPS", "main", "measure"]

LOOPS = ("asyncio", "anyio on asyncio", "anyio on trio")
ADDRESS = "127.0.0.1"
LONGEST = 60.0


class _Handle:
    def __init__(self) -> None:
        self.is_cancelled = False

    def cancel(self) -> None:
        self.is_cancelled = True


class AnyioLoop:
    """The methods of `emu.loop.HostLoop` over the task group `tasks` of anyio: a task for each socket, and one for timers."""

    def __init__(self, tasks: Any) -> None:
        import anyio

        self._anyio, self._tasks = anyio, tasks
        self._timers: list[tuple[float, int, _Handle, Callable[..., object], tuple[Any, ...]]] = []
        self._order = count()
        self._earlier = anyio.Event()
        self._scopes: dict[tuple[str, Any], Any] = {}
        self.time = time.monotonic
        tasks.start_soon(self._run_timers)

    def call_at(self, when: float, callback: Callable[..., object], *args: Any) -> Any:
        """See `asyncio.loop.call_at`."""
        handle = _Handle()
        heapq.heappush(self._timers, (when, next(self._order), handle, callback, args))
        if self._timers[0][2] is handle:
            self._earlier.set()
        return handle

    def call_later(self, delay: float, callback: Callable[..., object], *args: Any) -> Any:
        """See `asyncio.loop.call_later`."""
        return self.call_at(self.time() + delay, callback, *args)

    def call_soon(self, callback: Callable[..., object], *args: Any) -> Any:
        """See `asyncio.loop.call_soon`."""
        return self.call_at(0.0, callback, *args)

    def call_soon_threadsafe(self, callback: Callable[..., object], *args: Any) -> Any:
        """See `asyncio.loop.call_soon`; a receiver has no other thread."""
        return self.call_soon(callback, *args)

    def add_reader(self, fd: Any, callback: Callable[..., object], *args: Any) -> None:
        """See `asyncio.loop.add_reader`."""
        self._add("read", fd, self._anyio.wait_readable, callback, args)

    def remove_reader(self, fd: Any) -> bool:
        """See `asyncio.loop.remove_reader`."""
        return self._remove("read", fd)

    def add_writer(self, fd: Any, callback: Callable[..., object], *args: Any) -> None:
        """See `asyncio.loop.add_writer`."""
        self._add("write", fd, self._anyio.wait_writable, callback, args)

    def remove_writer(self, fd: Any) -> bool:
        """See `asyncio.loop.remove_writer`."""
        return self._remove("write", fd)

    def _add(self, kind: str, fd: Any, wait: Callable[[Any], Awaitable[None]], callback: Any, args: tuple[Any, ...]) -> None:
        self._remove(kind, fd)
        scope = self._scopes[kind, fd] = self._anyio.CancelScope()

        async def poll() -> None:
            with scope:
                while True:
                    await wait(fd)
                    callback(*args)

        self._tasks.start_soon(poll)

    def _remove(self, kind: str, fd: Any) -> bool:
        scope = self._scopes.pop((kind, fd), None)
        if scope is not None:
            scope.cancel()
        return scope is not None

    async def _run_timers(self) -> None:
        while True:
            while self._timers and self._timers[0][0] <= self.time():
                _, _, handle, callback, args = heapq.heappop(self._timers)
                if not handle.is_cancelled:
                    callback(*args)
            self._earlier = self._anyio.Event()
            with self._anyio.move_on_after(self._timers[0][0] - self.time() if self._timers else inf):
                await self._earlier.wait()


def _receive(loop: HostLoop, config: NormConfig, port: int, done: Callable[[], object]) -> UdpHost:
    """Run a receiver that calls `done` when an object is complete, and say that it is ready."""
    host = UdpHost(loop, PROTOCOL.codec(), interface=ADDRESS, port=port, rng=Rng(2))

    def on_event(event: Event) -> None:
        if isinstance(event, ObjectReceived):
            done()

    host.run(PROTOCOL.make_receiver(host, config, 2, _group(port)), on_event, lambda offer: Accounted())
    print("ready", flush=True)
    return host


def _group(port: int) -> Group:
    return Group(f"239.255.91.7:{port}")


async def _on_asyncio(config: NormConfig, port: int) -> None:
    done = asyncio.Event()
    host = _receive(asyncio.get_running_loop(), config, port, done.set)
    await done.wait()
    host.stop()
    host.close()


async def _on_anyio(config: NormConfig, port: int) -> None:
    import anyio

    async with anyio.create_task_group() as tasks:
        done = anyio.Event()
        host = _receive(AnyioLoop(tasks), config, port, done.set)
        await done.wait()
        host.stop()
        host.close()
        tasks.cancel_scope.cancel()


def _run_receiver(name: str, config: NormConfig, port: int) -> None:
    """Receive one object and print the seconds of processor time."""
    begin = time.process_time()
    if name == "asyncio":
        asyncio.run(_on_asyncio(config, port))
    else:
        import anyio

        anyio.run(_on_anyio, config, port, backend=name.rpartition(" ")[2])
    print(time.process_time() - begin, flush=True)


def _send(size: int, config: NormConfig, port: int) -> None:
    """Send one object."""
    loop = new_loop()
    host = UdpHost(loop, PROTOCOL.codec(), interface=ADDRESS, port=port, rng=Rng(1))
    sender = PROTOCOL.make_sender(host, config, 1, _group(port), 1)
    host.run(sender, lambda event: loop.stop() if isinstance(event, FlushCompleted) else None)
    host.call(sender.submit, Content(Generated(size, 1)))
    loop.run(LONGEST)
    host.close()
    loop.close()


def measure(name: str, size: int, rate: float) -> float:
    """Return the seconds of processor time that one transfer costs its receiver."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind((ADDRESS, 0))
        port = probe.getsockname()[1]
    config = NormConfig(rate=rate, grtt=0.01, gsize=2, robust=4)
    program = [sys.executable, "-m", "benchmarks.event_loops", "--rate", str(rate * 8), "--receiver", name, "--port", str(port)]
    with subprocess.Popen(program, stdout=subprocess.PIPE, text=True) as receiver:
        assert receiver.stdout is not None
        if receiver.stdout.readline() != "ready\n":
            raise SystemExit(f"{name}: the receiver did not start; anyio and trio have to be installed")
        _send(size, config, port)
        return float(receiver.communicate(timeout=LONGEST)[0])


def main() -> None:
    """Measure all loops in turns and print the least of each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=parse_size, default=60_000_000)
    parser.add_argument("--rate", type=parse_rate, default=37_500_000.0)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--receiver", choices=LOOPS, help=argparse.SUPPRESS)
    parser.add_argument("--port", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.receiver:
        _run_receiver(options.receiver, NormConfig(rate=options.rate, grtt=0.01, gsize=2, robust=4), options.port)
        return
    found: dict[str, list[float]] = {name: [] for name in LOOPS}
    for _ in range(options.repeat):
        for name in LOOPS:
            found[name].append(measure(name, int(options.size), options.rate))
    least = {name: min(times) for name, times in found.items()}
    if options.json:
        print(json.dumps({name: {"cpu_s": value, "ratio": value / least["asyncio"]} for name, value in least.items()}))
        return
    for name, value in least.items():
        print(f"{name:17} {value:.3f} s of processor time, {value / least['asyncio']:.2f} times asyncio's")


if __name__ == "__main__":
    main()
