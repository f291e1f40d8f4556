"""Build an EmulationPlan as Mininet hosts and Linux bridges, with rates and losses. Runs in namespaces of its own."""

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from ipaddress import IPv4Address, IPv4Interface
from pathlib import Path
from typing import Any

from emu.health import LinkStatistics, merge_reports
from emu.hub_shaping import apply_hub
from emu.link_processes import LinkProcesses
from emu.mroute import MulticastRouter
from emu.plan import Cable, EmulationPlan
from emu.queue_counts import count_queues
from emu.reachability_check import check_reachability
from emu.requirements import run
from emu.router_shaping import apply_router, count_router
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
"""Shell commands that make a node forward IPv4 packets, without reverse path filtering."""


_MACHINE = "machine"
"""Device of a router with the address of the router's own machine, by which its multicasts leave.

It is one end of a cable whose other end is not used, since a dummy device is not in every kernel.
"""


def _machine_commands(address: str, mac: str) -> list[str]:
    """Return `ip` commands that give the machine of a router its address."""
    return [
        f"link add {_MACHINE} address {mac} type veth peer name {_MACHINE}-end",
        f"link set {_MACHINE} up",
        f"link set {_MACHINE}-end up",
        f"address replace {address}/32 dev {_MACHINE}",
        f"route replace 224.0.0.0/4 dev {_MACHINE}",
    ]


_NOT_LOOPED = "6,48 0 0 4294963204,21 0 3 5,32 0 0 4293918732,21 1 0 {own},6 0 0 2,6 0 0 4294967295"
"""Classic BPF: drop what is looped back (packet type 5), unless its source is the address `own`."""


def _loop_commands(address: str, ports: Iterable[str]) -> list[str]:
    """Return commands that keep copies of forwarded multicasts from the machine of a router.

    The kernel loops what it forwards to a group back at the outgoing port, where the machine is a member, too, and would
    receive it again.
    """
    code = _NOT_LOOPED.format(own=int(IPv4Address(address)))
    return [
        f"tc qdisc replace dev {port} clsact && tc filter add dev {port} ingress protocol ip pref 1 bpf da bytecode '{code}'"
        for port in ports
    ]


def _mirror_commands(sent: Mapping[str, Sequence[str]]) -> list[str]:
    """Return commands that put what the machine of a router sends to each group on these ports of the router.

    The kernel forwards only multicasts that arrive. One of the copies, the last, takes the router's processor
    (`apply_router`): the others, which come from another device, pass a filter before.
    """
    commands = [f"tc qdisc replace dev {_MACHINE} clsact"]
    for place, (group, devices) in enumerate(sent.items(), 1):
        match = f"protocol ip pref {place} u32 match ip dst {group}/32"
        if devices:
            copies = " ".join(f"action mirred egress mirror dev {device}" for device in devices)
            commands.append(f"tc filter add dev {_MACHINE} egress {match} {copies}")
        for device in devices[:-1]:
            commands.append(f"tc qdisc replace dev {device} clsact")
            commands.append(f"tc filter add dev {device} egress {match} indev {_MACHINE} flowid 1:1")
    return commands


def _hub_device(number: int) -> str:
    return f"hub{number}"


