"""Recorded streams of NRL NORM's senders with our receiver."""

from collections import defaultdict
from hashlib import sha256

import pytest

from protocols.norm.messages import FLAG_STREAM, Data, Nack
from protocols.norm.repair_requests import requested_repairs
from protocols.norm.run_reception import NormBatchReceiver
from protocols.norm.stream_coding import HEADER
from tests.protocols.norm.scenes import ReceiverHarness
from tests.protocols.norm.test_recorded_sessions import recorded, sender_messages
from tests.support.captures import CAPTURES, expected
from tests.support.streams import Collected


def is_stream_session(capture: str) -> bool:
    content = [message for _, message in sender_messages(capture) if isinstance(message, Data)]
    return bool(content) and all(message.flags & FLAG_STREAM for message in content)


STREAMS = [capture for capture in CAPTURES if is_stream_session(capture)]


def received(
    capture: str, dropped: frozenset[int] = frozenset(), first: int = 0, by_message: bool = False
) -> tuple[Collected, ReceiverHarness]:
    """Return what a receiver receives that joins at the message `first` and loses the messages `dropped`."""
    receiver, sink = ReceiverHarness(kind=NormBatchReceiver), Collected(by_message)
    assert isinstance(receiver.machine, NormBatchReceiver)
    receiver.machine.accept_streams(lambda offer: sink)
    for place, (when, message) in enumerate(sender_messages(capture)):
        receiver.run_until(when)
        if place >= first and place not in dropped:
            receiver.receive(message, now=when)
    return sink, receiver


def digest(capture: str) -> str:
    (stream,) = expected()[capture]["objects"]
    return str(stream["sha256"])


def test_most_streams_are_captured_with_messages_and_losses() -> None:
    assert len(STREAMS) >= 6


@pytest.mark.parametrize("capture", STREAMS)
def test_every_recorded_stream_is_received(capture: str) -> None:
    sink, receiver = received(capture)
    assert (sha256(sink.data).hexdigest(), sink.ended, len(sink.parts)) == (digest(capture), "commit", 1)
    assert receiver.received() == [0]
    assert receiver.machine.counts()["ignored"] == 0
    assert not receiver.nacks


@pytest.mark.parametrize("capture", STREAMS)
def test_messages_begin_where_the_sender_marked_them(capture: str) -> None:
    (stream,) = expected()[capture]["objects"]
    size = stream["message_bytes"]
    sink, _ = received(capture)
    assert sink.starts[0] == 0
    if size:
        assert len(sink.starts) > 1
        assert all(start % size == 0 for start in sink.starts)


def droppable(capture: str) -> frozenset[int]:
    """Return indices of first transmissions whose loss the capture repairs: those sent again, and one per parity symbol."""
    first: dict[int, dict[int, int]] = defaultdict(dict)
    parity: dict[int, set[int]] = defaultdict(set)
    again: set[tuple[int, int]] = set()
    for place, (_, message) in enumerate(sender_messages(capture)):
        if not isinstance(message, Data):
            continue
        assert message.fti is not None
        if message.symbol >= message.fti.block:
            parity[message.block].add(message.symbol)
        elif message.symbol in first[message.block]:
            again.add((message.block, message.symbol))
        else:
            first[message.block][message.symbol] = place
    dropped = []
    for block, places in first.items():
        named = [place for symbol, place in places.items() if (block, symbol) in again]
        others = [place for symbol, place in places.items() if (block, symbol) not in again and (block or symbol)]
        dropped += named[1:] + (
            others[:: max(1, len(others) // len(parity[block]))][: len(parity[block])] if parity[block] else []
        )
    return frozenset(dropped)


REPAIRED = [capture for capture in STREAMS if droppable(capture)]


def test_some_captures_carry_repairs() -> None:
    assert len(REPAIRED) >= 2


@pytest.mark.parametrize("capture", REPAIRED)
def test_losses_are_repaired_by_the_recorded_repairs(capture: str) -> None:
    sink, receiver = received(capture, droppable(capture))
    assert (sha256(sink.data).hexdigest(), sink.ended) == (digest(capture), "commit")
    assert receiver.machine.counts()["data_lost"] == len(droppable(capture))


@pytest.mark.parametrize("capture", ["stream_late_join", "stream_messages"])
def test_who_joins_in_the_middle_begins_with_a_message(capture: str) -> None:
    (stream,) = expected()[capture]["objects"]
    size, whole = stream["message_bytes"], received(capture)[0].data
    messages = sender_messages(capture)
    # Before message 64 the sender would count as new. What is missing of the block joined at is requested, and not in the
    # capture; so it is joined at the first segment of a block.
    joined_at = next(
        place for place, (_, each) in enumerate(messages) if each.sequence >= 64 and isinstance(each, Data) and not each.symbol
    )
    sink, _ = received(capture, first=joined_at, by_message=True)
    assert sink.ended == "commit"
    assert 0 < len(sink.data) < len(whole)
    assert whole.endswith(sink.data)
    assert (len(whole) - len(sink.data)) % size == 0


def test_a_loss_is_requested_as_by_nrl_norm() -> None:
    capture = "stream_bytes_loss"
    moment, theirs = next((when, message) for when, message in recorded(capture) if isinstance(message, Nack))
    wanted = requested_repairs(theirs.requests, 5)
    receiver = ReceiverHarness(kind=NormBatchReceiver)
    assert isinstance(receiver.machine, NormBatchReceiver)
    receiver.machine.accept_streams(lambda offer: Collected())
    for when, message in sender_messages(capture):
        if when >= moment:
            break
        lost = isinstance(message, Data) and any(
            message.block == block and message.symbol < (mask >> 20).bit_count() for (_, block), mask in wanted.units()
        )
        if not lost:
            receiver.receive(message, now=when)
    receiver.run_until(moment + 10.0)
    assert requested_repairs(receiver.nacks[0].requests, 5).symbols == wanted.symbols


@pytest.mark.parametrize("capture", STREAMS)
def test_headers_of_segments_are_those_expected(capture: str) -> None:
    fields = [entry for entry in expected()[capture]["selected"] if "stream_header" in entry]
    assert fields
    sent = {message.sequence: message for _, message in sender_messages(capture) if isinstance(message, Data)}
    for entry in fields:
        payload = sent[entry["sequence"]].payload
        assert payload is not None
        assert HEADER.unpack_from(payload) == tuple(entry["stream_header"].values())
