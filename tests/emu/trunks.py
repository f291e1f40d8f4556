"""Networks around routers with one adapter, and what is seen on the cable of such a router. To be used inside a world."""

import json
import select
import socket
import struct
import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Dot1Q, Ether
from scapy.layers.vxlan import VXLAN

from emu.namespaces import in_network_namespace
from emu.network import EmulatedNetwork
from emu.requirements import run
from topologies.inline import Inline
from topologies.spec import Topology

__all__ = ["MAC", "PORT", "Seen", "adapters", "counted", "deliver", "hush", "routed", "watch"]

MAC = "02:01:00:00:00:00"
"""Of the first router with one adapter."""
PORT = 7002
_ALL, _SOL_PACKET, _AUXDATA, _TAGGED = 3, 263, 8, 0x10
_AUXILIARY = struct.Struct("=IIIHHHH")
_PATIENCE = 5.0


@dataclass(frozen=True, slots=True)
class Seen:
    """One datagram on the cable: its way, what tells its network apart, who put it there, and its length with all around it."""

    outgoing: bool
    kind: str
    tag: int
    source: str
    inner_source: str
    payload: int
    length: int


def routed(model: dict[str, Any], *, routers: int = 1, **line: Any) -> Topology:
    """A sender and a receiver on LANs of their own, with such routers in a row between, links around the first like `line`."""
    names = [f"g{number}" for number in range(1, routers + 1)]
    nodes = {"sender": {}, "a": {"kind": "switch"}, **{name: {"kind": "router", **model} for name in names}}
    nodes |= {"b": {"kind": "switch"}, "r": {}}
    row = ["sender", "a", *names, "b", "r"]
    links = [{"ends": [near, far], **(line if near == "a" else {})} for near, far in pairwise(row)]
    return Inline.model_validate({"kind": "graph", "nodes": nodes, "links": links}).build()


def hush() -> None:
    """From now on no device made in this world says anything of itself, be it over IPv6 or as a bridge over IGMP."""
    Path("/proc/sys/net/ipv4/igmp_link_local_mcast_reports").write_text("0")
    with suppress(FileNotFoundError):
        Path("/proc/sys/net/ipv6/conf/default/disable_ipv6").write_text("1")


def deliver(network: EmulatedNetwork, source: str, target: str, payloads: list[bytes]) -> int:
    """Send datagrams from one host to another; how many came."""
    with ExitStack() as stack:
        with in_network_namespace(network.pid(target)):
            ear = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        with in_network_namespace(network.pid(source)):
            mouth = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        ear.bind(("", PORT))
        heard, until = 0, time.monotonic() + _PATIENCE
        for payload in payloads:
            mouth.sendto(payload, (network.address(target), PORT))
            # One by one, so that no queue is ever full; what a link loses is not waited for long.
            if select.select([ear], [], [], 0.2)[0]:
                assert ear.recv(65_536) == payload
                heard += 1
            assert time.monotonic() < until
        return heard


def watch(network: EmulatedNetwork, router: str, play: Any) -> list[Seen]:
    """The datagrams of `deliver` that pass the router's cable while `play` is called."""
    (device,), _ = network.adapters(router)
    with in_network_namespace(network.pid(router)):
        eye = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    with eye:
        eye.setsockopt(_SOL_PACKET, _AUXDATA, 1)
        eye.bind((device, _ALL))
        play()
        eye.setblocking(False)
        seen = []
        while select.select([eye], [], [], 0.1)[0]:
            frame, auxiliary, _, address = eye.recvmsg(65_536, socket.CMSG_SPACE(_AUXILIARY.size))
            found = _dissected(_whole(frame, auxiliary[0][2]), address[2] == socket.PACKET_OUTGOING)
            seen += [] if found is None else [found]
    return seen


def _whole(frame: bytes, auxiliary: bytes) -> bytes:
    """A frame with its tag, which the kernel keeps beside it."""
    status, _, _, _, _, tag, kind = _AUXILIARY.unpack(auxiliary)
    return frame[:12] + struct.pack("!HH", kind or 0x8100, tag) + frame[12:] if status & _TAGGED else frame


def _dissected(frame: bytes, outgoing: bool) -> Seen | None:
    """What scapy makes of it; None for what is not of `deliver`."""
    packet = Ether(frame)
    inner = packet
    kind, tag = "", 0
    if VXLAN in packet:
        inner, kind, tag = packet[VXLAN].payload, "vxlan", packet[VXLAN].vni
    elif Dot1Q in packet:
        kind, tag = "vlan", packet[Dot1Q].vlan
    if UDP not in inner or inner[UDP].dport != PORT:
        return None
    assert inner[IP].frag == 0
    return Seen(outgoing, kind, tag, packet.src, inner.src, inner[UDP].len - 8, len(frame))


def counted(network: EmulatedNetwork, router: str) -> dict[str, tuple[int, int]]:
    """Packets and bytes that the router's adapter has counted: `in` and `out`."""
    devices = run("ls /proc/sys/net/ipv4/conf", pid=network.pid(router)).split()
    places = {"10:": "in", "20:": "out"} if "mac" in devices else {"macin 1:": "in", "macout 1:": "out"}
    found = {}
    for device in {"mac", "macin", "macout"} & set(devices):
        for row in json.loads(run(f"tc -s -j qdisc show dev {device}", pid=network.pid(router))):
            place = row["handle"] if device == "mac" else f"{device} {row['handle']}"
            if place in places:
                found[places[place]] = (row["packets"], row["bytes"])
    return found


def adapters(network: EmulatedNetwork, router: str) -> dict[str, str]:
    """The router's devices that are ends of cables, with their MAC addresses."""
    rows = json.loads(run("ip -j link show type veth", pid=network.pid(router)))
    return {row["ifname"]: row["address"] for row in rows}
