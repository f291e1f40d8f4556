"""Runs: what is sent, received and decoded as one run is what the same messages are one by one."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocols.errors import WireError
from protocols.machine import Message
from protocols.norm.messages import FLAG_REPAIR, Data, DataRun
from protocols.norm.run_reception import NormBatchReceiver
from protocols.norm.stream_receiver import NormStreamReceiver
from protocols.norm.wire.codec import NormCodec
from protocols.norm.wire.sizes import size_of
from protocols.rng import Rng
from tests.protocols.norm.scenes import GROUP, MessageBuilder, ReceiverHarness, SenderHarness, items

STEP = 0.0041237
"""Seconds between two wake-ups of a busy host; at none of them a packet is due exactly."""


def batches(packets: list[bytes], most: int) -> list[tuple[bytes, int]]:
    """Coalesce packets as GRO does: those of one length, of which the last may be shorter, at most `most` together."""
    made: list[tuple[bytes, int]] = []
    batch: list[bytes] = []
    for packet in packets:
        if batch and (len(packet) > len(batch[0]) or len(batch[-1]) < len(batch[0]) or len(batch) == most):
            made.append((b"".join(batch), len(batch[0])))
            batch = []
        batch.append(packet)
    return [*made, (b"".join(batch), len(batch[0]))] if batch else made


def decoded(codec: NormCodec, data: bytes, segment: int) -> list[Message]:
    """Decode a batch as a host does."""
    found: list[Message] = []
    start = 0
    while start < len(data):
        run = codec.decode_run(data, start, segment) if start + segment < len(data) else None
        if run is None:
            with suppress(WireError):
                found.append(codec.decode(data[start : start + segment]))
            start += segment
        else:
            found.append(run)
            start += run.packets * segment
    return found


def singles(messages: list[Message]) -> list[Message]:
    """Replace runs by their messages."""
    return [one for message in messages for one in (message.messages() if isinstance(message, DataRun) else (message,))]


def deliver(receiver: ReceiverHarness, message: Message, now: float) -> None:
    """Deliver a message or a run as a host does."""
    machine = receiver.machine
    if isinstance(message, DataRun):
        assert isinstance(machine, NormBatchReceiver)
        receiver.host.turn(now)
        receiver.host.call(machine.receive_run, message, "sender", GROUP)
    else:
        receiver.receive(message, now=now)


def state_of(receiver: ReceiverHarness) -> dict[str, Any]:
    """Return what a receiver knows, and what it sent."""
    (state,) = receiver.machine.senders()
    sinks = {key: bytes(sink.content) for key, sink in receiver.host.sinks.items() if hasattr(sink, "content")}
    return {
        "position": state.position,
        "complete": state.is_complete,
        "deadline": receiver.machine.deadline,
        "counts": receiver.machine.counts(),
        "held": receiver.machine.held(),
        "events": receiver.host.events,
        "sent": receiver.sent,
        "sinks": sinks,
    }


class Session:
    """A sender without runs and one with them, and a receiver of each; the same packets are lost in both."""

    def __init__(self, seed: int, loss: float, most: int, **parameters: Any) -> None:
        self.rng = Rng(seed)
        self.loss, self.most = loss, most
        self.senders = [SenderHarness(**parameters) for _ in range(2)]
        self.senders[1].machine.send_runs(64)
        self.receivers = [ReceiverHarness(kind=kind, **parameters) for kind in (NormStreamReceiver, NormBatchReceiver)]
        self.codecs = [NormCodec() for _ in range(3)]
        self.heard = self.runs = 0

    def step(self, now: float) -> None:
        """Advance both sessions to `now` and compare them."""
        for sender in self.senders:
            sender.host.turn(now)
        plain, with_runs = ([message for _, _, message in sender.sent] for sender in self.senders)
        for sender in self.senders:
            sender.sent.clear()
        self.runs += sum(isinstance(message, DataRun) for message in with_runs)
        packets = [self.codecs[0].encode(message) for message in plain]
        assert [data for message in with_runs for data in self.encoded(message)] == packets
        self.deliver(packets, now)

    def encoded(self, message: Message) -> list[bytes]:
        """Encode what the sender with runs sent, and check its size."""
        codec = self.codecs[0]
        packets = codec.encode_run(message) if isinstance(message, DataRun) else [codec.encode(message)]
        assert size_of(message) == sum(map(len, packets))  # type: ignore[arg-type]
        return packets

    def deliver(self, packets: list[bytes], now: float) -> None:
        """Deliver what is not lost, to the second receiver in batches, some of them twice; return the NACKs."""
        arrived = [packet for packet in packets if self.rng.uniform() >= self.loss]
        grouped = batches(arrived, self.most)
        grouped += [batch for batch in grouped if self.rng.uniform() < self.loss / 4]
        for data, segment in grouped:
            for start in range(0, len(data), segment):
                self.receivers[0].receive(self.codecs[1].decode(data[start : start + segment]), now=now)
            for message in decoded(self.codecs[2], data, segment):
                deliver(self.receivers[1], message, now)
        for receiver in self.receivers:
            receiver.host.turn(now)
        if self.receivers[0].machine.senders():
            plain, with_runs = map(state_of, self.receivers)
            assert with_runs == plain
        for nack in self.receivers[0].nacks[self.heard :]:
            self.heard += 1
            for sender in self.senders:
                sender.host.deliver(nack, "r", GROUP, now)


@settings(max_examples=15, deadline=None)
@given(
    seed=st.integers(0, 1 << 30),
    loss=st.sampled_from([0.0, 0.02, 0.2]),
    most=st.integers(2, 45),
    fec=st.sampled_from([0, 5, 129]),
    parity=st.sampled_from([(0, 0), (4, 0), (4, 2)]),
    backoff=st.sampled_from([0, 4]),
    sizes=st.lists(st.integers(1, 6000), min_size=1, max_size=3),
)
def test_a_session_with_runs_equals_one_without(
    seed: int, loss: float, most: int, fec: int, parity: tuple[int, int], backoff: int, sizes: list[int]
) -> None:
    code = {"parity": parity[0], "auto_parity": parity[1]} if fec else {"parity": 0}
    session = Session(seed, loss, most, fec=fec, backoff=backoff, block=16, **code)
    for sender in session.senders:
        sender.submit(*sizes)
    for step in range(2000):
        session.step(step * STEP)
        if len(session.receivers[0].received()) == len(sizes):
            return
    raise AssertionError("not everything was received")


def test_a_session_has_runs_of_new_symbols_and_of_repairs() -> None:
    session = Session(3, 0.0, 45, block=16, parity=0)
    for sender in session.senders:
        sender.submit(50_000)
    for step in range(200):
        session.loss = 1.0 if step == 5 else 0.0
        session.step(step * STEP)
    assert session.runs > 20
    assert session.receivers[0].received() == [0]
    counts = session.senders[1].machine.counts()
    assert counts["repairs_sent"] > 20
    assert counts["data_sent"] == 500


def run_of(builder: MessageBuilder, first: int, count: int, flags: int = 0) -> DataRun:
    """Build a run of block 0, by the codec."""
    codec, messages = NormCodec(), [builder.data(0, symbol, flags=flags) for symbol in range(first, first + count)]
    packets = [codec.encode(message) for message in messages]
    codec.decode(packets[0])
    run = codec.decode_run(b"".join(packets), 0, len(packets[0]))
    assert run is not None
    assert [codec.encode(message) for message in run.messages()] == packets
    return run


def test_a_run_ends_where_its_block_ends_a_packet_is_missing_or_the_header_differs() -> None:
    builder, codec = MessageBuilder(bytes(2350)), NormCodec()
    packets = [codec.encode(message) for message in builder.whole()]
    segment = len(packets[0])
    codec.decode(packets[0])

    def length(*numbers: int) -> int:
        run = codec.decode_run(b"".join(packets[number] for number in numbers), 0, segment)
        return 0 if run is None else run.packets

    assert length(*range(24)) == 8
    assert length(0, 1, 2, 4, 5) == 3
    assert length(0, 2) == 0
    assert length(6, 7, 8) == 2
    # The last segment of the object is short, and so is its packet.
    assert length(21, 22, 23) == 3
    repair = codec.encode(builder.data(0, 3, flags=FLAG_REPAIR))
    assert codec.decode_run(packets[2] + repair, 0, segment) is None


def test_sequence_numbers_that_begin_again_end_a_run() -> None:
    builder, codec = MessageBuilder(bytes(800), sequence=0xFFFE), NormCodec()
    packets = [codec.encode(message) for message in builder.whole()]
    codec.decode(packets[0])
    codec.decode(packets[2])
    batch, segment = b"".join(packets), len(packets[0])
    first, rest = codec.decode_run(batch, 0, segment), codec.decode_run(batch, 2 * segment, segment)
    assert first is not None
    assert rest is not None
    assert (first.packets, rest.packets, rest.sequence) == (2, 6, 0)


def test_a_sender_begins_a_new_run_when_sequence_numbers_begin_again() -> None:
    sender = SenderHarness(rate=1e8, segment=10, block=200, parity=0)
    sender.machine.send_runs(64)
    sender.submit(700_000)
    for step in range(12):
        sender.host.turn(step * STEP)
    runs = sender.messages_of(DataRun)
    assert sum(run.packets for run in runs) > 0x10000
    assert all(run.sequence + run.packets <= 0x10000 for run in runs)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_whatever_arrives_in_a_batch_is_decoded_as_it_is_one_by_one(data: st.DataObject) -> None:
    builder = MessageBuilder(bytes(2350))
    codecs = NormCodec(), NormCodec()
    packets = [codecs[0].encode(message) for message in builder.whole()]
    segment = len(packets[0])
    chosen = [packets[data.draw(st.integers(0, 23))] if data.draw(st.booleans()) else packets[number] for number in range(16)]
    batch = bytearray(b"".join(packet.ljust(segment, b"\0") for packet in chosen))
    for _ in range(data.draw(st.integers(0, 4))):
        batch[data.draw(st.integers(0, len(batch) - 1))] = data.draw(st.integers(0, 255))
    whole = bytes(batch)
    for codec in codecs:
        codec.decode(packets[0])
    expected = []
    for start in range(0, len(whole), segment):
        with suppress(WireError):
            expected.append(codecs[1].decode(whole[start : start + segment]))
    assert singles(decoded(codecs[0], whole, segment)) == expected


def test_a_sink_that_fails_ends_its_object_within_a_run() -> None:
    builder, receiver = MessageBuilder(bytes(1600)), ReceiverHarness(kind=NormBatchReceiver)

    class Full:
        def write(self, offset: int, data: bytes | memoryview) -> None:
            raise OSError("disk full")

        def abort(self) -> None:
            pass

    receiver.host.accepting = lambda offer: Full()  # type: ignore[assignment,return-value]
    receiver.receive(builder.data(0, 0))
    deliver(receiver, run_of(builder, 1, 7), 0.0)
    assert receiver.aborted() == [(0, "sink: disk full")]


def test_a_run_of_an_unknown_sender_is_received_like_its_messages() -> None:
    builder, receiver = MessageBuilder(bytes(800)), ReceiverHarness(kind=NormBatchReceiver)
    deliver(receiver, run_of(builder, 0, 8), 0.0)
    receiver.receive(builder.flush())
    assert receiver.received() == [0]


def test_a_sender_that_was_not_allowed_to_sends_no_run() -> None:
    sender = SenderHarness(rate=1e8)
    sender.submit(5000)
    sender.run_until(0.1)
    assert not sender.messages_of(DataRun)
    assert len(sender.messages_of(Data)) == 50


def test_parity_that_another_thread_encodes_is_the_same() -> None:
    sent = []
    with ThreadPoolExecutor(1) as pool:
        calls: list[int] = []

        def background(function: Callable[..., Any], *arguments: Any) -> "Future[Any]":
            calls.append(len(arguments[1]))
            return pool.submit(function, *arguments)

        for with_thread in (False, True):
            sender = SenderHarness(rate=1e7, block=16, auto_parity=1)
            sender.machine.send_runs(64)
            if with_thread:
                sender.machine.compute_in(background)
            sender.submit(100_000)
            for step in range(6):
                sender.host.turn(step * STEP)
            sender.nack(*[items((0, block, 16)) for block in range(30)], now=0.021)
            sender.nack(items((0, 3, 16), (0, 3, 17), (0, 3, 18)), now=0.0211)
            for step in range(6, 60):
                sender.host.turn(step * STEP)
            assert sender.machine.counts()["repairs_sent"] >= 32
            sent.append([(when, singles([message])) for when, _, message in sender.sent])
    assert sent[0] == sent[1]
    assert max(calls) > 1, "repairs of several blocks are encoded by one call"


def test_a_source_that_fails_while_parity_is_encoded_ahead_fails_when_it_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    with ThreadPoolExecutor(1) as pool:
        sender = SenderHarness(rate=1e7, block=16)
        sender.machine.compute_in(pool.submit)
        sender.submit(10_000)
        sender.run_until(0.02)
        source = sender.machine._window.objects[0].content.source

        def gone(offset: int, n: int) -> bytes:
            raise OSError("the file is gone")

        monkeypatch.setattr(source, "read", gone)
        sender.nack(items((0, 0, 16), (0, 1, 16)), now=0.02)
        sender.run_until(0.5)
    assert [event.reason for event in sender.host.events if hasattr(event, "reason")] == ["source: the file is gone"]
