"""Networks around routers with one adapter, and captures on the trunk of such a router. For use in isolated namespaces."""

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

__all__ = [
    "MAC",
    "PORT",
    "CapturedDatagram",
    "adapter_counters",
    "adapters",
    "capture_cable",
    "deliver",
    "routed",
    "silence_devices",
]

MAC = "02:01:00:00:00:00"
"""MAC address of the first router with one adapter."""
PORT = 7002
_ALL, _SOL_PACKET, _AUXDATA, _TAGGED = 3, 263, 8, 0x10
_AUXILIARY = struct.Struct("=IIIHHHH")
_TIMEOUT = 5.0


@dataclass(frozen=True, slots=True)
class CapturedDatagram:
    """A datagram on the trunk: direction, encapsulation and tag, source MACs, bytes of payload and of the whole frame."""

    outgoing: bool
    kind: str
    tag: int
    source: str
    inner_source: str
    payload: int
    length: int


def routed(model: dict[str, Any], *, routers: int = 1, **line: Any) -> Topology:
    """Return a sender and a receiver on LANs of their own, with `routers` such routers in a row between them.

    The links around the first router have the attributes `line`.
    """
    names = [f"g{number}" for number in range(1, routers + 1)]
    nodes = {"sender": {}, "a": {"kind": "switch"}, **{name: {"kind": "router", **model} for name in names}}
    nodes |= {"b": {"kind": "switch"}, "r": {}}
    row = ["sender", "a", *names, "b", "r"]
    links = [{"ends": [near, far], **(line if near == "a" else {})} for near, far in pairwise(row)]
    return Inline.model_validate({"kind": "graph", "nodes": nodes, "links": links}).build()


def silence_devices() -> None:
    """Keep devices made from now on from sending packets of their own, by IPv6 or as bridges by IGMP."""
    Path("/proc/sys/net/ipv4/igmp_link_local_mcast_reports").write_text("0")
    with suppress(FileNotFoundError):
        Path("/proc/sys/net/ipv6/conf/default/disable_ipv6").write_text("1")


def deliver(network: EmulatedNetwork, source: str, target: str, payloads: list[bytes]) -> int:
    """Send datagrams from one host to another, and return how many arrived."""
    with ExitStack() as stack:
        with in_network_namespace(network.pid(target)):
            receiver = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        with in_network_namespace(network.pid(source)):
            sender = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        receiver.bind(("", PORT))
        received, until = 0, time.monotonic() + _TIMEOUT
        for payload in payloads:
            sender.sendto(payload, (network.address(target), PORT))
            # One by one, so that no queue is ever full; the wait for a lost packet is short.
            if select.select([receiver], [], [], 0.2)[0]:
                assert receiver.recv(65_536) == payload
                received += 1
            assert time.monotonic() < until
        return received


def capture_cable(network: EmulatedNetwork, router: str, action: Any) -> list[CapturedDatagram]:
    """Return the datagrams of `deliver` that pass the router's trunk while `action` runs."""
    (device,), _ = network.adapters(router)
    with in_network_namespace(network.pid(router)):
        sniffer = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    with sniffer:
        sniffer.setsockopt(_SOL_PACKET, _AUXDATA, 1)
        sniffer.bind((device, _ALL))
        action()
        sniffer.setblocking(False)
        seen = []
        while select.select([sniffer], [], [], 0.1)[0]:
            frame, auxiliary, _, address = sniffer.recvmsg(65_536, socket.CMSG_SPACE(_AUXILIARY.size))
            found = _dissect(_with_tag(frame, auxiliary[0][2]), address[2] == socket.PACKET_OUTGOING)
            seen += [] if found is None else [found]
    return seen


def _with_tag(frame: bytes, auxiliary: bytes) -> bytes:
    """Return a frame with its VLAN tag, which the kernel delivers as auxiliary data."""
    status, _, _, _, _, tag, kind = _AUXILIARY.unpack(auxiliary)
    return frame[:12] + struct.pack("!HH", kind or 0x8100, tag) + frame[12:] if status & _TAGGED else frame


def _dissect(frame: bytes, outgoing: bool) -> CapturedDatagram | None:
    """Dissect a frame with scapy; None if it is not from `deliver`."""
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
    return CapturedDatagram(outgoing, kind, tag, packet.src, inner.src, inner[UDP].len - 8, len(frame))


def adapter_counters(network: EmulatedNetwork, router: str) -> dict[str, tuple[int, int]]:
    """Return packets and bytes that the router's adapter has counted, `in` and `out`."""
    devices = run("ls /proc/sys/net/ipv4/conf", pid=network.pid(router)).split()
    handles = {"10:": "in", "20:": "out"} if "mac" in devices else {"macin 1:": "in", "macout 1:": "out"}
    found = {}
    for device in {"mac", "macin", "macout"} & set(devices):
        for row in json.loads(run(f"tc -s -j qdisc show dev {device}", pid=network.pid(router))):
            handle = row["handle"] if device == "mac" else f"{device} {row['handle']}"
            if handle in handles:
                found[handles[handle]] = (row["packets"], row["bytes"])
    return found


def adapters(network: EmulatedNetwork, router: str) -> dict[str, str]:
    """Return the router's veth devices with their MAC addresses."""
    rows = json.loads(run("ip -j link show type veth", pid=network.pid(router)))
    return {row["ifname"]: row["address"] for row in rows}
