"""A Plan as Mininet hosts and Linux bridges, with rates and losses. To be used inside a world (`emu.world`)."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from emu.doctor import run
from emu.forwarding import Forwarding
from emu.health import Carried, carried
from emu.plan import Plan, Wire
from emu.shaping import apply_loss, apply_rate
from emu.tap import overflow
from emu.wire import Way
from protocols.errors import UnsupportedError
from protocols.machine import Codec
from topologies.addressing import PREFIX_LENGTH

__all__ = ["Network"]


class Network:
    """The built network. Nothing is taken down: the kernel does that when the world ends.

    `codec` tells links in user space what a packet is; without, they lose all packets as control packets are lost.
    """

    def __init__(self, planned: Plan, codec: Callable[[], Codec] | None = None) -> None:
        # Mininet's import runs programs and costs 0.1 s, so only emulations pay for it.
        from mininet.log import setLogLevel
        from mininet.net import Mininet
        from mininet.nodelib import LinuxBridge

        setLogLevel("error")
        self._plan = planned
        self._net = Mininet(switch=LinuxBridge, controller=None, build=False)
        # Kernel names have at most 15 letters, so nodes are numbered and only we know their real names.
        self._nodes: dict[str, Any] = {}
        for number, (host, address) in enumerate(planned.addresses.items(), 1):
            self._nodes[host] = self._net.addHost(f"h{number}", ip=f"{address}/{PREFIX_LENGTH}", mac=_mac(address))
        for number, switch in enumerate(planned.switches, 1):
            self._nodes[switch] = self._net.addSwitch(f"s{number}", dpid=f"{number:x}")
        self._ways: list[Way] = []
        self._links = [self._make_link(wire) for wire in planned.wires]
        self._net.build()
        self._net.start()
        self._flood()
        self._prepare_hosts()
        self._impair()
        self._forwarding = Forwarding(self._ways, codec) if self._ways else None

    def pid(self, host: str) -> int:
        """A process that lives in the host's network namespace."""
        return int(self._nodes[host].pid)

    def _make_link(self, wire: Wire) -> Any:
        """The Mininet link of a wire: `intf1` at its near end, `intf2` at its far end."""
        down, up = wire.down.user, wire.up.user
        if down is None or up is None:
            return self._net.addLink(self._nodes[wire.near], self._nodes[wire.far])
        from emu.tap_link import TapLink

        link = self._net.addLink(self._nodes[wire.near], self._nodes[wire.far], cls=TapLink)
        near, far = link.descriptors
        self._ways.append(Way(wire.down.link, near, far, down.spec, down.key, down.member))
        self._ways.append(Way(wire.up.link, far, near, up.spec, up.key, up.member))
        return link

    def collect(self) -> Carried:
        """End the links in user space; what they carried."""
        if self._forwarding is None:
            return Carried()
        # The devices, and what they have counted, go with the processes.
        overflow = self._overflow()
        return carried(self._forwarding.collect(), overflow)

    def _overflow(self) -> int:
        """Packets dropped in front of links in user space."""
        dropped = 0
        for wire, link in zip(self._plan.wires, self._links, strict=True):
            if wire.down.user is not None:
                dropped += sum(overflow(self._where(end) or os.getpid(), end.name) for end in (link.intf1, link.intf2))
        return dropped

    def _flood(self) -> None:
        """Bridges send every group everywhere, at once: snooping would need a querier and 10 s to learn."""
        for switch in self._plan.switches:
            setting = Path(f"/sys/class/net/{self._nodes[switch].name}/bridge/multicast_snooping")
            setting.write_text("0")
            if setting.read_text().strip() != "0":
                raise UnsupportedError(f"switch {switch}: multicast snooping can't be switched off")

    def _prepare_hosts(self) -> None:
        """Multicast route, all neighbours known (no ARP on the links), no IPv6, and packets cut before the first link.

        Cutting costs some speed, and is left out where nothing on the way loses, delays or counts packets.
        """
        neighbours = [f"neigh replace {address} lladdr {_mac(address)} dev" for address in self._plan.addresses.values()]
        for host in self._plan.addresses:
            device = f"{self._nodes[host].name}-eth0"
            commands = [
                "set -e; ip link set lo up",
                "[ ! -e /proc/sys/net/ipv6 ] || echo 1 > /proc/sys/net/ipv6/conf/all/disable_ipv6",
                f"ip route replace 224.0.0.0/4 dev {device}",
                "ip -batch -",
            ]
            if self._plan.report():
                commands.append(f"ethtool -K {device} tx-udp-segmentation off")
            batch = "\n".join(f"{line} {device}" for line in neighbours)
            run("; ".join(commands), pid=self.pid(host), stdin=batch)

    def _impair(self) -> None:
        for wire, link in zip(self._plan.wires, self._links, strict=True):
            for shape, out, into in ((wire.down, link.intf1, link.intf2), (wire.up, link.intf2, link.intf1)):
                apply_rate(shape, out.name, self._where(out))
                apply_loss(shape, into.name, self._where(into))

    def _where(self, interface: Any) -> int | None:
        """The process whose namespace holds the interface; None for a switch's, which lives in the world itself."""
        return int(interface.node.pid) if interface.node.inNamespace else None


def _mac(address: str) -> str:
    """A locally administered address made from the IPv4 address."""
    return "02:00:" + ":".join(f"{int(part):02x}" for part in address.split("."))
