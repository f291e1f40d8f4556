"""A publisher at full speed beside a dead and a slow subscriber: the others get everything, in bounded memory."""

import json
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

from experiments.contract.worlds import free_port
from tests.tidy.tree import ROOT

SIZE, COUNT, POOL, CACHE = 48_000, 1500, 8_000_000, 8_000_000
GROUP = "239.7.7.64"
SLACK = 16_000_000
"""Bytes beside those of the pool: buffers of sockets and standard input, and what Python's allocator keeps."""


def start(*arguments: str, fed: bool = False) -> subprocess.Popen[str]:
    """Start mcastlab with these arguments."""
    command = [sys.executable, "-c", "from experiments.cli import main; main()", *arguments]
    return subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE if fed else None, stdout=subprocess.PIPE, text=True)


def memory(process: subprocess.Popen[str], what: str) -> int:
    """Return the memory of a process in bytes: `VmRSS` that of now, `VmHWM` the most it had."""
    lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
    return 1024 * int(next(line for line in lines if line.startswith(what)).split()[1])


def listeners(address: str) -> int:
    """Return how many sockets of this machine are members of a group on the loopback device."""
    name = socket.inet_aton(address)[::-1].hex().upper()
    device, rest = "", Path("/proc/net/igmp").read_text().splitlines()[1:]
    for line in rest:
        fields = line.split()
        device = fields[1] if not line.startswith("\t") else device
        if device == "lo" and fields[0] == name:
            return int(fields[1])
    return 0


def halting(process: subprocess.Popen[str], since: float) -> None:
    """Let a process run for a tenth of the time only."""
    process.send_signal(signal.SIGCONT if (time.monotonic() - since) % 0.5 < 0.05 else signal.SIGSTOP)


def test_a_dead_and_a_slow_subscriber_cost_the_others_nothing_and_the_publisher_no_memory(tmp_path: Path) -> None:
    # 72 MB of messages; what the publisher may keep is its pool, from which every message takes its container.
    node = tmp_path / "node.yaml"
    node.write_text(
        f"group: {GROUP}:{free_port()}\niface: lo\n"
        f"protocol: {{name: fjm2, rate: 200Mbit, pool: {POOL}, cache_size: {CACHE}, grtt: 10ms}}\n"
    )
    wanted = ["--config", str(node), "--count", str(COUNT), "--quiet", "--json", "--timeout", "100"]
    well, dead, slow = (start("sub", "t", *wanted) for _ in range(3))
    publisher = start("pub", "t", "--config", str(node), "--json", fed=True)
    try:
        assert publisher.stdin is not None
        while listeners(GROUP) < 4:
            time.sleep(0.05)
        time.sleep(0.3)
        idle, began = memory(publisher, "VmRSS"), time.monotonic()
        for number in range(COUNT + 100):
            publisher.stdin.write("x" * SIZE + "\n")
            if number == 100:
                dead.kill()
            halting(slow, began)
        publisher.stdin.flush()
        most = memory(publisher, "VmHWM")
        assert most - idle < POOL + SLACK
        told = json.loads(well.communicate(timeout=60)[0].splitlines()[-1])
        assert (told["ok"], told["messages"], told["lost"]) == (True, COUNT, 0)
    finally:
        for process in (well, dead, slow, publisher):
            process.kill()
            process.wait()
