"""Programs on the hosts of an emulated network, for tests that need real processes. For use in isolated namespaces."""

import json
import socket
import subprocess
import sys
import time
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from emu.network import EmulatedNetwork
from emu.plan import plan_emulation
from topologies.spec import Topology

__all__ = ["MCASTLAB", "NRL", "Lab", "run_commands"]

MCASTLAB = [sys.executable, "-c", "from experiments.cli import main; main()"]
NRL = [sys.executable, "-m", "emu.peers.nrl_norm"]


def run_commands(*commands: str) -> None:
    """Run commands of ip(8) in the network namespace of this process."""
    subprocess.run(["ip", "-batch", "-"], input="\n".join(commands), text=True, check=True)


class Lab:
    """A network with processes on its hosts, which end with the namespaces at the latest."""

    def __init__(self, topology: Topology) -> None:
        self.network = EmulatedNetwork(plan_emulation(topology))
        self._running: list[subprocess.Popen[str]] = []

    def device(self, host: str) -> str:
        """Return the host's only network device."""
        return next(name for name in self._read(host, "dev").replace(":", " ").split() if name.endswith("-eth0"))

    def start(self, host: str, command: list[str]) -> "subprocess.Popen[str]":
        """Start a command on a host; `end` reads its output."""
        full = ["mnexec", "-a", str(self.network.pid(host)), *command]
        self._running.append(subprocess.Popen(full, stdout=subprocess.PIPE, text=True))
        return self._running[-1]

    def await_join(self, host: str, group: str) -> None:
        """Wait until the host is a member of the group."""
        # IPv4 groups are listed as integers in host byte order.
        table, number = "igmp6", ip_address(group).packed.hex()
        if ":" not in group:
            table, number = "igmp", f"{int.from_bytes(socket.inet_aton(group), sys.byteorder):08X}"
        deadline = time.monotonic() + 15
        while number not in self._read(host, table):
            assert time.monotonic() < deadline, f"{host} does not join {group}"
            time.sleep(0.01)

    def await_port(self, host: str, port: int) -> None:
        """Wait until a program on the host receives at the UDP port."""
        deadline = time.monotonic() + 15
        while not any(f":{port:04X} " in self._read(host, table) for table in ("udp", "udp6")):
            assert time.monotonic() < deadline, f"no program on {host} receives at port {port}"
            time.sleep(0.01)

    def await_capture(self, host: str) -> None:
        """Wait until a program on the host captures packets."""
        deadline = time.monotonic() + 15
        while len(self._read(host, "packet").splitlines()) < 2:
            assert time.monotonic() < deadline, f"no program captures on {host}"
            time.sleep(0.01)

    def _read(self, host: str, name: str) -> str:
        return Path(f"/proc/{self.network.pid(host)}/net/{name}").read_text()

    def end(self, process: "subprocess.Popen[str]", timeout: float = 40) -> list[dict[str, Any]]:
        """Wait for a process and return the JSON lines it printed, with its exit code in the last one."""
        output, _ = process.communicate(timeout=timeout)
        lines: list[dict[str, Any]] = [json.loads(line) for line in output.splitlines()]
        lines[-1]["code"] = process.returncode
        return lines
