"""IPv6 in an emulated network, whose hosts have none."""

from collections.abc import Sequence

from emu.requirements import LOSS, run
from tests.emu.lab import Lab

__all__ = ["give_ipv6"]


def give_ipv6(lab: Lab, hosts: Sequence[str], loss: float = 0.0) -> None:
    """Give the hosts link-local addresses and fd00::1, fd00::2, ... in this order, and lose packets that arrive at them."""
    for number, host in enumerate(hosts, 1):
        device, pid = lab.device(host), lab.network.pid(host)
        settings = [f"net.ipv6.conf.{name}.{key}" for key in ("accept_dad=0", "disable_ipv6=0") for name in ("all", device)]
        run(f"sysctl -qw {' '.join(settings)} && ip address add fd00::{number}/64 dev {device} nodad", pid=pid)
        if loss:
            lossy = f"bpf da bytecode '{LOSS.format(threshold=round(loss * (1 << 32)))}'"
            # The queueing discipline is there already where packets of IPv4 are lost.
            added = f"tc qdisc add dev {device} clsact 2> /dev/null"
            run(f"{added}; tc filter add dev {device} ingress protocol ipv6 {lossy}", pid=pid)
