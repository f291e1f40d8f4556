"""EXT_AUTH: layout and MAC of RFC 6584 5, and what a receiver refuses: forged, changed, replayed and old messages."""

import hashlib
import hmac
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocols.errors import ReplayedError, StaleError, UnauthenticatedError, UsageError, WireError
from protocols.norm.dissector.layers import ExtAuth, Norm
from protocols.norm.messages import Ack, Application, Data, Eot, Extension, Fti, NormMessage, Origin, Report
from protocols.norm.wire.authentication import HET_AUTH, SOURCES, TOLERANCE, WINDOW, AuthenticatedCodec, Authenticator
from protocols.norm.wire.codec import NormCodec
from protocols.norm.wire.sizes import AUTH_SIZE, size_of
from tests.support.norm_strategies import messages

KEY, OTHER = bytes(range(32)), bytes(range(32, 64))
NOW = 1_800_000_000.0
MICROSECOND = 1e-6
FIXED = settings(deadline=None, derandomize=True)
ORIGIN = Origin(0x0A000001, 77, 60, 4, 3)
FTI = Fti(5, 40_000, 500, 20, 6)


class Clock:
    """A clock that a test moves."""

    def __init__(self, now: float = NOW) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def codec(clock: Clock | None = None, keys: dict[int, bytes] | None = None) -> AuthenticatedCodec:
    """Return the codec of a node."""
    return AuthenticatedCodec(NormCodec(), keys or {5: KEY}, clock or Clock())


def segment(symbol: int, origin: Origin = ORIGIN) -> Data:
    """Return a source segment."""
    return Data(origin, symbol, 0, 5, 0, 0, symbol % 20, 20, FTI, bytes([symbol & 255]) * 500, 500)


def outcome(receiver: AuthenticatedCodec, data: bytes) -> str:
    """Return "accepted", or the reason for which hosts count the packet."""
    try:
        receiver.decode(data)
    except WireError as error:
        return error.reason
    return "accepted"


@FIXED
@given(messages())
def test_every_kind_of_message_is_the_same_with_the_extension_and_as_long_as_stated(message: NormMessage) -> None:
    encoded = codec().encode(message)
    assert len(encoded) == size_of(message) + AUTH_SIZE
    assert codec().decode(encoded) == NormCodec().decode(NormCodec().encode(message))


def test_the_extension_has_the_layout_and_the_mac_of_rfc_6584() -> None:
    plain = NormCodec().encode(segment(3))
    encoded = codec(Clock(2.5)).encode(segment(3))
    end = plain[1] * 4
    extension, rest = encoded[end : end + 24], encoded[end + 24 :]
    assert (encoded[0], encoded[1], encoded[2:end], rest) == (plain[0], plain[1] + 6, plain[2:end], plain[end:])
    # HET 1, HEL 6; ASID 5, three reserved bits, AR 1; 40 bits of microseconds.
    assert extension[:8] == bytes((1, 6, 0x51)) + (2_500_000).to_bytes(5)
    # The first period of 2**40 microseconds, number 0.
    key = hmac.new(KEY, b"mcastlab NORM EXT_AUTH" + bytes(8), hashlib.sha256).digest()
    zeroed = encoded[: end + 8] + bytes(16) + rest
    assert extension[8:] == hmac.new(key, zeroed, hashlib.sha256).digest()[:16]


def test_the_dissector_shows_the_fields() -> None:
    layer = Norm(codec(Clock(2.5)).encode(segment(3)))
    (extension,) = (each for each in layer.extensions if isinstance(each, ExtAuth))
    assert (extension.het, extension.hel, extension.asid, extension.rsvd, extension.anti_replay) == (1, 6, 5, 0, 1)
    assert extension.anti_replay_sequence_number == 2_500_000
    assert len(extension.group_keyed_mac) == 16
    assert bytes(ExtAuth(asid=5, anti_replay_sequence_number=7, group_keyed_mac=bytes(16)))[:8] == b"\1\6\x51\0\0\0\0\7"


def test_a_codec_without_keys_skips_the_extension() -> None:
    found, wanted = NormCodec().decode(codec().encode(segment(3))), NormCodec().decode(NormCodec().encode(segment(3)))
    assert isinstance(found, Data)
    (extension,) = found.extensions
    assert (extension.het, len(extension.content)) == (HET_AUTH, 22)
    assert replace(found, extensions=()) == wanted


