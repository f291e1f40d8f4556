"""Everything emulation can use, looked for one by one: what this machine has, and the command that brings what it lacks."""

import ctypes.util
import importlib.util
import os
import shutil
import socket
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from emu.namespaces import run_isolated
from emu.requirements import APT, KERNEL, ROUTING, TOOLS, TRUNKS, KernelFeature, find_system_tools, run
from emu.tap import open_tap
from protocols.errors import UnsupportedError

__all__ = ["Capability", "list_capabilities"]

_MRT_INIT = 200
_OPTIONAL = {
    "netem": KernelFeature(
        "delay, jitter and loss in the kernel (netem)",
        "sch_netem",
        ("tc qdisc add dev lo root netem delay 1ms", "tc qdisc del dev lo root"),
    ),
}


@dataclass(frozen=True, slots=True)
class Capability:
    """One thing looked for: what it is good for, whether it is there, and else why not and what brings it.

    `needed` says that nothing can be emulated without it.
    """

    name: str
    purpose: str
    present: bool
    needed: bool = False
    reason: str = ""
    remedy: str = ""


def list_capabilities() -> list[Capability]:
    """Look for everything; changes nothing on this machine. Takes about a second."""
    find_system_tools()
    found = [_root(), *_programs(), _mininet(), *_namespaces()]
    return [*found, _fifo(), _cgroups(), _ovs(), _libnorm(), *_optional_programs()]


def _root() -> Capability:
    remedy = "run it by sudo for real-time links and TAP devices"
    return Capability("root", "real-time priority, TAP devices", os.geteuid() == 0, remedy=remedy)


def _programs() -> list[Capability]:
    return [
        Capability(tool, "hosts, links and rates", shutil.which(tool) is not None, True, "no such program", f"{APT} {package}")
        for tool, package in TOOLS.items()
    ]


def _mininet() -> Capability:
    present = all(importlib.util.find_spec(name) is not None for name in ("mininet", "distutils"))
    return Capability("mininet", "hosts and switches", present, True, "no such package", "pip install mininet setuptools")


def _namespaces() -> list[Capability]:
    """What has to be tried in a private world, where it can't disturb."""
    try:
        answers = run_isolated(_try_everything)
    except UnsupportedError as error:
        return [Capability("namespaces", "a private world for each emulation", False, True, str(error), "run it as root")]
    return [
        Capability("namespaces", "a private world for each emulation", True, True),
        *(Capability(**item) for item in answers),
    ]


def _try_everything() -> list[dict[str, object]]:
    needed = list(KERNEL)
    found = [_kernel(name, feature, name in needed) for name, feature in {**KERNEL, **ROUTING, **_OPTIONAL, **TRUNKS}.items()]
    found.append(_attempt("mroute", "multicast routers", _multicast_routing, "a kernel with CONFIG_IP_MROUTE"))
    found.append(
        _attempt("tap", "links in user space: delay, and losses that repeat", _tap, "sudo modprobe tun; run it as root")
    )
    return found


def _kernel(name: str, feature: KernelFeature, needed: bool) -> dict[str, object]:
    item: dict[str, object] = {"name": name, "purpose": feature.name, "needed": needed, "present": True}
    try:
        for command in feature.commands:
            run(command)
    except (subprocess.CalledProcessError, OSError) as error:
        said = (getattr(error, "stderr", "") or str(error)).strip().splitlines()[-1:]
        remedy = f"sudo modprobe -a {feature.module}"
        item |= {"present": False, "reason": said[0] if said else "no reason given", "remedy": remedy}
    return item


def _attempt(name: str, purpose: str, attempt: Callable[[], None], remedy: str) -> dict[str, object]:
    item: dict[str, object] = {"name": name, "purpose": purpose, "present": True}
    try:
        attempt()
    except OSError as error:
        item |= {"present": False, "reason": error.strerror or str(error), "remedy": remedy}
    return item


def _multicast_routing() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_IGMP) as sock:
        sock.setsockopt(socket.IPPROTO_IP, _MRT_INIT, 1)


def _tap() -> None:
    os.close(open_tap("pt0"))


def _fifo() -> Capability:
    """Real-time priority, tried in a child so that this process keeps its own."""
    child = os.fork()
    if child == 0:
        try:
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
            os._exit(0)
        except OSError:
            os._exit(1)
    present = os.waitpid(child, 0)[1] == 0
    return Capability(
        "SCHED_FIFO", "links in user space that keep their time", present, reason="refused", remedy="run it as root"
    )


def _cgroups() -> Capability:
    present = any(Path(f"/sys/fs/cgroup/{name}").exists() for name in ("cgroup.controllers", "cpu"))
    return Capability(
        "cgroups", "CPU quotas of hosts", present, reason="not mounted", remedy="sudo mount -t cgroup2 none /sys/fs/cgroup"
    )


def _ovs() -> Capability:
    present = Path("/sys/module/openvswitch").exists() and shutil.which("ovs-vsctl") is not None
    remedy = f"{APT} openvswitch-switch && sudo modprobe openvswitch"
    return Capability(
        "openvswitch", "Mininet's own default switch; ours are Linux bridges", present, reason="not loaded", remedy=remedy
    )


def _libnorm() -> Capability:
    present = ctypes.util.find_library("norm") is not None
    return Capability("libnorm1", "NRL NORM as a peer", present, reason="no such library", remedy=f"{APT} libnorm1")


def _optional_programs() -> list[Capability]:
    wanted = {
        "tshark": ("a second opinion on packets", "tshark"),
        "java": ("Spark", "default-jre-headless"),
        "linux.uml": ("a kernel with netem, in user mode", "user-mode-linux"),
    }
    return [
        Capability(name, purpose, shutil.which(name) is not None, reason="no such program", remedy=f"{APT} {package}")
        for name, (purpose, package) in wanted.items()
    ]
