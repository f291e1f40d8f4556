"""IPv6 packets as scapy makes them: extension headers and fragments."""

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scapy.layers.inet import TCP, UDP
from scapy.layers.inet6 import (
    IPv6,
    IPv6ExtHdrDestOpt,
    IPv6ExtHdrFragment,
    IPv6ExtHdrHopByHop,
    IPv6ExtHdrRouting,
    fragment6,
)
from scapy.packet import Packet, Raw

from topologies.frames.ipv4 import Reassembled, Reassembly
from topologies.frames.ipv6 import read_ipv6

SOURCE, GROUP = "fe80::1", "ff02::7"
CONTENT = bytes(range(200))
DATAGRAM = bytes(UDP(sport=1, dport=6003, chksum=0xABCD) / Raw(CONTENT))


def packet(*layers: Packet) -> bytes:
    """Return a packet with these layers."""
    whole: Packet = IPv6(src=SOURCE, dst=GROUP)
    for layer in layers:
        whole /= layer
    return bytes(whole)


@pytest.mark.parametrize(
    "headers",
    [
        (),
        (IPv6ExtHdrHopByHop(),),
        (IPv6ExtHdrDestOpt(), IPv6ExtHdrRouting(addresses=["fd00::9", "fd00::8"])),
        (IPv6ExtHdrFragment(id=77),),
    ],
)
def test_the_datagram_is_found_behind_extension_headers(headers: tuple[Packet, ...]) -> None:
    data = packet(*headers, UDP(sport=1, dport=6003, chksum=0xABCD), Raw(CONTENT))
    found = read_ipv6(b"link" + data + b"padding", 4)
    assert found is not None
    assert (found.body, found.fragment) == (DATAGRAM, 0)
    assert (found.source[:2], found.target[-1]) == (b"\xfe\x80", 7)


@settings(deadline=None, max_examples=30)
@given(st.integers(100, 3000), st.integers(100, 1500), st.randoms())
def test_fragments_in_any_order_give_the_datagram(size: int, mtu: int, random: object) -> None:
    whole = IPv6(src=SOURCE, dst=GROUP) / IPv6ExtHdrFragment(id=5) / UDP(dport=6003, chksum=1) / Raw(bytes(size))
    parts = [bytes(part) for part in fragment6(whole, mtu)]  # type: ignore[no-untyped-call]
    random.shuffle(parts)  # type: ignore[attr-defined]
    reassembly, found = Reassembly(4), None
    for part in parts:
        read = read_ipv6(part, 0)
        assert read is not None
        found = reassembly.add(read) if read.fragment else Reassembled(read.body, ())
    assert found is not None
    assert found.body == bytes(UDP(dport=6003, chksum=1, len=size + 8) / Raw(bytes(size)))


def test_what_carries_no_udp_is_none() -> None:
    assert read_ipv6(packet(TCP()), 0) is None
    assert read_ipv6(packet(IPv6ExtHdrFragment(m=1), TCP()), 0) is None


@pytest.mark.parametrize("kept", [20, 41, 45])
def test_a_packet_cut_in_its_headers_is_an_index_or_struct_error(kept: int) -> None:
    data = packet(IPv6ExtHdrHopByHop(), IPv6ExtHdrFragment(m=1), UDP(), Raw(CONTENT))
    with pytest.raises((struct.error, IndexError)):
        read_ipv6(data[:kept], 0)
