"""Check the programs and kernel features an emulation needs; each failure names the command that installs what is missing."""

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
"""Command that installs the Debian packages appended to it."""
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
"""Programs that emulation runs, each with its Debian package."""
LOSS = "6,40 0 0 4293918726,69 2 0 8191,32 0 0 4294963256,53 0 1 {threshold},6 0 0 4294967295,6 0 0 2"
"""Classic BPF filter that drops an IP packet with probability `threshold` / 2**32, and a datagram in fragments by its first.

Without a fragment offset it loads a random word and returns TC_ACT_SHOT (2) below the threshold, else TC_ACT_UNSPEC (-1: next
filter); tc-bpf(8). A link with fragments of its own, by its `mtu`, is in user space.
"""


@dataclass(frozen=True, slots=True)
class KernelFeature:
    """A kernel feature and shell commands that succeed only if it is present; they leave nothing behind when they succeed."""

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
"""Features by name. The probes change the network configuration: run them in a namespace of their own."""


ROUTING = {
    "ifb": KernelFeature(
        "a rate shared by the ports of a router (ifb)", "ifb", ("ip link add pi0 type ifb", "ip link del pi0")
    ),
    "redirect": KernelFeature(
        "packet redirection to another device (u32, mirred)",
        "cls_u32 act_mirred",
        (
            "tc qdisc add dev lo clsact",
            "tc filter add dev lo egress protocol all u32 match u32 0 0 action mirred egress redirect dev lo",
            "tc qdisc del dev lo clsact",
        ),
    ),
    "classes": KernelFeature(
        "fair sharing of a rate (htb with a BPF classifier)",
        "sch_htb cls_bpf",
        (
            "tc qdisc add dev lo root handle 1: htb",
            "tc filter add dev lo parent 1: protocol all bpf bytecode '1,6 0 0 65552'",
            "tc qdisc del dev lo root",
        ),
    ),
}
"""Further features that router models use, by name."""


TRUNKS = {
    "802.1Q": KernelFeature(
        "VLAN trunks of routers (802.1Q)",
        "8021q",
        (
            "ip link add pq0 type veth peer name pq1",
            "ip link add link pq0 name pq0.2 type vlan id 2 || { ip link del pq0; exit 1; }",
            "ip link del pq0",
        ),
    ),
    "vxlan": KernelFeature(
        "trunks of routers on kernels without 802.1Q (VXLAN)",
        "vxlan",
        ("ip link add px0 type vxlan id 2 dev lo dstport 4789", "ip link del px0"),
    ),
}
"""Encapsulations for the trunk of a router with `mac: single`, by name; one is enough."""


def run(command: str, *, pid: int | None = None, stdin: str = "") -> str:
    """Run a shell command, in the network namespace of process `pid` if given, and return its standard output.

    Raises CalledProcessError when its exit status is not 0.
    """
    full = ["sh", "-c", command] if pid is None else ["mnexec", "-a", str(pid), "sh", "-c", command]
    return subprocess.run(full, input=stdin, capture_output=True, text=True, check=True).stdout


def find_system_tools() -> None:
    """Append the system administration folders to PATH, which users' PATH lacks, for this process and its children."""
    path = os.environ.get("PATH", os.defpath).split(os.pathsep)
    os.environ["PATH"] = os.pathsep.join([*path, *(folder for folder in SYSTEM if folder not in path)])


def check_tools() -> None:
    """Raise UnsupportedError naming every missing program with its package; also for the Python package mininet."""
    find_system_tools()
    missing = sorted({package for tool, package in TOOLS.items() if shutil.which(tool) is None})
    if missing:
        lacking = ", ".join(tool for tool in TOOLS if shutil.which(tool) is None)
        raise UnsupportedError(f"emulation needs {lacking}: {APT} {' '.join(missing)}")
    if importlib.util.find_spec("mininet") is None or importlib.util.find_spec("distutils") is None:
        raise UnsupportedError("emulation needs the Python package mininet: pip install 'mcastlab[emu]'")


def check_kernel(features: Iterable[str]) -> None:
    """Raise UnsupportedError naming the first of `features` that this kernel lacks. Call it in a namespace of its own."""
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