class EmulatedNetwork:
    """The network as built. Nothing is taken down: the kernel removes it with its namespaces.

    `codec` gives user-space links the identity and kind of packets; without it they lose all packets like control packets.
    Raises UnsupportedError when the kernel does not build what was planned.
    """

    def __init__(self, plan: EmulationPlan, codec: Callable[[], Codec] | None = None) -> None:
        # Importing Mininet runs programs and takes 0.1 s.
        from mininet.log import setLogLevel
        from mininet.net import Mininet
        from mininet.nodelib import LinuxBridge

        from emu.static_bridge import StaticBridge

        setLogLevel("error")
        self._plan = plan
        self._net = Mininet(switch=LinuxBridge, controller=None, build=False)
        # Device names have at most 15 characters (IFNAMSIZ), so nodes are numbered.
        self._nodes: dict[str, Any] = {}
        # Links to a router with a trunk end at the far end of the trunk, in this process's namespace.
        self._trunk_ends: dict[str, Any] = {}
        for number, (host, address) in enumerate(plan.addresses.items(), 1):
            if host in plan.machines:
                continue
            self._nodes[host] = self._net.addHost(f"h{number}", ip=f"{address}/{PREFIX_LENGTH}", mac=mac_of(address))
        hubs = [hub.name for hub in plan.hubs]
        for number, switch in enumerate(plan.switches, 1):
            kind = StaticBridge if plan.routing.has_loops and switch not in hubs else LinuxBridge
            self._nodes[switch] = self._net.addSwitch(f"s{number}", dpid=f"{number:x}", cls=kind)
        for number, router in enumerate(plan.routers, 1):
            self._nodes[router.name] = self._net.addHost(f"g{number}", ip=None)
            if router.trunk != "ifb":
                self._trunk_ends[router.name] = self._net.addHost(f"t{number}", ip=None, inNamespace=False)
        self._nodes |= {host: self._nodes[router] for host, router in plan.machines.items()}
        self._directions: list[LinkDirection] = []
        self._links = [self._make_link(cable) for cable in plan.cables]
        self._net.build()
        self._net.start()
        self._trunks = self._build_trunks()
        self._link_processes = LinkProcesses(self._directions, codec) if self._directions else None
        self._dropped_before = 0
        self._await_ports()
        self._configure_snooping()
        self._enter_addresses()
        self._prepare_hosts()
        self._multicast = [self._prepare_router(name, table) for name, table in plan.routing.routers.items()]
        check_reachability(plan, self.pid)
        self._impair()

    @property
    def nodes(self) -> tuple[str, ...]:
        """The names of all hosts, switches and routers."""
        return tuple(self._nodes)

    def pid(self, host: str) -> int:
        """Return a process in the network namespace of a node."""
        return int(self._nodes[host].pid)

    def group_devices(self, host: str) -> list[str]:
        """Return the devices on which a host joins groups; none: its own.

        A router's machine joins on all ports, and where its own multicasts leave, to receive those of other machines there.
        """
        router = self._plan.machines.get(host)
        if router is None:
            return []
        return [_MACHINE, *(self._port(router, cable) for cable in self._plan.routing.routers[router].ports)]

    def networks(self, host: str) -> dict[str, str]:
        """Return the devices of a host's networks by their names (`Group.network`): the machine of a router has several."""
        router = self._plan.machines.get(host)
        if router is None:
            return {}
        ports = self._plan.routing.routers[router].ports
        ends = {cable: self._plan.cables[cable] for cable in ports}
        far = {cable: end.far if end.near == router else end.near for cable, end in ends.items()}
        return {far[cable]: self._port(router, cable) for cable in ports}

    def address(self, host: str) -> str:
        """Return the IPv4 address of a host."""
        return self._plan.addresses[host]

    def port(self, host: str) -> tuple[str, int | None]:
        """Return the device of a host, and a process in its network namespace."""
        return f"{self._nodes[host].name}-eth0", self.pid(host)

    def devices(self, node: str) -> list[tuple[str, str, int | None]]:
        """Return for each neighbour of a node its name, the node's device towards it, and a process in its namespace."""
        found = []
        for cable in self._plan.cables:
            if node in (cable.near, cable.far):
                other = cable.far if cable.near == node else cable.near
                found.append((other, *self.ends(node, other)[0]))
        return found

    def adapters(self, router: str) -> tuple[list[str], str]:
        """Return the Ethernet devices of a router, in its namespace, and the MAC address of the first."""
        ports = self._plan.routing.routers[router].ports
        trunk = self._trunks.get(router)
        return [self._port(router, cable) for cable in ports] if trunk is None else [trunk.device], next(iter(ports.values()))

    def ends(self, near: str, far: str) -> list[tuple[str, int | None]]:
        """Return the devices at both ends of a link, each with a process in its namespace; None for this process's."""
        number = next(n for n, cable in enumerate(self._plan.cables) if {cable.near, cable.far} == {near, far})
        link = self._links[number]
        ends = (link.intf1, link.intf2) if self._plan.cables[number].near == near else (link.intf2, link.intf1)
        return [(end.name, self._namespace_pid(end)) for end in ends]

    def shape(self, near: str, far: str) -> LinkShape:
        """Return the shape of the link's direction from `near` to `far`."""
        cable = next(cable for cable in self._plan.cables if {cable.near, cable.far} == {near, far})
        return cable.down if cable.near == near else cable.up

    def _make_link(self, cable: Cable) -> Any:
        """Make the Mininet link of a cable: `intf1` is its near end, `intf2` its far end."""
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

    def set_congestion_control(self, hosts: Iterable[str], control: str) -> None:
        """Set the congestion control of all TCP connections of hosts, foreign programs' included, by their route.

        The kernel's default differs between machines, and the default of a namespace can only be one that is allowed to all.
        """
        for host in set(hosts) - set(self._plan.machines):
            address = self._plan.addresses[host]
            route = f"{IPv4Interface(f'{address}/{PREFIX_LENGTH}').network} dev {self.port(host)[0]} scope link src {address}"
            run(f"ip route replace {route} proto kernel congctl {control}", pid=self.pid(host))

    def collect(self) -> LinkStatistics:
        """End the user-space links and return their statistics."""
        if self._link_processes is None:
            return LinkStatistics()
        # The TAP devices and their counters vanish with the processes.
        overflow = self._dropped() - self._dropped_before
        return merge_reports(self._link_processes.collect(), overflow)

    def node_counts(self, sent: Mapping[str, int]) -> list[dict[str, Any]]:
        """Return the packets offered to each router and hub with a queue in the kernel, and those dropped, for results.

        `sent` is what the machines of routers sent, by router.
        """
        routers = self._plan.routers
        counts = {router.name: count_router(router, self.pid(router.name), sent.get(router.name, 0)) for router in routers}
        counts |= {hub.name: count_queues(_hub_device(number), None) for number, hub in enumerate(self._plan.hubs, 1)}
        found = {name: count for name, count in counts.items() if count is not None}
        return [{"node": name, "offered": offered, "dropped": dropped} for name, (offered, dropped) in found.items()]

    def _dropped(self) -> int:
        """Return the packets that TAP devices have dropped so far, of a run by their full transmit queues."""
        dropped = 0
        for cable, link in zip(self._plan.cables, self._links, strict=True):
            if cable.down.user is not None:
                dropped += sum(overflow(self._namespace_pid(end) or os.getpid(), end.name) for end in (link.intf1, link.intf2))
        return dropped

    def _configure_snooping(self) -> None:
        """Have switches forward groups by their entries if they have any, else to every port; hubs always do this."""
        bridges = {switch: str(self._nodes[switch].name) for switch in self._plan.switches}
        if self._plan.has_entries:
            for hub in self._plan.hubs:
                flood(hub.name, bridges.pop(hub.name))
            tables = self._plan.routing.switches
            entries = {
                switch: {entry: [self._port(switch, cable) for cable in cables] for entry, cables in tables[switch].items()}
                for switch in bridges
            }
            prune(bridges, entries)
            return
        for switch, bridge in bridges.items():
            flood(switch, bridge)

    def _enter_addresses(self) -> None:
        """Tell every bridge behind which port each host and router is.

        Without ARP it would learn that only from what they send, and flood what is sent to a silent one.
        """
        for switch in self._plan.switches:
            behind = self._plan.routing.addresses_at(switch)
            lines = [
                f"fdb replace {mac} dev {self._port(switch, cable)} master static" for cable in behind for mac in behind[cable]
            ]
            run("bridge -batch -", stdin="\n".join(lines))

    def _await_ports(self) -> None:
        """Wait until every bridge port forwards; the kernel may enable a port some time after its device is up."""
        end = time.monotonic() + _TIMEOUT
        bridges = [(f"switch {switch}", str(self._nodes[switch].name)) for switch in self._plan.switches]
        bridges += [(f"node {name}", bridge) for name, trunk in self._trunks.items() for bridge in trunk.bridges]
        for name, bridge in bridges:
            for port in Path(f"/sys/class/net/{bridge}/brif").iterdir():
                while (port / "state").read_text().strip() != _PORT_FORWARDING:
                    if time.monotonic() > end:
                        raise UnsupportedError(f"{name}: its port {port.name} does not start forwarding")
                    time.sleep(0.001)

    def _prepare_hosts(self) -> None:
        """Configure hosts: multicast route, static neighbours (no ARP on the links), no IPv6, no segmentation offload.

        Without offload packets leave one by one, which costs some speed. It stays on where no link loses, delays or counts
        packets and there is no router: multicast routing drops what is longer than the MTU of the outgoing link, even if it
        could be segmented. TCP hands several segments at once to any device, so their number is limited.
        """
        segmentation = not self._plan.report() and not self._plan.routers
        for host in (host for host in self._plan.addresses if host not in self._plan.machines):
            device = f"{self._nodes[host].name}-eth0"
            commands = [
                "set -e; ip link set lo up",
                "[ ! -e /proc/sys/net/ipv6 ] || echo 1 > /proc/sys/net/ipv6/conf/all/disable_ipv6",
                f"ip route replace 224.0.0.0/4 dev {device}",
                "ip -batch -",
            ]
            neighbours = self._plan.routing.neighbours(host).items()
            batch = [f"neigh replace {address} lladdr {mac} dev {device}" for address, mac in neighbours]
            if not segmentation:
                commands.append(f"ethtool -K {device} tx-udp-segmentation off")
                batch.append(f"link set {device} gso_max_segs 1")
            run("; ".join(commands), pid=self.pid(host), stdin="\n".join(batch))

    def _prepare_router(self, name: str, table: RouterTable) -> MulticastRouter:
        """Enable forwarding between a router's ports, which have no addresses, with static routes for hosts and groups."""
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
        if table.machine:
            batch = [*_machine_commands(table.machine, next(iter(table.ports.values()))), *batch]
        run(f"set -e; ip link set lo up; {_ENABLE_FORWARDING}; ip -batch -", pid=pid, stdin="\n".join(batch))
        if table.machine:
            sent = {group: [devices[cable] for cable in cables] for group, cables in table.sent.items()}
            run(" && ".join([*_loop_commands(table.machine, devices.values()), *_mirror_commands(sent)]), pid=pid)
        router = MulticastRouter(name, pid, list(devices.values()))
        for group in table.groups:
            router.add(group.source, group.group, devices[group.incoming], [devices[cable] for cable in group.outgoing])
        return router

    def _build_trunks(self) -> dict[str, Trunk]:
        """Build the trunks of routers that have one adapter."""
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
        """Return the name of a node's device for packets over a cable: a sub-interface if the node has a trunk."""
        if node not in self._trunks:
            return self._end(node, cable)
        return self._trunks[node].ports[list(self._plan.routing.routers[node].ports).index(cable)]

    def _end(self, node: str, cable: int) -> str:
        """Return the name of the device at a node's end of a cable."""
        link = self._links[cable]
        return str(link.intf1.name if self._plan.cables[cable].near == node else link.intf2.name)

    def _impair(self) -> None:
        for cable, link in zip(self._plan.cables, self._links, strict=True):
            for shape, out, into in ((cable.down, link.intf1, link.intf2), (cable.up, link.intf2, link.intf1)):
                apply_rate(shape, out.name, self._namespace_pid(out))
                apply_loss(shape, into.name, self._namespace_pid(into))
        for router in self._plan.routers:
            machine = self._plan.routing.routers[router.name].machine
            apply_router(router, *self.adapters(router.name), self.pid(router.name), machine)
        for number, hub in enumerate(self._plan.hubs, 1):
            apply_hub(hub, [device for _, device, _ in self.devices(hub.name)], _hub_device(number))
        if self._link_processes is not None:
            self._link_processes.begin()
            # Devices also drop frames that the kernel sends of its own accord while they are set up.
            self._dropped_before = self._dropped()

    def _namespace_pid(self, interface: Any) -> int | None:
        """Return a process in the interface's namespace; None for switches, which are in this process's namespace."""
        return int(interface.node.pid) if interface.node.inNamespace else None
