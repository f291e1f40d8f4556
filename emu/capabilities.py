"""Check what emulation can use on this machine, and limits of `send` and `recv`; name the command for what is missing."""

import ctypes.util
import importlib.util
import os
import resource
import shutil
import socket
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from emu.namespaces import run_isolated
from emu.peers.brokers import BROKERS
from emu.requirements import APT, KERNEL, ROUTING, TOOLS, TRUNKS, KernelFeature, find_system_tools, run
from emu.tap import open_tap
from emu.udp import BUFFERS, granted_buffers
from protocols.errors import UnsupportedError

__all__ = ["Capability", "list_capabilities"]

_MRT_INIT = 200
_DESCRIPTORS = 1024
"""Least limit of open files with which `send` and `recv` keep files open; below it they close and open them more often."""
_OPTIONAL = {
    "netem": KernelFeature(
        "delay, jitter and loss in the kernel (netem)",
        "sch_netem",
        ("tc qdisc add dev lo root netem delay 1ms", "tc qdisc del dev lo root"),
    ),
}


@dataclass(frozen=True, slots=True)
class Capability:
    """Result of one check: what was checked, what it is used for, and whether it is `present`.

    `needed` marks what emulation can't do without. `reason` says why it is absent, `remedy` is the command that installs it.
    """

    name: str
    purpose: str
    present: bool
    needed: bool = False
    reason: str = ""
    remedy: str = ""


def list_capabilities() -> list[Capability]:
    """Check every program, package and kernel feature; takes about a second and changes nothing on this machine."""
    find_system_tools()
    found = [_root(), *_programs(), _mininet(), *_namespaces()]
    return [*found, _fifo(), _cgroups(), _ovs(), _libnorm(), *_optional_programs(), *_brokers(), *_limits()]


def _root() -> Capability:
    remedy = "run as root for real-time scheduling and TAP devices"
    return Capability("root", "real-time priority, TAP devices", os.geteuid() == 0, remedy=remedy)


def _programs() -> list[Capability]:
    return [
        Capability(
            tool, "hosts, links and rate limits", shutil.which(tool) is not None, True, "no such program", f"{APT} {package}"
        )
        for tool, package in TOOLS.items()
    ]


def _mininet() -> Capability:
    present = all(importlib.util.find_spec(name) is not None for name in ("mininet", "distutils"))
    return Capability("mininet", "hosts and switches", present, True, "no such package", "pip install 'mcastlab[emu]'")


def _namespaces() -> list[Capability]:
    """Check namespaces, and in namespaces of their own all features whose probe changes the network configuration."""
    try:
        answers = run_isolated(_try_everything)
    except UnsupportedError as error:
        return [Capability("namespaces", "isolation of each emulation", False, True, str(error), "run as root")]
    return [
        Capability("namespaces", "isolation of each emulation", True, True),
        *(Capability(**item) for item in answers),
    ]


def _try_everything() -> list[dict[str, object]]:
    needed = list(KERNEL)
    found = [_kernel(name, feature, name in needed) for name, feature in {**KERNEL, **ROUTING, **_OPTIONAL, **TRUNKS}.items()]
    found.append(_attempt("mroute", "multicast routers", _multicast_routing, "a kernel with CONFIG_IP_MROUTE"))
    found.append(_attempt("tap", "user-space links: delay, repeatable losses", _tap, "sudo modprobe tun; run as root"))
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
    """Check for real-time scheduling in a child process, so that this process keeps its scheduling policy (sched(7))."""
    child = os.fork()
    if child == 0:
        try:
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
            os._exit(0)
        except OSError:
            os._exit(1)
    present = os.waitpid(child, 0)[1] == 0
    return Capability("SCHED_FIFO", "real-time scheduling of user-space links", present, reason="refused", remedy="run as root")


def _cgroups() -> Capability:
    present = any(Path(f"/sys/fs/cgroup/{name}").exists() for name in ("cgroup.controllers", "cpu"))
    return Capability(
        "cgroups", "CPU limits of hosts", present, reason="not mounted", remedy="sudo mount -t cgroup2 none /sys/fs/cgroup"
    )


def _ovs() -> Capability:
    present = Path("/sys/module/openvswitch").exists() and shutil.which("ovs-vsctl") is not None
    remedy = f"{APT} openvswitch-switch && sudo modprobe openvswitch"
    return Capability(
        "openvswitch",
        "Mininet's default switch; not used, switches are Linux bridges",
        present,
        reason="not loaded",
        remedy=remedy,
    )


def _libnorm() -> Capability:
    present = ctypes.util.find_library("norm") is not None
    return Capability("libnorm1", "NRL's NORM as a peer", present, reason="no such library", remedy=f"{APT} libnorm1")


def _limits() -> list[Capability]:
    """Check the limits that determine how much traffic `send` and `recv` can handle."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    enough = files == resource.RLIM_INFINITY or files >= _DESCRIPTORS
    granted, processors = granted_buffers(BUFFERS), len(os.sched_getaffinity(0))
    sysctl = f"sudo sysctl -w net.core.rmem_max={BUFFERS} net.core.wmem_max={BUFFERS}"
    return [
        Capability(
            "descriptors", "many files at a time: send, recv", enough, False, f"limit {files}", f"ulimit -n {_DESCRIPTORS}"
        ),
        Capability(
            "buffers", "bursts and floods: send, recv", granted >= BUFFERS, False, f"{granted} of {BUFFERS} bytes", sysctl
        ),
        Capability(
            "processors", "floods: recv beside the kernel", processors > 1, False, "1", "give this machine two processors"
        ),
    ]


def _optional_programs() -> list[Capability]:
    wanted = {
        "tshark": ("independent packet dissection", "tshark"),
        "java": ("Spark, and ActiveMQ", "default-jre-headless"),
        "iperf": ("a native program beside datagrams", "iperf"),
        "linux.uml": ("a user-mode kernel with netem", "user-mode-linux"),
    }
    return [
        Capability(name, purpose, shutil.which(name) is not None, reason="no such program", remedy=f"{APT} {package}")
        for name, (purpose, package) in wanted.items()
    ]


def _brokers() -> list[Capability]:
    """Check the brokers of others."""
    found = [(broker, broker.lacks) for broker in BROKERS.values()]
    return [
        Capability(
            broker.name,
            f"a broker of {broker.protocol} beside ours",
            lacks is None,
            reason=f"no {lacks}",
            remedy=f"{APT} {broker.packages}",
        )
        for broker, lacks in found
    ]