@FIXED
@given(st.data())
def test_a_message_with_any_bit_changed_is_refused(data: st.DataObject) -> None:
    encoded = bytearray(codec().encode(segment(3)))
    at = data.draw(st.integers(0, len(encoded) - 1))
    encoded[at] ^= 1 << data.draw(st.integers(0, 7))
    with pytest.raises(UnauthenticatedError):
        codec().decode(bytes(encoded))


@FIXED
@given(messages())
def test_a_message_without_the_extension_or_by_another_key_is_refused(message: NormMessage) -> None:
    for foreign in (NormCodec(), codec(keys={5: OTHER}), codec(keys={4: KEY})):
        assert outcome(codec(), foreign.encode(message)) == "unauthenticated"


@FIXED
@given(st.binary(max_size=80) | st.binary(max_size=60).map(lambda rest: b"\x12\x0e" + rest + b"\1\6\x51" + rest))
def test_no_bytes_make_the_codec_raise_anything_but_a_wire_error(data: bytes) -> None:
    assert outcome(codec(), data) == "unauthenticated"


def test_a_message_is_accepted_once() -> None:
    sender, receiver = codec(), codec()
    sent = [sender.encode(segment(number)) for number in range(50)]
    assert [outcome(receiver, data) for data in sent + sent] == ["accepted"] * 50 + ["replayed"] * 50


def test_messages_may_overtake_one_another_by_as_many_as_are_remembered() -> None:
    sender, receiver = codec(), codec()
    early, late, *others = (sender.encode(segment(number)) for number in range(WINDOW))
    assert {outcome(receiver, data) for data in others} == {"accepted"}
    assert [outcome(receiver, late), outcome(receiver, early)] == ["accepted", "accepted"]
    assert {outcome(receiver, data) for data in (early, late, *others)} == {"replayed"}


def test_a_number_older_than_those_remembered_is_refused_though_it_never_came() -> None:
    sender, receiver = codec(), codec()
    held_back = sender.encode(segment(0))
    for number in range(WINDOW + 1):
        receiver.decode(sender.encode(segment(number)))
    assert outcome(receiver, held_back) == "replayed"


def test_a_sender_that_restarts_goes_on_and_its_earlier_messages_stay_refused() -> None:
    receiver = codec(Clock(NOW + 2))
    before = [codec().encode(segment(number)) for number in range(3)]
    assert outcome(receiver, before[0]) == "accepted"
    after = codec(Clock(NOW + 1)).encode(segment(0))
    assert [outcome(receiver, data) for data in (after, before[0], after)] == ["accepted", "replayed", "replayed"]


def test_what_a_sender_sent_before_its_restart_is_refused_though_it_never_came() -> None:
    clock, receiver = Clock(), codec(Clock(NOW + 2))
    sender = codec(clock)
    sent = [sender.encode(segment(number)) for number in range(4)]
    restarted = replace(ORIGIN, instance_id=78)
    clock.now += 1
    later = [codec(clock).encode(segment(number, restarted)) for number in range(1)]
    clock.now += 0.001
    later += [codec(clock).encode(segment(number, restarted)) for number in range(1, 2)]
    feedback = codec(clock).encode(Ack(ORIGIN.source_id, 0, 5, 6, 1, 0, 0, 0))
    # The first segment is late, the last ones never came; of the new instance the second overtakes the first.
    assert [outcome(receiver, data) for data in (sent[1], sent[0], later[1], later[0])] == ["accepted"] * 4
    assert [outcome(receiver, data) for data in (sent[2], sent[3], sent[0])] == ["replayed"] * 3
    assert outcome(receiver, feedback) == "replayed"
    clock.now += 0.001
    assert outcome(receiver, codec(clock).encode(Ack(ORIGIN.source_id, 0, 5, 6, 1, 0, 0, 0))) == "accepted"


def test_every_source_has_numbers_of_its_own() -> None:
    receiver = codec()
    for node in (1, 2, 3):
        assert outcome(receiver, codec().encode(segment(0, replace(ORIGIN, source_id=node)))) == "accepted"


def test_what_a_node_has_sent_itself_is_refused() -> None:
    node = codec()
    assert outcome(node, node.encode(segment(0))) == "replayed"


