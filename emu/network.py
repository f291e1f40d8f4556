"""A Plan as Mininet hosts and Linux bridges, with rates and losses. To be used inside a world (`emu.namespaces`)."""

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from emu.health import LinkStatistics, merge_reports
from emu.link_processes import LinkProcesses
from emu.mroute import MulticastRouter
from emu.plan import Cable, EmulationPlan
from emu.reachability_check import check_reachability
from emu.requirements import run
from emu.router_shaping import apply_router
from emu.routing import RouterTable, mac_of
from emu.shaping import LinkShape, apply_loss, apply_rate
from emu.snooping import flood, prune
from emu.tap import overflow
from emu.trunk import Trunk, build_trunk
from emu.userspace_link import LinkDirection
from protocols.errors import UnsupportedError
from protocols.machine import Codec
from topologies.addressing import PREFIX_LENGTH

__all__ = ["EmulatedNetwork"]

_TIMEOUT = 10.0
_PORT_FORWARDING = "3"

_ENABLE_FORWARDING = (
    "[ ! -e /proc/sys/net/ipv6 ] || echo 1 > /proc/sys/net/ipv6/conf/all/disable_ipv6; "
    "for file in /proc/sys/net/ipv4/conf/*/rp_filter; do echo 0 > $file; done; echo 1 > /proc/sys/net/ipv4/ip_forward"
)
"""What makes a router of a node: packets may come from anywhere, whatever way back its routes would take."""


