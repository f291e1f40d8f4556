"""Measure the processor time of a monitor that watches many processes, all of which change every second.

    python -m benchmarks.monitor [--json] [--processes 200] [--seconds 20]

`mcastlab monitor` runs as a process of its own. The processes it watches are agents of the Distributor's management in another
process, each with a connection whose counters grow, and then as many sessions of this machine. `share` is the processor time
of the monitor by the time that passed, once while nobody looks and once while a page reads its events; 1.0 is one core.
"""

import argparse
import asyncio
import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from threading import Thread
from typing import Any
from urllib.request import urlopen

from experiments.monitor.announcement import Announcement
from experiments.session.managed_process import ManagedProcess
from protocols.snapshot import Snapshot, buffers

__all__ = ["main", "measure"]

WINDOWS = 5
"""Times that are measured one after the other."""
WARM = 4.0
"""Seconds until everything is found, before the measurement."""


class Busy:
    """A connection whose counters grow by the time."""

    endpoint = ("239.7.7.9", 5656)
    requested_from: Sequence[str] = ("10.0.0.1",)
    requested_by: Sequence[str] = ()
    is_publishing = True

    def __init__(self, number: int) -> None:
        self._number = number
        self.patterns = [f"/quotes/{number}/*", "/news/..."]

    @property
    def waiting(self) -> int:
        """Updates that wait, now more and now fewer."""
        return int(time.monotonic() * 7) % (50 + self._number)

    def statistics(self) -> dict[str, int]:
        """Return counters of the present."""
        now = int(time.monotonic() * (100 + self._number))
        names = ("bytes_sent", "data_sent", "messages_published", "bytes_received", "data_received", "messages_received")
        return {name: now * (place + 1) for place, name in enumerate((*names, "requests_received", "requests_sent"))}


def session(number: int) -> Snapshot:
    """Return the statistics of a receiver."""
    now = time.monotonic() * (100 + number)
    sender = Snapshot("sender", "7", {"data_received": now, "data_lost": now / 10, "grtt": 0.01}, {"activity": "active"})
    item = Snapshot("object", "1", {"size": 1e6, "bytes_received": now * 1000}, {"kind": "file", "state": "receiving"})
    values = {"bytes_received": now * 1000, "data_received": now, "nacks_sent": now / 50, "objects_received": number}
    parts = (sender, item, *buffers({"pending": (3, 256)}))
    return Snapshot(
        "host", "10.0.0.1", {"packets_sent": now}, {}, (Snapshot("session", "g", values, {"role": "receiver"}, parts),)
    )


async def be_processes(count: int, group: str) -> None:
    """Be so many processes of a management group."""
    loop = asyncio.get_running_loop()
    for number in range(count):
        ManagedProcess(loop, "127.0.0.1", group, f"feed {number}").add(Busy(number))
    await asyncio.Event().wait()


async def be_sessions(count: int) -> None:
    """Be so many sessions."""
    loop, began = asyncio.get_running_loop(), time.monotonic()
    for number in range(count):
        Announcement(loop, lambda own=number: (time.monotonic() - began, session(own)), ())  # type: ignore[misc]
    await asyncio.Event().wait()


@contextmanager
def running(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Run a Python module while the block lasts."""
    process = subprocess.Popen([sys.executable, "-m", *arguments], stdout=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def cpu_of(pid: int) -> float:
    """Return the processor time of the threads of a process in seconds.

    It is that of the scheduler, in nanoseconds; ticks (proc(5), stat) miss or exaggerate a process that wakes for a moment.
    """
    times = [path.read_text(encoding="ascii").split()[0] for path in Path(f"/proc/{pid}/task").glob("*/schedstat")]
    return sum(map(int, times)) * 1e-9


def shares(kind: str, count: int, seconds: float) -> dict[str, float]:
    """Return the shares of a core that a monitor of so many processes takes, and how many it knows."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        group = f"239.255.77.2:{probe.getsockname()[1]}"
    others = ["benchmarks.monitor", f"--be={kind}", f"--processes={count}", f"--group={group}"]
    watch = ["mcastlab", "monitor", "--listen", "127.0.0.1:0", "--json", "--iface", "lo", "--management", group]
    with running(*watch) as monitor:
        assert monitor.stdout is not None
        url = json.loads(monitor.stdout.readline())["url"]
        with running(*others):
            time.sleep(WARM)
            found = {"share": share(monitor.pid, seconds)}
            reader = Thread(target=read_events, args=(url, seconds + 2), daemon=True)
            reader.start()
            time.sleep(1)
            found["share_with_page"] = share(monitor.pid, seconds)
            with urlopen(f"{url}api/domain", timeout=10) as answer:
                rows = json.load(answer)["rows"]
            found["known"] = sum(row["state"] == "running" and bool(row["flows"]) for row in rows)
    return found


def share(pid: int, seconds: float) -> float:
    """Return the share of a core that a process takes for some seconds: the median of some times."""
    found = []
    for _ in range(WINDOWS):
        began, before = time.monotonic(), cpu_of(pid)
        time.sleep(seconds / WINDOWS)
        found.append((cpu_of(pid) - before) / (time.monotonic() - began))
    return round(median(found), 4)


def read_events(url: str, seconds: float) -> None:
    """Read server-sent events for some seconds, as a page does."""
    end = time.monotonic() + seconds
    with urlopen(f"{url}events", timeout=10) as events:
        while time.monotonic() < end and events.readline():
            pass


def measure(count: int, seconds: float) -> dict[str, Any]:
    """Measure a monitor of processes that management tells of, and of sessions."""
    return {
        "processes": count,
        "management": shares("processes", count, seconds),
        "sessions": shares("sessions", count, seconds),
    }


def main() -> int:
    """Run the program and return its exit code."""
    parser = argparse.ArgumentParser(description="Measure the processor time of a monitor.")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--processes", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--be", choices=("processes", "sessions"), help=argparse.SUPPRESS)
    parser.add_argument("--group", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.be is not None:
        own = be_processes(options.processes, options.group) if options.be == "processes" else be_sessions(options.processes)
        asyncio.run(own)
    result = measure(options.processes, options.seconds)
    if options.json:
        print(json.dumps(result))
        return 0
    for kind in ("management", "sessions"):
        row = result[kind]
        print(f"{kind}: {row['known']} known, {row['share']:.1%} of a core, {row['share_with_page']:.1%} while a page is open")
    return 0


if __name__ == "__main__":
    sys.exit(main())
