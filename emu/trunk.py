"""Trunks of routers with `mac: single`: one cable that carries each of the router's networks with a tag.

The router has one Ethernet device and one MAC address; each of its networks is a sub-interface, by 802.1Q where the kernel
supports it and by VXLAN (RFC 7348) otherwise. The far end of the cable works like a switch with VLANs: for each network a
bridge joins a sub-interface of the cable with the network's own link.

VXLAN adds 50 bytes to each frame. The cable's MTU allows for them, so networks keep their MTU, and the router's bucket
subtracts them (`WRAPPING`), so a frame costs what it would cost with an 802.1Q tag.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from emu.namespaces import run_isolated
from emu.requirements import check_kernel, run
from protocols.errors import UnsupportedError
from topologies.ethernet import HEADER, IPV4, MTU, UDP
from topologies.node_models import RouterModel
from topologies.spec import Topology

__all__ = ["FEATURES", "WRAPPING", "Trunk", "TrunkChoice", "TrunkKind", "choose_trunk", "build_trunk"]

TrunkKind: TypeAlias = Literal["vlan", "vxlan", "ifb"]
"""802.1Q; VXLAN; no common cable, only an `ifb` device that gives all ports together the rate of one."""
TrunkChoice: TypeAlias = Literal["any", "vlan", "vxlan", "ifb"]
"""`any`: the first of these that this kernel supports."""
FEATURES: dict[TrunkKind, list[str]] = {"vlan": ["802.1Q"], "vxlan": ["vxlan"], "ifb": []}
"""Kernel features of each kind (`emu.requirements.TRUNKS`)."""
WRAPPING: dict[TrunkKind, int] = {"vlan": 0, "vxlan": HEADER + IPV4 + UDP + 8, "ifb": 0}
"""Bytes by which a frame is longer in the router's bucket than without a tag; the kernel does not count 802.1Q tags."""

_VXLAN_PORT = 4789
_STEP = 10
"""Tags are multiples of it, in the order of the router's links."""
_IPV6 = "/proc/sys/net/ipv6/conf"


@dataclass(frozen=True, slots=True)
class Trunk:
    """A trunk to build: of router `name`, the `number`-th, in the network namespace of process `pid`, with `mac`.

    `links` are the devices, in this process's namespace, by which the router's networks reach the far end of the cable.
    """

    kind: TrunkKind
    name: str
    number: int
    pid: int
    mac: str
    links: tuple[str, ...]

    @property
    def device(self) -> str:
        """The router's one adapter."""
        return f"g{self.number}-eth0"

    @property
    def far_device(self) -> str:
        """The far end of the cable."""
        return f"t{self.number}"

    @property
    def tags(self) -> list[int]:
        """Tags of the networks in the order of `links`: VLAN ids, or the lower 12 bits of VXLAN network identifiers."""
        return [_STEP * place for place in range(1, len(self.links) + 1)]

    @property
    def ports(self) -> list[str]:
        """The router's sub-interfaces, in the order of `links`."""
        return [f"{self.device}.{tag}" for tag in self.tags]

    @property
    def bridges(self) -> list[str]:
        """The bridges at the far end, in the order of `links`."""
        return [f"{self.far_device}b{tag}" for tag in self.tags]

    @property
    def identities(self) -> list[int]:
        """VLAN ids, or VXLAN network identifiers, which must differ between trunks."""
        return [tag + (self.number << 12 if self.kind == "vxlan" else 0) for tag in self.tags]

    @property
    def far_mac(self) -> str:
        """MAC address of the far end of the cable; used by VXLAN only."""
        return f"02:02:{self.number >> 8:02x}:{self.number & 255:02x}:00:00"

    @property
    def addresses(self) -> tuple[str, str]:
        """Link-local IPv4 addresses of the router's end and the far end, for VXLAN's packets on the cable."""
        last = 2 * self.number
        return f"169.254.{last >> 8}.{last & 255}", f"169.254.{last >> 8}.{last & 255 | 1}"


def choose_trunk(topology: Topology, wanted: TrunkChoice = "any") -> TrunkKind:
    """Return the kind of trunks for this network on this machine, tried in namespaces of their own.

    Raises UnsupportedError if a kind was requested that this kernel lacks.
    """
    models = [topology.node(name).model for name in topology.switches]
    if wanted == "ifb" or not any(isinstance(model, RouterModel) and model.mac == "single" for model in models):
        return "ifb"
    kind: TrunkKind = run_isolated(lambda: _first_supported(wanted))
    return kind


