"""UDP payloads are found in frames: tagged, padded, fragmented; every other frame is passed on."""

import struct

from hypothesis import given
from hypothesis import strategies as st

from topologies.frames.datagrams import Datagram, DatagramReader

MACS = bytes(12)


def frames_of(payload: bytes, mtu: int = 1500, number: int = 7) -> list[bytes]:
    """Return a UDP datagram in as many frames as it needs; `number` is its IPv4 identification."""
    datagram = struct.pack("!HHHH", 5000, 7001, len(payload) + 8, 0) + payload
    size = (mtu - 20) // 8 * 8 if len(datagram) > mtu - 20 else len(datagram)
    frames = []
    for at in range(0, len(datagram), size):
        part, more = datagram[at : at + size], 0x2000 if at + size < len(datagram) else 0
        head = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(part), number, more | at // 8, 1, 17, 0)
        frames.append(MACS + b"\x08\x00" + head + bytes((10, 0, 0, 1, 239, 200, 1, 1)) + part)
    return frames


def frame_of(payload: bytes, vlan: int | None = None) -> bytes:
    """Return a UDP datagram in one frame, with a VLAN tag if given."""
    (frame,) = frames_of(payload)
    return frame if vlan is None else frame[:12] + b"\x81\x00" + struct.pack("!H", vlan) + frame[12:]


def test_a_last_fragment_shorter_than_a_udp_header_completes_the_datagram() -> None:
    # 1480 bytes of body in the first frame, and 3 in the second.
    payload, reader = bytes(1475), DatagramReader()
    first, second = frames_of(payload)
    assert reader.take(first) == ()
    assert reader.take(second) == Datagram(payload, (first, second))


def test_the_frames_of_a_datagram_are_in_order_of_offset() -> None:
    payload, reader = bytes(range(256)) * 16, DatagramReader()
    frames = frames_of(payload)
    assert [reader.take(frame) for frame in reversed(frames)] == [(), (), Datagram(payload, tuple(frames))]


def test_incomplete_datagrams_are_evicted() -> None:
    reader = DatagramReader()
    for number in range(1000):
        assert reader.take(frames_of(bytes(2000), 1500, number)[0]) == ()
    # The last fragments are kept, the first are evicted.
    assert isinstance(reader.take(frames_of(bytes(2000), 1500, 999)[1]), Datagram)
    assert reader.take(frames_of(bytes(2000), 1500, 1)[1]) == ()


def test_a_datagram_with_a_vlan_tag_is_found() -> None:
    payload = bytes(range(50))
    assert DatagramReader().take(frame_of(payload, vlan=5)) == Datagram(payload, frame_of(payload, vlan=5))


def test_padding_is_removed_from_a_datagram() -> None:
    frame = frame_of(b"n") + bytes(17)
    assert DatagramReader().take(frame) == Datagram(b"n", frame)


@given(st.binary(max_size=80), st.sampled_from([b"", b"\x08\x00", b"\x81\x00\x00\x05\x08\x00"]))
def test_any_frame_is_a_datagram_or_passed_on_or_a_fragment(data: bytes, kind: bytes) -> None:
    frame = bytes(12) + kind + data
    found = DatagramReader().take(frame)
    assert found in ((), (frame,)) or (isinstance(found, Datagram) and found.frames == frame)
