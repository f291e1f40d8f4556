"""The mark of a queue in the headers of frames, as scapy reads them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import ARP, Dot1Q, Ether
from scapy.packet import Packet, Raw

from topologies.frames.ecn import marked


def frame(*layers: Packet) -> bytes:
    """Return a frame of these layers, with its checksums."""
    packet: Packet = Ether(src="02:00:0a:00:00:01", dst="01:00:5e:48:01:01")
    for layer in layers:
        packet /= layer
    return bytes(packet)


@given(st.integers(0, 63), st.integers(1, 2), st.integers(0, 65535))
def test_a_mark_changes_the_ecn_field_and_the_checksum_alone(dscp: int, ect: int, number: int) -> None:
    def wanted(ecn: int) -> bytes:
        return frame(IP(src="10.0.0.1", dst="239.1.1.1", tos=dscp << 2 | ecn, id=number), UDP(dport=6003), Raw(b"content"))

    assert marked(wanted(ect)) == wanted(3)


@given(st.integers(0, 63), st.integers(1, 2), st.integers(0, 2**20 - 1))
def test_a_mark_of_ipv6_leaves_class_and_flow_label(dscp: int, ect: int, flow: int) -> None:
    def wanted(ecn: int) -> bytes:
        return frame(IPv6(src="fd00::1", dst="ff15::7", tc=dscp << 2 | ecn, fl=flow), UDP(dport=6003), Raw(b"content"))

    assert marked(wanted(ect)) == wanted(3)


def test_a_mark_is_found_behind_vlan_tags() -> None:
    assert marked(frame(Dot1Q(vlan=5), IP(tos=0xB9), UDP())) == frame(Dot1Q(vlan=5), IP(tos=0xBB), UDP())


@pytest.mark.parametrize(
    "packet", [frame(IP(tos=0xB8), UDP()), frame(ARP()), frame(IP(tos=2), UDP())[:24], b"short", frame(IP(tos=3), UDP())]
)
def test_what_carries_no_mark_is_left_as_it_is(packet: bytes) -> None:
    assert marked(packet) == packet