def _first_supported(wanted: TrunkChoice) -> TrunkKind:
    kinds: tuple[TrunkKind, ...] = ("vlan", "vxlan") if wanted == "any" else (wanted,)
    for kind in kinds:
        try:
            check_kernel(FEATURES[kind])
        except UnsupportedError as error:
            if wanted != "any":
                raise UnsupportedError(f"emu.trunk: {wanted} is not supported here; {error}") from None
        else:
            return kind
    return "ifb"


def build_trunk(trunk: Trunk) -> None:
    """Make the cable, its sub-interfaces and the bridges. Raises UnsupportedError naming the router if the kernel did not."""
    near, far = trunk.device, trunk.far_device
    near_address, far_address = trunk.addresses
    ends = f"mtu {MTU + WRAPPING[trunk.kind]}"
    cable = f"link add {far} {ends} address {trunk.far_mac} type veth"
    cable += f" peer name {near} {ends} address {trunk.mac} netns {trunk.pid}"
    _configure_end(
        trunk, far, [cable, *_end_commands(trunk, far, far_address, near_address, trunk.mac), *_bridge_commands(trunk)], None
    )
    _configure_end(trunk, near, _end_commands(trunk, near, near_address, far_address, trunk.far_mac), trunk.pid)


def _configure_end(trunk: Trunk, device: str, lines: list[str], pid: int | None) -> None:
    """Run `ip` commands for one end of the cable, and verify the result; without IPv6, so that nothing else is sent."""
    ports = [f"{device}.{tag}" for tag in trunk.tags]
    quiet = [device, *ports, *(() if pid else (*trunk.bridges, *trunk.links))]
    commands = [
        "set -e; ip -batch -",
        f"[ ! -e {_IPV6} ] || for d in {' '.join(quiet)}; do echo 1 > {_IPV6}/$d/disable_ipv6; done",
    ]
    if trunk.kind == "vxlan":
        # GRO would merge packets and drop them where no counter used here shows it.
        commands.append(f"for d in {' '.join(ports)}; do ethtool -K $d gro off; done")
    run("; ".join(commands), pid=pid, stdin="\n".join(lines))
    _check(trunk, device, pid)


def _bridge_commands(trunk: Trunk) -> list[str]:
    """Return `ip` commands that join each network's sub-interface with its link."""
    return [
        line
        for bridge, link, tag in zip(trunk.bridges, trunk.links, trunk.tags, strict=True)
        for line in (
            f"link add {bridge} type bridge forward_delay 0 mcast_snooping 0",
            f"link set {link} master {bridge}",
            f"link set {trunk.far_device}.{tag} master {bridge} up",
            f"link set {bridge} up",
        )
    ]


def _end_commands(trunk: Trunk, device: str, address: str, other: str, other_mac: str) -> list[str]:
    """Return `ip` commands that give one end of the cable its sub-interfaces."""
    lines = [f"link set {device} up"]
    if trunk.kind == "vxlan":
        # Link scope: ICMP errors come from the router's own address. A static neighbour: no ARP on the cable.
        lines.append(f"addr add {address} peer {other} dev {device} scope link")
        lines.append(f"neigh replace {other} lladdr {other_mac} dev {device}")
    for tag, identity in zip(trunk.tags, trunk.identities, strict=True):
        kind = f"vlan id {identity}"
        if trunk.kind == "vxlan":
            ends = f"local {address} remote {other} dev {device} dstport {_VXLAN_PORT}"
            kind = f"vxlan id {identity} {ends} nolearning noudpcsum"
        parent = f"link {device} " if trunk.kind == "vlan" else ""
        lines.append(f"link add {parent}name {device}.{tag} mtu {MTU} type {kind}")
    return lines


def _check(trunk: Trunk, device: str, pid: int | None) -> None:
    """Raise UnsupportedError when the sub-interfaces of one end are not those requested."""
    rows = json.loads(run(f"ip -d -j link show type {trunk.kind}", pid=pid))
    found: Mapping[str, tuple[str, int]] = {
        row["ifname"]: (row.get("link") or row["linkinfo"]["info_data"]["link"], row["linkinfo"]["info_data"]["id"])
        for row in rows
    }
    for tag, identity in zip(trunk.tags, trunk.identities, strict=True):
        taken = found.get(f"{device}.{tag}")
        if taken != (device, identity):
            raise UnsupportedError(f"node {trunk.name}: {trunk.kind} {identity} was not applied by the kernel: {taken}")
