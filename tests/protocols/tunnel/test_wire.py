"""The wire of tunnels: every message comes back, any bytes are one, layer and codec agree, keys keep forged ones out."""

import contextlib
import os
from ipaddress import IPv4Address

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocols.batches import RunCodec
from protocols.errors import ReplayedError, StaleError, UnauthenticatedError, WireError
from protocols.fjm2.codec import Fjm2Codec, guarded
from protocols.machine import Codec, Message
from protocols.norm import NormCodec
from protocols.norm.messages import Ack
from protocols.norm.wire.authentication import AuthenticatedCodec
from protocols.tunnel.authentication import KeyedTunnelCodec
from protocols.tunnel.dissector import Tunnel as TunnelLayer
from protocols.tunnel.dissector import TunnelMac
from protocols.tunnel.messages import Brake, Carried, Opaque, Presence, Report, opaque
from protocols.tunnel.wire import HEADER, MAC_SIZE, TunnelCodec, group_bytes, read_told, size_of, write_told

MANY = int(os.environ.get("MCASTLAB_TUNNEL_EXAMPLES", "500"))
WORD, SHORT = st.integers(0, 0xFFFFFFFF), st.integers(0, 0xFFFF)
PACKETS = st.binary(max_size=80).filter(lambda data: not data or data[0] < 0xE0)
CARRIED = st.builds(
    Carried, WORD, WORD, st.integers(0, 127), st.binary(min_size=6, max_size=6), st.builds(opaque, PACKETS), st.booleans()
)
TOLD = st.one_of(
    st.builds(Presence, WORD, WORD, st.integers(0, 2**64 - 1)),
    st.builds(Report, WORD, WORD, WORD),
    st.builds(Brake, WORD, SHORT, SHORT),
)
KEYS = {3: b"k" * 32, 1: b"o" * 32}


@given(st.one_of(CARRIED, TOLD, st.builds(opaque, PACKETS)))
@settings(max_examples=300, deadline=None)
def test_every_message_comes_back(message: Message) -> None:
    codec = TunnelCodec()
    data = codec.encode(message)
    assert codec.decode(data) == message
    if isinstance(message, Carried):
        assert isinstance(message.message, Opaque)
        assert len(data) == HEADER + len(message.message.data)
    elif not isinstance(message, Opaque):
        assert len(data) == size_of(message)


@given(
    st.one_of(st.binary(max_size=60), st.builds(lambda kind, rest: bytes([kind]) + rest, st.integers(0xE0, 0xFF), st.binary()))
)
@settings(max_examples=MANY, deadline=None)
def test_any_bytes_are_a_message_that_is_encoded_as_they_are(data: bytes) -> None:
    for codec in (TunnelCodec(), TunnelCodec(NormCodec())):
        message = codec.decode(data)
        if not data[:1] or data[0] != 0xE9:
            assert codec.encode(message) == data
    for read in (read_told, Fjm2Codec().decode, KeyedTunnelCodec(TunnelCodec(), KEYS, lambda: 0.0).decode):
        with contextlib.suppress(WireError):
            read(data)


@given(CARRIED)
@settings(max_examples=200, deadline=None)
def test_the_layer_agrees_on_every_field_of_a_packet(carried: Carried) -> None:
    data = TunnelCodec().encode(carried)
    layer = TunnelLayer(data)
    assert (layer.version, layer.keyed, layer.type, layer.hops) == (14, 0, 1, carried.hops)
    assert (layer.site, layer.sequence, bool(layer.flags)) == (carried.site, carried.sequence, carried.requests_reports)
    assert IPv4Address(layer.group).packed + int(layer.port).to_bytes(2) == carried.group
    assert isinstance(carried.message, Opaque)
    assert bytes(layer.payload) == carried.message.data
    built = TunnelLayer(
        **{name: getattr(layer, name) for name in ("type", "flags", "hops", "site", "sequence", "group", "port")}
    )
    assert bytes(built / carried.message.data) == data


@given(TOLD)
@settings(max_examples=200, deadline=None)
def test_the_layer_agrees_on_the_messages_of_tunnels(message: Message) -> None:
    layer = TunnelLayer(write_told(message))
    if isinstance(message, Presence):
        assert (layer.type, layer.site, layer.node, layer.since) == (2, message.site, message.node, message.since)
    elif isinstance(message, Report):
        assert (layer.type, layer.site, layer.received, layer.lost) == (3, message.site, message.received, message.lost)
    else:
        assert isinstance(message, Brake)
        assert (layer.type, layer.site, layer.ring, layer.lost_share) == (4, message.site, message.ring, message.lost)


