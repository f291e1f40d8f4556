"""IPv4 fragments are reassembled in any order and in bounded memory."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topologies.frames.ipv4 import IpPacket, Reassembled, Reassembly, network_layer

MORE = 0x2000


def fragment(number: int, at: int, body: bytes, more: bool) -> IpPacket:
    """Return the fragment of packet `number` with `body` at this offset."""
    return IpPacket(b"\x0a\x00\x00\x01", b"\xef\x00\x00\x01", number, at // 8 | (MORE if more else 0), body)


def cut(body: bytes, sizes: list[int]) -> list[IpPacket]:
    """Cut a packet into fragments of `sizes` times 8 bytes, and the rest."""
    found, at = [], 0
    for size in sizes:
        if at + 8 * size < len(body):
            found.append(fragment(1, at, body[at : at + 8 * size], more=True))
            at += 8 * size
    return [*found, fragment(1, at, body[at:], more=False)]


@given(st.binary(min_size=9, max_size=300), st.lists(st.integers(1, 9), min_size=1, max_size=12), st.randoms())
def test_fragments_in_any_order_with_repetitions_give_the_packet_once(body: bytes, sizes: list[int], random: object) -> None:
    fragments = cut(body, sizes)
    frames = [b"frame %d" % at for at in range(len(fragments))]
    order = list(enumerate(fragments))
    random.shuffle(order)  # type: ignore[attr-defined]
    reassembly, found = Reassembly(4), []
    for number, (at, each) in enumerate(order):
        if number + 1 < len(order):
            assert reassembly.add(each, frames[at]) is None
        found.append(reassembly.add(each, frames[at]))
    assert found == [None] * (len(order) - 1) + [Reassembled(body, tuple(frames))]
    assert (reassembly.waiting, reassembly.dropped) == (0, 0)


def test_overlapping_fragments_are_never_complete() -> None:
    reassembly = Reassembly(4)
    assert reassembly.add(fragment(1, 0, bytes(16), more=True)) is None
    assert reassembly.add(fragment(1, 8, bytes(8), more=True)) is None
    assert reassembly.add(fragment(1, 24, b"", more=False)) is None


def test_the_oldest_incomplete_packet_is_dropped_beyond_the_limit() -> None:
    reassembly = Reassembly(2)
    for number in (1, 2, 3):
        reassembly.add(fragment(number, 0, bytes(8), more=True))
    assert (reassembly.waiting, reassembly.dropped) == (2, 1)
    assert reassembly.add(fragment(1, 8, b"end", more=False)) is None
    assert reassembly.add(fragment(3, 8, b"end", more=False)) == Reassembled(bytes(8) + b"end", (b"", b""))


@pytest.mark.parametrize(("tags", "at"), [(b"", 14), (b"\x81\x00\x00\x05", 18), (b"\x88\xa8\x00\x05\x81\x00\x00\x06", 22)])
def test_the_network_layer_is_found_behind_vlan_tags(tags: bytes, at: int) -> None:
    assert network_layer(bytes(12) + tags + b"\x08\x00", 12) == (0x0800, at)
