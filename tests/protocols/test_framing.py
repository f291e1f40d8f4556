"""Messages of a connection come out of its stream as they went in, however it is cut."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocols.errors import UsageError, WireError
from protocols.framing import FRAME_LIMIT, LengthPrefixed

messages = st.lists(st.binary(max_size=300), max_size=12)


@given(messages, st.lists(st.integers(1, 400), min_size=1))
def test_messages_arrive_whole_and_in_order_however_the_stream_is_cut(sent: list[bytes], cuts: list[int]) -> None:
    sending, receiving = LengthPrefixed(), LengthPrefixed()
    stream = b"".join(map(sending.wrap, sent))
    assert len(stream) == sum(sending.size_of(len(data)) for data in sent)
    got: list[bytes] = []
    at = turn = 0
    while at < len(stream):
        end = at + cuts[turn % len(cuts)]
        receiving.unwrap(memoryview(stream)[at:end], got)
        at, turn = end, turn + 1
    assert got == sent
    assert receiving.waiting == 0


def test_a_frame_that_announces_too_much_is_an_error_after_the_messages_before_it() -> None:
    framing, got = LengthPrefixed(limit=100), list[bytes]()
    stream = framing.wrap(b"a") + framing.wrap(b"b" * 100) + (101).to_bytes(4, "big") + b"c" * 101
    with pytest.raises(WireError, match="101 bytes was announced; 100 are allowed"):
        framing.unwrap(stream, got)
    assert got == [b"a", b"b" * 100]


def test_what_waits_grows_with_what_arrived_and_not_with_what_was_announced() -> None:
    framing, got = LengthPrefixed(), list[bytes]()
    framing.unwrap(FRAME_LIMIT.to_bytes(4, "big") + b"x" * 10, got)
    assert framing.waiting == 14
    framing.unwrap(b"y" * 10, got)
    assert framing.waiting == 24
    assert not got


def test_a_message_longer_than_a_frame_is_not_sent() -> None:
    with pytest.raises(UsageError, match="longer than a frame may be, 100 bytes"):
        LengthPrefixed(limit=100).wrap(bytes(101))
