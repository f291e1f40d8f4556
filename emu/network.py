"""A Topology as Mininet hosts and Linux bridges, with rates and losses. To be used inside a world (`emu.world`).

`plan` refuses what can't be emulated before anything is started; `Network` builds the plan.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Any

import networkx as nx

from emu.doctor import run
from emu.shaping import Shape, apply_loss, apply_rate, shape_of
from protocols.errors import UnsupportedError
from topologies.addressing import PREFIX_LENGTH, host_address
from topologies.multicast import Multicast
from topologies.spec import Topology

__all__ = ["Network", "Plan", "Wire", "plan"]

_MOST_HOSTS = 1000
"""A Linux bridge has at most 1024 ports, and much earlier this machine's memory ends."""


@dataclass(frozen=True, slots=True)
class Wire:
    """One link between two nodes by name, with the shape of each direction."""

    near: str
    far: str
    down: Shape
    up: Shape


@dataclass(frozen=True, slots=True)
class Plan:
    """What will be built: every host with its address, every switch, every wire."""

    addresses: dict[str, str]
    switches: tuple[str, ...]
    wires: tuple[Wire, ...]

    @property
    def shapes(self) -> list[Shape]:
        """Both directions of every wire."""
        return [shape for wire in self.wires for shape in (wire.down, wire.up)]

    @property
    def features(self) -> list[str]:
        """The kernel features it takes, as `emu.doctor.KERNEL` calls them."""
        needed = ["veth", "bridge"]
        needed += ["rate"] if any(shape.rate < inf for shape in self.shapes) else []
        needed += ["loss"] if any(shape.threshold for shape in self.shapes) else []
        return needed

    def shaped(self, host: str) -> bool:
        """Does something on the host's own link limit its rate?"""
        return any(host in (wire.near, wire.far) and min(wire.down.rate, wire.up.rate) < inf for wire in self.wires)

    def report(self) -> list[dict[str, Any]]:
        """What does the impairing, link by link."""
        return [shape.report() for shape in self.shapes if shape.rate < inf or shape.threshold]


def plan(topology: Topology) -> Plan:
    """Work out what to build; UnsupportedError naming link and key for what can't be emulated."""
    if len(topology.hosts) > _MOST_HOSTS:
        raise UnsupportedError(
            f"topology: {len(topology.hosts)} hosts can't be emulated; {_MOST_HOSTS} at most, or the simulator"
        )
    _refuse_models(topology)
    undirected = topology.graph.to_undirected()
    if not nx.is_forest(undirected):
        raise UnsupportedError("topology: has a loop, and bridges would send packets around it for ever; emulate a tree")
    wires = []
    for near, far in undirected.edges:
        for a in _members(topology, near):
            for b in _members(topology, far):
                down, up = shape_of(a, b, topology.link(near, far)), shape_of(b, a, topology.link(far, near))
                wires.append(Wire(a, b, down, up))
    for name in topology.host_nodes:
        if undirected.degree(name) > 1:
            raise UnsupportedError(f"node {name}: a host with several links can't be emulated yet")
    addresses = {host: host_address(topology, host) for host in topology.hosts}
    return Plan(addresses, topology.switches, tuple(wires))


def _refuse_models(topology: Topology) -> None:
    """UnsupportedError naming node or key for what only the simulator can do yet."""
    for name in topology.graph:
        spec = topology.node(name)
        if spec.kind == "router":
            raise UnsupportedError(f"node {name}: a router can't be emulated yet; use a switch or the simulator")
        if spec.model is not None and spec.model.model_fields_set:
            key = min(spec.model.model_fields_set)
            raise UnsupportedError(f"node {name}: {key} can't be emulated yet; leave it out or use the simulator")
    for key in sorted(topology.multicast.model_fields_set - {"pruning"}):
        if getattr(topology.multicast, key) != getattr(Multicast(), key):
            raise UnsupportedError(f"multicast.{key}: can't be emulated yet; leave it out or use the simulator")


def _members(topology: Topology, node: str) -> Iterable[str]:
    if topology.node(node).kind == "switch":
        return [node]
    return [topology.member_name(node, place) for place in range(topology.size(node))]


class Network:
    """The built network. Nothing is taken down: the kernel does that when the world ends."""

    def __init__(self, planned: Plan) -> None:
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
        self._links = [self._net.addLink(self._nodes[wire.near], self._nodes[wire.far]) for wire in planned.wires]
        self._net.build()
        self._net.start()
        self._flood()
        self._prepare_hosts()
        self._impair()

    def pid(self, host: str) -> int:
        """A process that lives in the host's network namespace."""
        return int(self._nodes[host].pid)

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