def test_a_group_is_named_by_address_and_port_or_by_a_digest() -> None:
    assert group_bytes("239.7.7.7:6003") == bytes((239, 7, 7, 7)) + (6003).to_bytes(2)
    assert len({group_bytes(name) for name in ("all", "others", "[ff12::1]:6003", "239.7.7.7:6004")}) == 4


def test_nodes_of_fjm2_read_what_a_tunnel_sends_to_its_site() -> None:
    codec = Fjm2Codec()
    told: list[Message] = [Presence(1, 2, 3), Brake(1, 2, 3)]
    assert [codec.decode(codec.encode(message)) for message in told] == told
    # Without the keys they can't tell whether a MAC is right, and read what is before it.
    keyed = KeyedTunnelCodec(TunnelCodec(), KEYS, lambda: 5.0)
    assert [codec.decode(keyed.encode(message)) for message in told] == told


class Clock:
    """A clock of a node."""

    def __init__(self) -> None:
        self.now = 1e9

    def __call__(self) -> float:
        return self.now


ACK = Ack(5, 1, 1, 7, 2, 0, 0, 0)
CARRIED_ONE = Carried(7, 1, 1, bytes(6), opaque(b"\x15 a packet"))


def _pair() -> tuple[KeyedTunnelCodec, KeyedTunnelCodec, Clock]:
    clock = Clock()
    return (
        KeyedTunnelCodec(TunnelCodec(), KEYS, clock),
        KeyedTunnelCodec(TunnelCodec(), dict(reversed(KEYS.items())), clock),
        clock,
    )


@pytest.mark.parametrize("message", [CARRIED_ONE, Presence(1, 2, 3), Report(1, 2, 3), Brake(1, 2, 3)])
def test_a_datagram_by_a_known_key_is_taken_once(message: Message) -> None:
    ours, theirs, clock = _pair()
    data = ours.encode(message)
    assert len(data) == len(TunnelCodec().encode(message)) + MAC_SIZE
    assert theirs.decode(data) == message
    with pytest.raises(ReplayedError):
        theirs.decode(data)
    clock.now += 1
    assert theirs.decode(ours.encode(message)) == message


def test_forged_and_old_datagrams_are_refused() -> None:
    ours, theirs, clock = _pair()
    data = ours.encode(CARRIED_ONE)
    for place in (1, 3, HEADER + 2, len(data) - 20, len(data) - 1):
        forged = data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]
        with pytest.raises(UnauthenticatedError):
            theirs.decode(forged)
    with pytest.raises(UnauthenticatedError):
        theirs.decode(TunnelCodec().encode(CARRIED_ONE))
    clock.now += 2
    assert theirs.decode(ours.encode(CARRIED_ONE)) == CARRIED_ONE
    with pytest.raises(ReplayedError):
        theirs.decode(data)
    clock.now += 100
    with pytest.raises(StaleError):
        theirs.decode(data)


@pytest.mark.parametrize("authenticated", [False, True], ids=["", "with EXT_AUTH"])
def test_a_publisher_with_the_keys_takes_only_authentic_brakes(authenticated: bool) -> None:
    clock, brake = Clock(), Brake(1, 65_535, 65_535)
    tunnel = KeyedTunnelCodec(TunnelCodec(), KEYS, clock)
    own: Codec = AuthenticatedCodec(Fjm2Codec(), KEYS, clock, shared=True) if authenticated else Fjm2Codec()
    publisher = guarded(own, KEYS, clock)
    data = tunnel.encode(brake)
    assert publisher.decode(data) == brake
    strangers = KeyedTunnelCodec(TunnelCodec(), {3: bytes(32)}, clock)
    for forged in (TunnelCodec().encode(brake), strangers.encode(brake), data[:6] + b"\0" + data[7:], data[:1], b""):
        with pytest.raises(WireError):
            publisher.decode(forged)
    with pytest.raises(ReplayedError):
        publisher.decode(data)
    # Packets of NORM pass, in runs where the codec has them.
    packet = own.encode(ACK)
    assert publisher.decode(packet) == ACK
    assert isinstance(publisher, RunCodec) is not authenticated


def test_the_layer_shows_a_mac_behind_what_is_carried() -> None:
    ours, _, clock = _pair()
    layer = TunnelLayer(ours.encode(CARRIED_ONE))
    assert bytes(layer.payload).startswith(b"\x15 a packet")
    mac = TunnelMac(bytes(layer)[-MAC_SIZE:])
    assert (mac.key, mac.sent_us) == (3, int(clock.now * 1e6))