class EmulatedNetwork:
    """The built network. Nothing is taken down: the kernel does that when the world ends.

    `codec` tells links in user space what a packet is; without, they lose all packets as control packets are lost.
    """

    def __init__(self, plan: EmulationPlan, codec: Callable[[], Codec] | None = None) -> None:
        # Mininet's import runs programs and costs 0.1 s, so only emulations pay for it.
        from mininet.log import setLogLevel
        from mininet.net import Mininet
        from mininet.nodelib import LinuxBridge

        setLogLevel("error")
        self._plan = plan
        self._net = Mininet(switch=LinuxBridge, controller=None, build=False)
        # Kernel names have at most 15 letters, so nodes are numbered and only we know their real names.
        self._nodes: dict[str, Any] = {}
        # Links to a router with a trunk end where its cable does, in this namespace.
        self._trunk_ends: dict[str, Any] = {}
        for number, (host, address) in enumerate(plan.addresses.items(), 1):
            self._nodes[host] = self._net.addHost(f"h{number}", ip=f"{address}/{PREFIX_LENGTH}", mac=mac_of(address))
        for number, switch in enumerate(plan.switches, 1):
            self._nodes[switch] = self._net.addSwitch(f"s{number}", dpid=f"{number:x}")
        for number, router in enumerate(plan.routers, 1):
            self._nodes[router.name] = self._net.addHost(f"g{number}", ip=None)
            if router.trunk != "ifb":
                self._trunk_ends[router.name] = self._net.addHost(f"t{number}", ip=None, inNamespace=False)
        self._directions: list[LinkDirection] = []
        self._links = [self._make_link(cable) for cable in plan.cables]
        self._net.build()
        self._net.start()
        self._trunks = self._build_trunks()
        self._link_processes = LinkProcesses(self._directions, codec) if self._directions else None
        self._await_ports()
        self._configure_snooping()
        self._prepare_hosts()
        self._multicast = [self._prepare_router(name, table) for name, table in plan.routing.routers.items()]
        check_reachability(plan, self.pid)
        self._impair()

    def pid(self, host: str) -> int:
        """A process that lives in the host's network namespace."""
        return int(self._nodes[host].pid)

    def address(self, host: str) -> str:
        """The IPv4 address of a host."""
        return self._plan.addresses[host]

    def port(self, host: str) -> tuple[str, int | None]:
        """The device of a host, and a process in its namespace."""
        return f"{self._nodes[host].name}-eth0", self.pid(host)

    def devices(self, node: str) -> list[tuple[str, str, int | None]]:
        """The neighbours of a host, switch or router, with its device towards each and a process in the namespace of that."""
        found = []
        for cable in self._plan.cables:
            if node in (cable.near, cable.far):
                other = cable.far if cable.near == node else cable.near
                found.append((other, *self.ends(node, other)[0]))
        return found

    def adapters(self, router: str) -> tuple[list[str], str]:
        """The Ethernet devices of a router, in its namespace, and the MAC address of the first."""
        ports = self._plan.routing.routers[router].ports
        trunk = self._trunks.get(router)
        return [self._port(router, cable) for cable in ports] if trunk is None else [trunk.device], next(iter(ports.values()))

    def ends(self, near: str, far: str) -> list[tuple[str, int | None]]:
        """The devices at both ends of a link, each with a process in its namespace; None for this one."""
        number = next(n for n, cable in enumerate(self._plan.cables) if {cable.near, cable.far} == {near, far})
        link = self._links[number]
        ends = (link.intf1, link.intf2) if self._plan.cables[number].near == near else (link.intf2, link.intf1)
        return [(end.name, self._namespace_pid(end)) for end in ends]

    def shape(self, near: str, far: str) -> LinkShape:
        """What was planned for the direction of a link from `near` to `far`."""
        cable = next(cable for cable in self._plan.cables if {cable.near, cable.far} == {near, far})
        return cable.down if cable.near == near else cable.up

    def _make_link(self, cable: Cable) -> Any:
        """The Mininet link of a wire: `intf1` at its near end, `intf2` at its far end."""
        down, up = cable.down.user, cable.up.user
        ends = [self._trunk_ends.get(name, self._nodes[name]) for name in (cable.near, cable.far)]
        if down is None or up is None:
            return self._net.addLink(*ends)
        from emu.tap_link import TapLink

        link = self._net.addLink(*ends, cls=TapLink)
        near, far = link.descriptors
        self._directions.append(LinkDirection(cable.down.link, near, far, down.spec, down.key, down.member))
        self._directions.append(LinkDirection(cable.up.link, far, near, up.spec, up.key, up.member))
        return link

    def collect(self) -> LinkStatistics:
        """End the links in user space; what they carried."""
        if self._link_processes is None:
            return LinkStatistics()
        # The devices, and what they have counted, go with the processes.
        overflow = self._overflow()
        return merge_reports(self._link_processes.collect(), overflow)

    def _overflow(self) -> int:
        """Packets dropped in front of links in user space."""
        dropped = 0
        for cable, link in zip(self._plan.cables, self._links, strict=True):
            if cable.down.user is not None:
                dropped += sum(overflow(self._namespace_pid(end) or os.getpid(), end.name) for end in (link.intf1, link.intf2))
        return dropped

    def _configure_snooping(self) -> None:
        """Have switches carry groups where they belong; everywhere without pruning, or when nobody said what there is."""
        bridges = {switch: str(self._nodes[switch].name) for switch in self._plan.switches}
        if self._plan.pruned:
            tables = self._plan.routing.switches
            entries = {
                switch: {group: [self._port(switch, cable) for cable in cables] for group, cables in tables[switch].items()}
                for switch in bridges
            }
            prune(bridges, entries)
            return
        for switch, bridge in bridges.items():
            flood(switch, bridge)

    def _await_ports(self) -> None:
        """A bridge's port carries nothing until the kernel has noticed that its cable is in, which may come late."""
        end = time.monotonic() + _TIMEOUT
        bridges = [(f"switch {switch}", str(self._nodes[switch].name)) for switch in self._plan.switches]
        bridges += [(f"node {name}", bridge) for name, trunk in self._trunks.items() for bridge in trunk.bridges]
        for name, bridge in bridges:
            for port in Path(f"/sys/class/net/{bridge}/brif").iterdir():
                while (port / "state").read_text().strip() != _PORT_FORWARDING:
                    if time.monotonic() > end:
                        raise UnsupportedError(f"{name}: its port {port.name} does not begin to forward")
                    time.sleep(0.001)

    def _prepare_hosts(self) -> None:
        """Multicast route, all neighbours known (no ARP on the links), no IPv6, and packets cut before the first link.

        Cutting costs some speed, and is left out where nothing on the way loses, delays or counts packets, and no router is:
        the kernel's multicast routing throws away what is longer than a link's largest packet, though it could be cut later.
        """
        segmentation = not self._plan.report() and not self._plan.routers
        for host in self._plan.addresses:
            device = f"{self._nodes[host].name}-eth0"
            commands = [
                "set -e; ip link set lo up",
                "[ ! -e /proc/sys/net/ipv6 ] || echo 1 > /proc/sys/net/ipv6/conf/all/disable_ipv6",
                f"ip route replace 224.0.0.0/4 dev {device}",
                "ip -batch -",
            ]
            if not segmentation:
                commands.append(f"ethtool -K {device} tx-udp-segmentation off")
            neighbours = self._plan.routing.neighbours(host).items()
            batch = "\n".join(f"neigh replace {address} lladdr {mac} dev {device}" for address, mac in neighbours)
            run("; ".join(commands), pid=self.pid(host), stdin=batch)

    def _prepare_router(self, name: str, table: RouterTable) -> MulticastRouter:
        """Forwarding between its ports, none of which has an address, with a route for each host; groups as planned."""
        pid = self.pid(name)
        devices = {cable: self._port(name, cable) for cable in table.ports}
        batch = [f"address replace {table.address}/32 dev lo"]
        batch += [f"link set {devices[cable]} address {mac} up" for cable, mac in table.ports.items()]
        for route in table.routes:
            device = devices[route.cable]
            batch += [
                f"neigh replace {route.address} lladdr {route.mac} dev {device}",
                f"route replace {route.address}/32 dev {device}",
            ]
        run(f"set -e; ip link set lo up; {_ENABLE_FORWARDING}; ip -batch -", pid=pid, stdin="\n".join(batch))
        router = MulticastRouter(name, pid, list(devices.values()))
        for group in table.groups:
            router.add(group.source, group.group, devices[group.incoming], [devices[cable] for cable in group.outgoing])
        return router

    def _build_trunks(self) -> dict[str, Trunk]:
        """Give routers that have one adapter their one cable."""
        trunks = {}
        for number, router in enumerate(self._plan.routers, 1):
            if router.name in self._trunk_ends:
                ports = self._plan.routing.routers[router.name].ports
                (mac,) = set(ports.values())
                links = tuple(self._end(router.name, cable) for cable in ports)
                trunks[router.name] = Trunk(router.trunk, router.name, number, self.pid(router.name), mac, links)
                build_trunk(trunks[router.name])
        return trunks

    def _port(self, node: str, cable: int) -> str:
        """The name of a node's device for what goes over a wire."""
        if node not in self._trunks:
            return self._end(node, cable)
        return self._trunks[node].ports[list(self._plan.routing.routers[node].ports).index(cable)]

    def _end(self, node: str, cable: int) -> str:
        """The name of the device at a node's end of a wire."""
        link = self._links[cable]
        return str(link.intf1.name if self._plan.cables[cable].near == node else link.intf2.name)

    def _impair(self) -> None:
        for cable, link in zip(self._plan.cables, self._links, strict=True):
            for shape, out, into in ((cable.down, link.intf1, link.intf2), (cable.up, link.intf2, link.intf1)):
                apply_rate(shape, out.name, self._namespace_pid(out))
                apply_loss(shape, into.name, self._namespace_pid(into))
        for router in self._plan.routers:
            apply_router(router, *self.adapters(router.name), self.pid(router.name))
        if self._link_processes is not None:
            self._link_processes.begin()

    def _namespace_pid(self, interface: Any) -> int | None:
        """The process whose namespace holds the interface; None for a switch's, which lives in the world itself."""
        return int(interface.node.pid) if interface.node.inNamespace else None
