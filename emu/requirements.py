"""What this machine can emulate: small probes, each with the command that brings what is missing."""

import importlib.util
import os
import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass

from protocols.errors import UnsupportedError

__all__ = [
    "APT",
    "KERNEL",
    "LOSS",
    "ROUTING",
    "TOOLS",
    "TRUNKS",
    "KernelFeature",
    "check_kernel",
    "check_tools",
    "find_system_tools",
    "run",
]

APT = "sudo apt-get install -y --no-install-recommends"
"""The command that installs packages named after it."""
SYSTEM = ("/usr/local/sbin", "/usr/sbin", "/sbin")
TOOLS = {
    "mnexec": "mininet",
    "brctl": "bridge-utils",
    "ifconfig": "net-tools",
    "ethtool": "ethtool",
    "ip": "iproute2",
    "bridge": "iproute2",
    "tc": "iproute2",
}
"""Programs emulation runs, with the Debian package of each."""
LOSS = "4,32 0 0 4294963256,53 0 1 {threshold},6 0 0 4294967295,6 0 0 2"
"""Classic BPF: load a random word; below the threshold the packet is dropped (2), else the next filter is asked (-1)."""


@dataclass(frozen=True, slots=True)
class KernelFeature:
    """Commands that work on a kernel which has the feature; they leave nothing behind when they do."""

    name: str
    module: str
    commands: tuple[str, ...]


KERNEL = {
    "veth": KernelFeature("veth pairs", "veth", ("ip link add pv0 type veth peer name pv1", "ip link del pv0")),
    "bridge": KernelFeature("bridges", "bridge", ("ip link add pb0 type bridge", "ip link del pb0")),
    "rate": KernelFeature(
        "the token bucket (tbf)",
        "sch_tbf",
        ("tc qdisc add dev lo root tbf rate 1mbit burst 4000 limit 4000", "tc qdisc del dev lo root"),
    ),
    "loss": KernelFeature(
        "random loss (clsact with a BPF filter)",
        "sch_ingress cls_bpf",
        (
            "tc qdisc add dev lo clsact",
            f"tc filter add dev lo ingress bpf da bytecode '{LOSS.format(threshold=1)}'",
            "tc qdisc del dev lo clsact",
        ),
    ),
}
"""Probes by the feature they stand for; they change the network they run in, so they run inside a world."""


ROUTING = {
    "ifb": KernelFeature(
        "one rate for several ports of a router (ifb)", "ifb", ("ip link add pi0 type ifb", "ip link del pi0")
    ),
    "redirect": KernelFeature(
        "leading packets through another device (u32, mirred)",
        "cls_u32 act_mirred",
        (
            "tc qdisc add dev lo clsact",
            "tc filter add dev lo egress protocol all u32 match u32 0 0 action mirred egress redirect dev lo",
            "tc qdisc del dev lo clsact",
        ),
    ),
    "classes": KernelFeature(
        "turns at a shared rate (htb with a BPF classifier)",
        "sch_htb cls_bpf",
        (
            "tc qdisc add dev lo root handle 1: htb",
            "tc filter add dev lo parent 1: protocol all bpf bytecode '1,6 0 0 65552'",
            "tc qdisc del dev lo root",
        ),
    ),
}
"""What models of routers take besides."""


TRUNKS = {
    "802.1Q": KernelFeature(
        "one cable for all networks of a router (802.1Q)",
        "8021q",
        (
            "ip link add pq0 type veth peer name pq1",
            "ip link add link pq0 name pq0.2 type vlan id 2 || { ip link del pq0; exit 1; }",
            "ip link del pq0",
        ),
    ),
    "vxlan": KernelFeature(
        "the same on kernels without 802.1Q (VXLAN)",
        "vxlan",
        ("ip link add px0 type vxlan id 2 dev lo dstport 4789", "ip link del px0"),
    ),
}
"""What the one cable of a router of `mac: single` takes; one of these is enough."""


def run(command: str, *, pid: int | None = None, stdin: str = "") -> str:
    """Run a shell command, in the network namespace of process `pid` if given; its output. Raises CalledProcessError."""
    full = ["sh", "-c", command] if pid is None else ["mnexec", "-a", str(pid), "sh", "-c", command]
    return subprocess.run(full, input=stdin, capture_output=True, text=True, check=True).stdout


def find_system_tools() -> None:
    """Let this process and its children find programs for the administrator, which are on no ordinary user's path."""
    path = os.environ.get("PATH", os.defpath).split(os.pathsep)
    os.environ["PATH"] = os.pathsep.join([*path, *(folder for folder in SYSTEM if folder not in path)])


def check_tools() -> None:
    """UnsupportedError naming every program and package that emulation needs and this machine lacks."""
    find_system_tools()
    missing = sorted({package for tool, package in TOOLS.items() if shutil.which(tool) is None})
    if missing:
        lacking = ", ".join(tool for tool in TOOLS if shutil.which(tool) is None)
        raise UnsupportedError(f"emulation needs {lacking}: {APT} {' '.join(missing)}")
    if importlib.util.find_spec("mininet") is None or importlib.util.find_spec("distutils") is None:
        raise UnsupportedError("emulation needs the Python package mininet: pip install mininet setuptools")


def check_kernel(features: Iterable[str]) -> None:
    """UnsupportedError naming the first of `features` that this kernel lacks. Call it inside a world."""
    for name in features:
        feature = {**KERNEL, **ROUTING, **TRUNKS}[name]
        for command in feature.commands:
            try:
                run(command)
            except subprocess.CalledProcessError as error:
                reason = error.stderr.strip().splitlines()[-1:] or ["no reason given"]
                raise UnsupportedError(
                    f"emulation needs {feature.name}, which this kernel lacks ({reason[0]}): sudo modprobe -a {feature.module}"
                ) from None
