"""Bytes on an Ethernet wire, against numbers computed elsewhere from IEEE 802.3."""

import pytest

from topologies.ethernet import size_on_link, wire_bytes

# (payload, frames' bytes on the wire), MTU 1500.
ON_THE_WIRE = [(18, 84), (64, 130), (1440, 1506), (1472, 1538), (1473, 1622), (2048, 2172), (32_768, 34_110), (65_507, 68_125)]


@pytest.mark.parametrize(("payload", "octets"), ON_THE_WIRE)
def test_preamble_header_fcs_gap_padding_and_fragments_are_counted(payload: int, octets: int) -> None:
    assert wire_bytes(payload) == octets


def test_a_tag_takes_the_place_of_padding_in_the_smallest_frame() -> None:
    assert wire_bytes(0) == wire_bytes(0, "ethernet-802.1q") == 84
    assert wire_bytes(18, "ethernet-802.1q") == 88
    # Two frames, and the second is a smallest one.
    assert wire_bytes(1473, "ethernet-802.1q") == 1626


def test_a_smaller_mtu_makes_more_fragments() -> None:
    # 1008 bytes of UDP in pieces of 552, 456: fragments carry multiples of 8.
    assert wire_bytes(1000, mtu=576) == 552 + 20 + 38 + 456 + 20 + 38


def test_a_link_adds_a_number_of_bytes_or_frames_exactly() -> None:
    assert size_on_link(100, 42) == 142
    assert size_on_link(100, "ethernet") == wire_bytes(100)
