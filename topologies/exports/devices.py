"""A topology as devices and wires for exports: one device per host, switch or router, one wire per link."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from protocols.errors import ConfigError
from topologies.addressing import PREFIX_LENGTH, host_address
from topologies.netem import Netem, netem_of
from topologies.node_models import RouterModel
from topologies.spec import LinkSpec, Topology
from topologies.trees import forwarding, looped_switches, next_hops

__all__ = ["Device", "Lab", "DevicePort", "router_settings", "lab_of"]

MOST_HOSTS = 1000
_FIT = re.compile(r"[a-z][a-z0-9_]{0,7}")


@dataclass(frozen=True, slots=True)
class DevicePort:
    """An interface of device `near` towards device `far`: number, wire, and attributes of the outbound direction."""

    number: int
    wire: int
    near: str
    far: str
    spec: LinkSpec

    @property
    def link(self) -> str:
        """Name of the direction in messages."""
        return f"{self.near}-{self.far}"

    def netem(self, device: str) -> Netem:
        """Return the `tc` commands for the outbound direction of the interface called `device`."""
        plain = LinkSpec(overhead=self.spec.overhead)
        return Netem() if self.spec == plain else netem_of(self.spec, device)


@dataclass(slots=True)
class Device:
    """A host, switch or router. `name` is short enough for an interface name, `real` the name in `Topology`.

    `routes` are those of a router: host address to port number. A router's address, from the upper end of the hosts' network,
    is used for ARP only. `spanning_tree` is whether a switch is in a loop of switches and has to run that protocol (STP).
    """

    name: str
    real: str
    kind: str
    address: str | None
    ports: list[DevicePort] = field(default_factory=list)
    routes: dict[str, int] = field(default_factory=dict)
    spanning_tree: bool = False

    @property
    def prefix(self) -> str | None:
        """The address with its prefix length."""
        return None if self.address is None else f"{self.address}/{PREFIX_LENGTH}"


@dataclass(slots=True)
class Lab:
    """Devices by real name, wires as pairs of (real name, port), and notes on attributes of nodes that can't be exported."""

    devices: dict[str, Device]
    wires: list[tuple[tuple[str, int], tuple[str, int]]]
    notes: list[str]

    @property
    def missing(self) -> list[str]:
        """The notes, and those on attributes of links that `tc` doesn't support."""
        ports = (port for device in self.devices.values() for port in device.ports)
        return self.notes + [f"link {port.link}: {text}" for port in ports for text in port.netem("eth0").missing]


def router_settings(device: str) -> list[str]:
    """Return the sysctl settings of a router's interface: proxy ARP without delay, no reverse path filter."""
    return [
        f"net.ipv4.conf.{device}.proxy_arp=1",
        f"net.ipv4.neigh.{device}.proxy_delay=0",
        f"net.ipv4.conf.{device}.rp_filter=0",
    ]


def lab_of(topology: Topology) -> Lab:
    """Return the devices and wires of a topology. ConfigError above the limit of hosts."""
    if len(topology.hosts) > MOST_HOSTS:
        raise ConfigError(f"topology: {len(topology.hosts)} hosts are not allowed in an export; {MOST_HOSTS} at most")
    lab = Lab({}, [], [])
    taken: set[str] = set()
    for node in topology.graph:
        kind = topology.node(node).kind
        for real in _members(topology, node):
            name = _short(real, kind, taken)
            lab.devices[real] = Device(name, real, kind, _address(topology, real, len(lab.devices)))
        _note_model(topology, node, lab)
    for near, far in topology.graph.to_undirected().edges:
        for a in _members(topology, near):
            for b in _members(topology, far):
                _connect(lab, a, b, topology.link(near, far), topology.link(far, near))
    _route(topology, lab)
    looped = looped_switches(topology)
    for name in looped:
        lab.devices[name].spanning_tree = True
    if looped:
        lab.notes.append("topology: its switches form a loop, of which STP uses a tree, not all the shortest paths")
    return lab


def _members(topology: Topology, node: str) -> Iterator[str]:
    if topology.node(node).kind != "host":
        yield node
        return
    for place in range(topology.size(node)):
        yield topology.member_name(node, place)


def _address(topology: Topology, real: str, number: int) -> str | None:
    if real not in topology.graph or topology.node(real).kind == "host":
        return host_address(topology, real)
    return None if topology.node(real).kind == "switch" else f"10.255.{255 - number // 254}.{254 - number % 254}"


def _short(real: str, kind: str, taken: set[str]) -> str:
    """Return the name itself if it can be part of an interface name, else the letter of its kind, an x and a number."""
    name, number = real, 0
    while name in taken or not _FIT.fullmatch(name):
        number += 1
        name = f"{kind[0]}x{number}"
    taken.add(name)
    return name


def _connect(lab: Lab, a: str, b: str, down: LinkSpec, up: LinkSpec) -> None:
    ends = []
    for near, far, spec in ((a, b, down), (b, a, up)):
        ports = lab.devices[near].ports
        ends.append((near, len(ports)))
        ports.append(DevicePort(len(ports), len(lab.wires), near, far, spec))
    lab.wires.append((ends[0], ends[1]))


def _note_model(topology: Topology, node: str, lab: Lab) -> None:
    """Add notes on a node's processing model and multicast routing, which can't be exported."""
    model = topology.node(node).model
    if model is not None and model != type(model)():
        said = ", ".join(sorted(key for key in model.model_fields_set if getattr(model, key) != getattr(type(model)(), key)))
        lab.notes.append(f"node {node}: {said} can't be exported")
    if isinstance(model, RouterModel) or topology.node(node).kind == "router":
        lab.notes.append(f"node {node}: forwards unicast only; multicast routes need smcrouted or pimd")


def _route(topology: Topology, lab: Lab) -> None:
    """Set the routes of all routers to all hosts."""
    graph = forwarding(topology)
    for node in topology.graph:
        device = lab.devices.get(node)
        if device is None or device.kind != "router":
            continue
        # All hosts are in one subnet, so ARP requests for hosts behind other ports are answered by proxy ARP.
        behind = {port.far: port.number for port in device.ports}
        hops = next_hops(topology, node, graph)
        for far, hop in hops.items():
            if topology.node(far).kind == "host":
                for real in _members(topology, far):
                    address = lab.devices[real].address
                    assert address is not None
                    device.routes[address] = behind[real if hop == far else hop]
