"""`mcastlab send` and `mcastlab recv` as separate processes, over multicast on the loopback device."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

__all__ = ["COMMAND", "QUICK", "Processes", "contents", "events", "members", "until"]

COMMAND = [sys.executable, "-c", "from experiments.cli import main; main()"]
QUICK = ["--rate", "50Mbit", "--grtt", "10ms", "--robust", "5"]


def until(condition: Callable[[], object], process: "subprocess.Popen[str]", seconds: float = 30.0) -> None:
    """Wait until a condition holds while a process runs."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.01)


def contents(folder: Path) -> dict[str, bytes]:
    """Return the files of a folder with their contents, without lock files."""
    return {path.name: path.read_bytes() for path in folder.iterdir() if not path.name.endswith(".lock")}


def events(process: "subprocess.Popen[str]") -> list[dict[str, Any]]:
    """Parse every line of stdout as a JSON object; the last one is the summary."""
    out, err = process.communicate(timeout=60)
    assert err == ""
    found = [json.loads(line) for line in out.splitlines()]
    assert found[-1]["event"] == "summary"
    return found


def members(group: str) -> int:
    """Return the number of sockets bound to a group's port."""
    return len(_sockets(group))


def _sockets(group: str) -> list[list[str]]:
    """Return the rows of the kernel's table with a group's port."""
    wanted = f":{int(group.rpartition(':')[2]):04X}"
    rows = [row.split() for row in Path("/proc/net/udp").read_text(encoding="ascii").splitlines()[1:]]
    return [row for row in rows if row[1].endswith(wanted) and not row[1].startswith("0100007F")]


class Processes:
    """Processes of one group; those that still run are killed by `close`."""

    def __init__(self, group: str, interface: str = "127.0.0.1") -> None:
        self.group = group
        self._interface = interface
        self._running: list[subprocess.Popen[str]] = []

    def start(self, *arguments: str | Path, descriptors: int = 0, errors: Path | None = None) -> "subprocess.Popen[str]":
        """Start `mcastlab ARGUMENTS --group ... --iface ...`.

        `descriptors` is the most it may have (0: as many as here); its stderr becomes the file `errors` (None: a pipe).
        """
        limit = ["sh", "-c", f'ulimit -n {descriptors}; exec "$@"', "-"] if descriptors else []
        full = [*limit, *COMMAND, *map(str, arguments), "--group", self.group, "--iface", self._interface]
        stderr = subprocess.PIPE if errors is None else os.open(errors, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        process = subprocess.Popen(full, stdout=subprocess.PIPE, stderr=stderr, text=True)
        if errors is not None:
            os.close(stderr)
        self._running.append(process)
        return process

    def receiver(self, *arguments: str | Path, descriptors: int = 0, errors: Path | None = None) -> "subprocess.Popen[str]":
        """Start a receiver and wait until it has joined the group."""
        before = self.members()
        process = self.start("recv", *arguments, descriptors=descriptors, errors=errors)
        until(lambda: self.members() > before, process)
        return process

    def close(self) -> None:
        """Kill what still runs."""
        for process in self._running:
            if process.poll() is None:
                process.kill()
            process.communicate()

    def members(self) -> int:
        """Return the number of sockets bound to the group's port."""
        return members(self.group)

    def waiting(self) -> int:
        """Return the bytes that wait in the buffers of these sockets."""
        return sum(int(row[4].rpartition(":")[2], 16) for row in _sockets(self.group))
