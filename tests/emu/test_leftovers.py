"""A run in Mininet leaves nothing behind, however it ends."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from emu.requirements import run
from tests.emu.lab import MCASTLAB
from tests.emu.test_namespaces import alive, descendants

pytestmark = pytest.mark.emu

JOINING = (
    "import os, socket, time; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); "
    "s.setsockopt(0, 35, socket.inet_aton(os.environ['MCASTLAB_GROUP']) + bytes(4)); time.sleep(999)"
)
SCENARIO = {
    "name": "endless",
    "topology": {"kind": "star", "receivers": 4, "trunk": {"rate": "20Mbit", "queue": 50}, "link": {"down": {"loss": "2%"}}},
    "protocol": {"name": "norm", "rate": "4Mbit", "grtt": "50ms"},
    "workload": {"kind": "file", "size": "100MB"},
    "nodes": {"r3": {"run": [sys.executable, "-c", JOINING]}},
    "faults": [
        {"at": "100ms", "partition": [["r1"], "rest"]},
        {"at": "200ms", "crash": "r2", "for": "200ms"},
        {"at": "300ms", "slow": "r4", "takes": "1ms"},
    ],
    "capture": ["sender", "s1"],
    "duration": "300s",
}
KINDS = ("net", "mnt", "pid")


def namespaces(pids: list[int]) -> set[str]:
    """Return the namespaces of these processes."""
    found = set()
    for pid in pids:
        for kind in KINDS:
            try:
                found.add(os.readlink(f"/proc/{pid}/ns/{kind}"))
            except OSError:
                continue
    return found


def all_processes() -> list[int]:
    """Return all processes of this machine."""
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def host_state() -> dict[str, list[str]]:
    """Return links, queues and filters of the machine outside."""
    links = sorted(os.listdir("/sys/class/net"))
    queues = sorted(run("tc qdisc show").splitlines())
    filters = [run(f"tc filter show dev {link} ingress 2>&1 || true") for link in links]
    return {"links": links, "queues": queues, "filters": filters}


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_killed_run_leaves_nothing_behind(number: signal.Signals, tmp_path: Path) -> None:
    (tmp_path / "scenario.yaml").write_text(json.dumps(SCENARIO))
    (tmp_path / "temporary").mkdir()
    before = host_state()
    command = [*MCASTLAB, "run", "scenario.yaml", "--on", "emu", "--live", "--out", "seen"]
    where = os.environ | {"TMPDIR": str(tmp_path / "temporary")}
    with subprocess.Popen(
        command, cwd=tmp_path, stderr=subprocess.PIPE, text=True, start_new_session=True, env=where
    ) as process:
        assert process.stderr is not None
        # The live view prints its first line after one second of the run.
        line = process.stderr.readline()
        assert line.startswith("1 s: "), line
        below = descendants(process.pid)
        isolated = namespaces(below) - namespaces([os.getpid()])
        # The switch, five hosts, as many nodes, the command, tc, the capture; and at least six network namespaces.
        assert len(below) >= 14
        assert len([name for name in isolated if name.startswith("net")]) >= 6
        # The kernel may reuse numbers of removed namespaces, for processes that do not exist yet.
        others = all_processes()
        process.send_signal(number)
        process.wait(10)
    until = time.monotonic() + 10
    while (alive(below) or namespaces(others) & isolated) and time.monotonic() < until:
        time.sleep(0.02)
    assert alive(below) == []
    assert not namespaces(others) & isolated
    assert host_state() == before
    assert list((tmp_path / "temporary").iterdir()) == []


def test_a_capture_of_a_killed_run_ends_with_a_whole_block(tmp_path: Path) -> None:
    scenario = {key: value for key, value in SCENARIO.items() if key not in ("nodes", "faults")}
    (tmp_path / "scenario.yaml").write_text(json.dumps(scenario))
    command = [*MCASTLAB, "run", "scenario.yaml", "--on", "emu", "--live", "--out", "seen"]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True, start_new_session=True) as process:
        assert process.stderr is not None
        assert process.stderr.readline().startswith("1 s: ")
        process.kill()
    data, at, packets = (tmp_path / "seen" / "captures" / "sender.pcapng").read_bytes(), 0, 0
    while at < len(data):
        length = int.from_bytes(data[at + 4 : at + 8], "little")
        assert int.from_bytes(data[at + length - 4 : at + length], "little") == length
        packets += data[at] == 6
        at += length
    assert at == len(data)
    assert packets > 200
