"""The bytes and kinds that links count for frames without UDP."""

import struct

import pytest

from topologies.ethernet import size_on_link
from topologies.frames.others import OtherFrame, read_other

MACS = bytes(12)


def packet(protocol: int, body: bytes, vlan: bool = False) -> bytes:
    """Return an IPv4 packet in a frame."""
    head = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(body), 7, 0x4000, 64, protocol, 0) + bytes(8)
    tag = b"\x81\x00\x00\x07" if vlan else b""
    return MACS + tag + b"\x08\x00" + head + body


def segment(flags: int, data: int) -> bytes:
    """Return a TCP segment with time stamps."""
    return struct.pack("!HHIIBBHHH", 1, 2, 3, 4, 8 << 4, flags, 100, 0, 0) + bytes(12 + data)


@pytest.mark.parametrize(
    ("flags", "data", "kind"),
    [
        (0x10, 1448, "segment"),
        (0x18, 1, "segment"),
        (0x10, 0, "segment_ack"),
        (0x11, 9, "segment_control"),
        (2, 0, "segment_control"),
        (4, 0, "segment_control"),
    ],
)
def test_a_segment_has_its_kind_and_the_size_of_its_frame(flags: int, data: int, kind: str) -> None:
    frame = packet(6, segment(flags, data))
    found = read_other(frame)
    assert found is not None
    assert found.kind == kind
    # Links add 42 bytes: the headers of Ethernet, IPv4 and UDP.
    assert size_on_link(found.size, 42) == len(frame) == 14 + 20 + 32 + data
    tagged = read_other(packet(6, segment(flags, data), vlan=True))
    assert tagged == found


def test_the_padding_of_a_short_frame_is_no_part_of_its_packet() -> None:
    assert read_other(packet(1, bytes(10)) + bytes(16)) == OtherFrame(2, "other")


def test_what_kernels_send_on_their_own_is_not_offered_to_lines() -> None:
    assert read_other(MACS + b"\x08\x06" + bytes(46)) is None
    assert read_other(MACS + b"\x86\xdd" + bytes(60)) is None
    assert read_other(packet(2, bytes(8))) is None


def test_frames_that_are_cut_short_have_a_size_all_the_same() -> None:
    for length in range(14 + 40):
        found = read_other(packet(6, segment(0x10, 0))[:length])
        assert found is None or found.size >= 0