@pytest.mark.parametrize("ahead", [-1, 1])
def test_a_message_from_another_time_is_stale(ahead: int) -> None:
    for seconds, wanted in ((TOLERANCE - 1, "accepted"), (TOLERANCE + 1, "stale"), (5 * 86_400, "stale")):
        assert outcome(codec(), codec(Clock(NOW + ahead * seconds)).encode(segment(0))) == wanted
    with pytest.raises(StaleError, match=r"sent 400 s (before|after) this clock's time"):
        codec().decode(codec(Clock(NOW + ahead * 400)).encode(segment(0)))


@pytest.mark.parametrize("days", [2**40 / 86_400e6, 30, 3650])
def test_a_recording_of_weeks_ago_is_refused_even_if_its_forty_bits_are_of_now(days: float) -> None:
    recorded = codec(Clock(NOW - days * 86_400)).encode(segment(0))
    assert outcome(codec(), recorded) == "unauthenticated"


def test_numbers_go_on_where_their_forty_bits_begin_again() -> None:
    edge = 1635 * 2**40 * MICROSECOND
    clock = Clock(edge - 0.001)
    sender, receiver = codec(clock), codec(clock)
    sent = []
    for step in range(4):
        clock.now = edge + (step - 2) * 0.001
        sent.append(sender.encode(segment(step)))
        assert outcome(receiver, sent[-1]) == "accepted"
    assert {outcome(receiver, data) for data in sent} == {"replayed"}


def test_numbers_rise_while_the_clock_stands_or_goes_back() -> None:
    clock = Clock()
    sender, receiver = codec(clock), codec()
    for step in (0.0, 0.0, -5.0, -5.0, 1.0):
        clock.now = NOW + step
        assert outcome(receiver, sender.encode(segment(0))) == "accepted"


def test_keys_are_changed_without_a_gap() -> None:
    old, both, swapped, new = {1: KEY}, {1: KEY, 2: OTHER}, {2: OTHER, 1: KEY}, {2: OTHER}
    assert outcome(codec(keys=both), codec(keys=old).encode(segment(0))) == "accepted"
    assert outcome(codec(keys=both), codec(keys=swapped).encode(segment(0))) == "accepted"
    assert outcome(codec(keys=new), codec(keys=swapped).encode(segment(0))) == "accepted"
    assert outcome(codec(keys=new), codec(keys=old).encode(segment(0))) == "unauthenticated"


def test_of_very_many_sources_those_silent_for_longest_are_forgotten() -> None:
    clock = Clock()
    keys = {5: KEY}
    receiver, first = codec(clock), codec(clock).encode(segment(0, replace(ORIGIN, source_id=1)))
    receiver.decode(first)
    for node in range(2, SOURCES + 2):
        clock.now += 0.001
        sent = AuthenticatedCodec(NormCodec(), keys, clock).encode(segment(0, replace(ORIGIN, source_id=node)))
        receiver.decode(sent)
    assert len(receiver._windows) <= SOURCES
    assert outcome(receiver, sent) == "replayed"
    # Within the tolerance of the clock, a source that was forgotten can be replayed once.
    assert [outcome(receiver, first), outcome(receiver, first)] == ["accepted", "replayed"]


def test_a_header_without_room_is_refused_when_sending() -> None:
    # A header has 1,020 bytes at most: 16 and four extensions.
    *long, last = (Extension(2, bytes(size - 2)) for size in (252, 252, 252, 224))
    full = Application(ORIGIN, 1, b"", (*long, last))
    assert outcome(codec(), codec().encode(full)) == "accepted"
    with pytest.raises(UsageError, match="header of 1000 bytes; 996 at most with EXT_AUTH"):
        codec().encode(replace(full, extensions=(*long, Extension(2, bytes(226)))))


def test_messages_without_other_extensions_carry_it_too() -> None:
    for message in (Eot(ORIGIN, 4), Report(9, 4, b"abc")):
        assert codec().decode(codec().encode(message)) == message


def test_a_mac_can_be_checked_without_the_protection_against_replay() -> None:
    checking, data = Authenticator({5: KEY}), codec().encode(segment(0))
    number = round(NOW * 1e6)
    assert [checking.verify(data, number + error) for error in (0, 0, 86_400_000_000)] == [number] * 3


def test_reasons_are_those_that_hosts_count() -> None:
    found = [error.reason for error in (WireError, UnauthenticatedError, ReplayedError, StaleError)]
    assert found == ["malformed", "unauthenticated", "replayed", "stale"]
