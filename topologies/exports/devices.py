"""A topology taken apart for emulators: one device per host, switch or router, one wire per link, interfaces numbered."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from protocols.errors import ConfigError
from topologies.addressing import PREFIX_LENGTH, host_address
from topologies.netem import Netem, netem_of
from topologies.node_models import RouterModel
from topologies.spec import LinkSpec, Topology
from topologies.trees import forwarding, next_hops

__all__ = ["Device", "Lab", "Port", "router_settings", "take_apart"]

MOST_HOSTS = 1000
_FIT = re.compile(r"[a-z][a-z0-9_]{0,7}")


@dataclass(frozen=True, slots=True)
class Port:
    """One interface of `near`: the wire it is plugged into, who is at the other end, and what leaves by it."""

    number: int
    wire: int
    near: str
    far: str
    spec: LinkSpec

    @property
    def link(self) -> str:
        """As error messages write it."""
        return f"{self.near}-{self.far}"

    def netem(self, device: str) -> Netem:
        """The kernel's commands for what leaves, when it is called `device`."""
        plain = LinkSpec(overhead=self.spec.overhead)
        return Netem() if self.spec == plain else netem_of(self.spec, device)


@dataclass(slots=True)
class Device:
    """A node of its own. `name` is short enough for kernels, `real` as in `Topology`; `routes` a router's: address to port.

    A router's address is its name in ARP alone, from the upper end of the hosts' network.
    """

    name: str
    real: str
    kind: str
    address: str | None
    ports: list[Port] = field(default_factory=list)
    routes: dict[str, int] = field(default_factory=dict)

    @property
    def prefix(self) -> str | None:
        """The address with the length of its network."""
        return None if self.address is None else f"{self.address}/{PREFIX_LENGTH}"


@dataclass(slots=True)
class Lab:
    """Devices by real name, wires as pairs of (real name, port), and what of the nodes no emulator can be told."""

    devices: dict[str, Device]
    wires: list[tuple[tuple[str, int], tuple[str, int]]]
    notes: list[str]

    @property
    def missing(self) -> list[str]:
        """The notes, and what of the links the kernel's commands can't do."""
        ports = (port for device in self.devices.values() for port in device.ports)
        return self.notes + [f"link {port.link}: {text}" for port in ports for text in port.netem("eth0").missing]


def router_settings(device: str) -> list[str]:
    """What the kernel has to be told of each of a router's interfaces: to answer ARP for others, without waiting first."""
    return [
        f"net.ipv4.conf.{device}.proxy_arp=1",
        f"net.ipv4.neigh.{device}.proxy_delay=0",
        f"net.ipv4.conf.{device}.rp_filter=0",
    ]


def take_apart(topology: Topology) -> Lab:
    """One device for every host; ConfigError when there are more than emulators take."""
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
                _plug(lab, a, b, topology.link(near, far), topology.link(far, near))
    _route(topology, lab)
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
    """The name itself when it is fit for an interface's name, else a number behind the letter of its kind."""
    name, number = real, 0
    while name in taken or not _FIT.fullmatch(name):
        number += 1
        name = f"{kind[0]}x{number}"
    taken.add(name)
    return name


def _plug(lab: Lab, a: str, b: str, down: LinkSpec, up: LinkSpec) -> None:
    ends = []
    for near, far, spec in ((a, b, down), (b, a, up)):
        ports = lab.devices[near].ports
        ends.append((near, len(ports)))
        ports.append(Port(len(ports), len(lab.wires), near, far, spec))
    lab.wires.append((ends[0], ends[1]))


def _note_model(topology: Topology, node: str, lab: Lab) -> None:
    """What a node does besides forwarding is in no other emulator's vocabulary."""
    model = topology.node(node).model
    if model is not None and model != type(model)():
        said = ", ".join(sorted(key for key in model.model_fields_set if getattr(model, key) != getattr(type(model)(), key)))
        lab.notes.append(f"node {node}: {said} can't be written down there")
    if isinstance(model, RouterModel) or topology.node(node).kind == "router":
        lab.notes.append(f"node {node}: forwards unicast only; multicast routes are for smcrouted or pimd to make")


def _route(topology: Topology, lab: Lab) -> None:
    """Every router knows each host by the port it is behind; it answers for hosts behind others (proxy ARP)."""
    graph = forwarding(topology)
    for node in topology.graph:
        device = lab.devices.get(node)
        if device is None or device.kind != "router":
            continue
        # From behind every port, this router is asked for all hosts that are behind another one.
        behind = {port.far: port.number for port in device.ports}
        hops = next_hops(topology, node, graph)
        for far, hop in hops.items():
            if topology.node(far).kind == "host":
                for real in _members(topology, far):
                    address = lab.devices[real].address
                    assert address is not None
                    device.routes[address] = behind[real if hop == far else hop]
