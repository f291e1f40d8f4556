"""Decodable messages in any order and with any values never make a machine raise, hang, or miss an alarm."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from protocols.events import FlushCompleted
from protocols.machine import Message
from protocols.norm.messages import Ack, Data, Flush, Fti, Info, Nack, Origin, Probe, Squelch
from protocols.norm.requests import Item, Request
from protocols.norm.wire.codec import NormCodec
from tests.protocols.norm.scenes import GROUP, ReceiverHarness, SenderHarness

OBJECTS = st.sampled_from([0, 1, 2, 3, 40, 300, 32767, 32768, 65535])
BLOCKS = st.sampled_from([0, 1, 2, 3, 99, 0xFFFF, 0xFFFFFF])
SYMBOLS = st.sampled_from([0, 1, 2, 7, 8, 9, 11, 12, 200, 255])
ORIGINS = st.builds(
    Origin, st.sampled_from([1, 2]), st.sampled_from([7, 7, 7, 8]), st.sampled_from([0, 100, 115, 255]),
    st.sampled_from([0, 4, 15]), st.integers(0, 15)
)  # fmt: skip
FTIS = st.sampled_from([Fti(5, size, segment, 8, 4) for size, segment in ((2400, 100), (0, 100), (50, 100), (2400, 60))])
SEQUENCES = st.integers(0, 0xFFFF) | st.integers(0, 80)


@st.composite
def contents(draw: st.DrawFn) -> Message:
    """Draw DATA or INFO with a correct or incorrect length."""
    fti: Fti = draw(FTIS)
    head = draw(ORIGINS), draw(SEQUENCES), draw(st.integers(0, 127)), 5, draw(OBJECTS)
    if draw(st.booleans()):
        return Info(*head, fti, draw(st.binary(max_size=20)))
    block, symbol = draw(BLOCKS), draw(SYMBOLS)
    length = draw(st.sampled_from([0, 50, 60, 100]))
    if block < fti.partition.blocks and draw(st.booleans()):
        block_length = fti.partition.length(block)
        length = fti.partition.vector(block)
        if symbol < block_length:
            length = fti.partition.payload(fti.partition.first(block) + symbol)
    return Data(*head, block, symbol, 0, draw(st.sampled_from([fti, None])), bytes(length), length)


REQUESTS = st.builds(
    Request,
    st.sampled_from([1, 2, 3]),
    st.integers(0, 15),
    st.lists(st.builds(Item, st.sampled_from([5, 5, 5, 129]), OBJECTS, BLOCKS, SYMBOLS), min_size=2, max_size=6).map(
        lambda items: tuple(items[: len(items) // 2 * 2])
    ),
)
TIMES = (st.sampled_from([0, 1, 2, 0xFFFFFFFF]), st.integers(0, 1_000_000))
MESSAGES = st.one_of(
    contents(),
    st.builds(Flush, ORIGINS, SEQUENCES, st.just(5), OBJECTS, BLOCKS, SYMBOLS),
    st.builds(
        Squelch, ORIGINS, SEQUENCES, st.just(5), OBJECTS, BLOCKS, SYMBOLS, invalid=st.lists(OBJECTS, max_size=4).map(tuple)
    ),
    st.builds(Probe, ORIGINS, SEQUENCES, st.just(0), *TIMES, st.sampled_from([None, 1, 0x4005])),
    st.builds(Nack, st.just(9), st.just(0), st.just(1), st.just(7), *TIMES, st.lists(REQUESTS, max_size=4).map(tuple)),
    st.builds(Ack, st.just(9), st.just(0), st.just(1), st.just(7), st.integers(0, 255), st.just(0), *TIMES),
)
STEPS = st.lists(st.tuples(st.sampled_from([0.0, 0.001, 0.05, 2.0]), MESSAGES), max_size=40)


def feed(host: Any, until: Any, steps: list[tuple[float, Message]]) -> None:
    """Deliver the messages at their times; the host checks alarms and wake-ups."""
    for wait, message in steps:
        until(host.now + wait)
        host.deliver(message, "noise", GROUP, host.now)
    until(host.now + 10.0)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(steps=STEPS)
def test_a_receiver_survives_any_messages_and_sends_decodable_ones(steps: list[tuple[float, Message]]) -> None:
    receiver, codec = ReceiverHarness(window=16), NormCodec()
    feed(receiver.host, receiver.run_until, steps)
    for packet in receiver.host.packets:
        assert len(codec.encode(packet.message)) == packet.size
    assert len(receiver.nacks) <= 4 * (len(steps) + 40), "and does not flood the group"


@settings(max_examples=150, deadline=None, derandomize=True)
@given(steps=STEPS)
def test_a_sender_survives_any_messages_and_still_finishes(steps: list[tuple[float, Message]]) -> None:
    sender, codec = SenderHarness(probing="active", cache_min=2, cache_max=2), NormCodec()
    sender.submit(2400, 0, 50, 2400, info=b"x")
    feed(sender.host, sender.run_until, steps)
    sender.run_until(sender.now + 1e5)
    assert sender.events_of(FlushCompleted)
    for packet in sender.host.packets:
        assert len(codec.encode(packet.message)) == packet.size
