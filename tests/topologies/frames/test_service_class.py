"""The class of service in the headers of frames, as scapy writes them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import ARP, Dot1Q

from tests.topologies.frames.test_ecn import frame
from topologies.frames.service_class import dscp_of


@given(st.integers(0, 63), st.integers(0, 3), st.integers(0, 2**20 - 1))
def test_the_class_is_read_whatever_stands_beside_it(dscp: int, ecn: int, flow: int) -> None:
    traffic_class = dscp << 2 | ecn
    assert dscp_of(frame(IP(tos=traffic_class), UDP())) == dscp
    assert dscp_of(frame(Dot1Q(vlan=5), IP(tos=traffic_class), UDP())) == dscp
    assert dscp_of(frame(IPv6(tc=traffic_class, fl=flow), UDP())) == dscp


@pytest.mark.parametrize("packet", [frame(ARP()), b"short", b"", frame(IP(tos=184), UDP())[:15]])
def test_what_has_no_class_is_of_the_default_one(packet: bytes) -> None:
    assert dscp_of(packet) == 0
