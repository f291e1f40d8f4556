"""Streams of NORM, from application to application."""

from typing import Any

import pytest

from experiments.contract.content import Bytes
from experiments.contract.losses import Crossing, numbered, randomly
from protocols.errors import UsageError
from protocols.events import FlushCompleted, ObjectOpened, ObjectReceived
from protocols.machine import Content
from protocols.norm.messages import FLAG_STREAM, Data, Flush, Squelch
from protocols.norm.wire.codec import NormCodec
from protocols.stream import FLUSHES, StreamBroken, StreamReceiver, StreamSender, StreamSettings, StreamVacant
from tests.protocols.norm.scenes import GROUP
from tests.protocols.norm.stream_scenes import StreamScene, dropping, messages
from tests.support.streams import Collected

CODES: list[dict[str, Any]] = [
    {},
    {"parity": 0},
    {"auto_parity": 2},
    {"fec": 129},
    {"fec": 2},
    {"fec": 2, "fec_m": 16},
    {"fec": 2, "fec_m": 16, "block": 300, "parity": 20},
    {"fec": 0, "parity": 0},
]


def offsets(content: list[bytes]) -> set[int]:
    """Return where messages begin."""
    return {sum(map(len, content[:number])) for number in range(len(content))}


@pytest.mark.parametrize("flush", FLUSHES)
@pytest.mark.parametrize("code", CODES, ids=str)
def test_a_stream_arrives_as_it_was_written_in_spite_of_losses(code: dict[str, Any], flush: str) -> None:
    scene = StreamScene(receivers=2, drop=randomly(0.05), settings=StreamSettings(1 << 16, b"a name"), **code)
    content = messages(150)
    scene.send(*content, flush=flush)
    for sink in scene.sinks:
        assert (sink.data, sink.ended, sink.info, len(sink.parts)) == (b"".join(content), "commit", b"a name", 1)
        assert set(sink.starts) <= offsets(content)
        # Of the messages that begin in one segment the first is marked; a flushed message begins a segment.
        assert len(sink.starts) == len(content) if flush != "none" else len(sink.starts) >= sum(map(len, content)) // 400


def test_machines_of_norm_are_those_that_the_contract_names() -> None:
    scene = StreamScene()
    assert isinstance(scene.sender, StreamSender)
    assert isinstance(scene.receivers[0], StreamReceiver)


def test_the_end_of_a_stream_is_reported_at_both_ends() -> None:
    scene = StreamScene()
    scene.send(b"x" * 250)
    events = scene.bench["r1"].events
    assert ObjectOpened(1, 0, scene.offers[0].size) in events
    assert ObjectReceived(1, 0, 250, b"") in events
    assert FlushCompleted(0) in scene.host.events


def test_what_does_not_fill_a_segment_is_sent_when_it_is_flushed() -> None:
    scene = StreamScene()
    scene.write(b"x" * 130)
    scene.writer.flush("none")
    scene.run(1.0)
    assert scene.sinks[0].data == b"x" * 100
    scene.writer.flush("passive")
    scene.run(1.0)
    assert scene.sinks[0].data == b"x" * 130
    assert scene.host.kinds()["flush"] == 0
    scene.writer.flush("active")
    scene.run(1.0)
    assert scene.host.kinds()["flush"] == scene.config.robust


def test_a_lost_segment_behind_which_nothing_follows_is_repaired_after_an_active_flush() -> None:
    for flush, arrives in (("passive", False), ("active", True)):
        scene = StreamScene(drop=dropping((0, 1)))
        scene.write(b"a" * 40, b"b" * 50, flush=flush)
        # Shorter than the time after which a receiver asks by itself.
        scene.run(0.9)
        assert (scene.sinks[0].data == b"a" * 40 + b"b" * 50) == arrives


def test_room_is_reported_after_a_write_that_was_not_taken() -> None:
    scene = StreamScene(settings=StreamSettings(4000), rate=1e5)
    data = b"".join(messages(100))
    key = scene.writer.object_id
    taken = scene.host.call(scene.sender.write_stream, key, data, [0])
    assert 0 < taken < len(data)
    assert scene.host.call(scene.sender.write_stream, key, data[taken:], []) == 0
    assert StreamVacant(key) not in scene.host.events
    scene.run(2.0)
    assert scene.host.events.count(StreamVacant(key)) == 1
    assert scene.host.call(scene.sender.write_stream, key, data[taken:], []) > 0


def test_a_sender_keeps_no_more_blocks_than_its_buffer_has() -> None:
    scene = StreamScene(settings=StreamSettings(8000), rate=1e6)
    scene.write(*messages(500))
    most = 0
    for _ in range(400):
        scene.run(0.02)
        most = max(most, scene.sender.held()["stream blocks"][0])
        kept, allowed = scene.sender.held()["stream blocks"]
        assert kept <= allowed == 10
    assert most == 10


def test_with_push_the_oldest_bytes_are_dropped_and_the_receiver_goes_on_with_a_message() -> None:
    content = messages(200, longest=100)
    sinks = [Collected(by_message=True), Collected()]
    settings = StreamSettings(4000, push=True)
    scene = StreamScene(receivers=2, settings=settings, sinks=sinks, drop=numbered("data", {3}), rate=1e5, parity=0)
    scene.write(*content[:20], flush="passive")
    scene.run(0.03)
    scene.send(*content[20:], flush="passive")
    whole, whole_offsets = b"".join(content), offsets(content)
    for sink in sinks:
        assert sink.ended == "commit"
        assert len(sink.parts) > 1
        assert whole.endswith(sink.parts[-1])
        assert len(whole) - len(sink.parts[-1]) in whole_offsets
        assert all(bytes(part) in whole for part in sink.parts)
    assert any(isinstance(event, StreamBroken) for event in scene.bench["r1"].events)


def test_what_can_not_be_repaired_any_more_is_skipped_up_to_the_next_message() -> None:
    content = [b"%04d" % number + b"x" * 146 for number in range(400)]
    scene = StreamScene(
        receivers=2,
        settings=StreamSettings(8000),
        sinks=[Collected(by_message=True), Collected(by_message=True)],
        drop=dropping((3, 2), (3, 3), receiver="r1", again=True),
        parity=0,
        flow=2.0,
    )
    scene.send(*content)
    broken, whole = scene.sinks
    assert whole.data == b"".join(content)
    # Symbols 26 and 27 have the bytes 2600 to 2799: messages 17 and 18, and message 19 begins behind them.
    assert [bytes(part) for part in broken.parts] == [b"".join(content)[:2600], b"".join(content[19:])]
    assert scene.host.kinds()["squelch"] >= 1
    assert [event for event in scene.bench["r1"].events if isinstance(event, StreamBroken)] == [StreamBroken(1, 0)]


def test_a_slow_application_gets_everything_as_long_as_the_buffer_lasts() -> None:
    content = messages(60)
    scene = StreamScene(sinks=[Collected(capacity=1000)], settings=StreamSettings(1 << 16))
    scene.send(*content)
    sink, whole = scene.sinks[0], b"".join(content)
    assert 1000 <= sink.size < len(whole)
    for _ in range(10):
        sink.capacity = sink.size + 1500
        scene.bench["r1"].call(scene.receivers[0].resume_stream, 1, 0)
    assert (sink.data, sink.ended) == (whole, "commit")


def test_a_slow_application_loses_what_its_buffer_does_not_hold_and_no_more() -> None:
    content = messages(400, longest=100)
    scene = StreamScene(sinks=[Collected(by_message=True, capacity=500)], settings=StreamSettings(4000), buffer=8000)
    scene.send(*content)
    sink, whole = scene.sinks[0], b"".join(content)
    sink.capacity = None
    for name, (kept, allowed) in scene.receivers[0].held().items():
        assert kept <= allowed, name
    scene.bench["r1"].call(scene.receivers[0].resume_stream, 1, 0)
    assert (sink.ended, len(sink.parts)) == ("commit", 2)
    assert whole.startswith(sink.parts[0])
    assert whole.endswith(sink.parts[1])
    assert len(whole) - len(sink.parts[1]) in offsets(content)


@pytest.mark.parametrize("join", ["beginning", "middle"])
def test_who_joins_late_begins_with_a_message_of_a_block_the_sender_still_has(join: str) -> None:
    content = messages(500, longest=100)
    gate = {"open": False}

    def closed(crossing: Crossing) -> bool:
        return crossing.receiver == "r1" and not gate["open"]

    scene = StreamScene(sinks=[Collected(by_message=True)], drop=closed, settings=StreamSettings(8000), join=join)
    scene.write(*content[:300])
    scene.run(1.0)
    gate["open"] = True
    scene.send(*content[300:])
    sink, whole = scene.sinks[0], b"".join(content)
    assert (sink.ended, len(sink.parts)) == ("commit", 1)
    assert whole.endswith(sink.data)
    assert len(whole) - sink.size in offsets(content)
    behind = len(b"".join(content[:300]))
    # With "middle" all of the sender's buffer is requested.
    assert sink.size > len(whole) - behind + (4000 if join == "middle" else -1000)


def test_a_receiver_that_lost_the_first_segments_of_a_new_sender_requests_them() -> None:
    scene = StreamScene(drop=numbered("data", {1, 2, 3}))
    scene.send(*messages(30))
    assert scene.sinks[0].data == b"".join(messages(30))


def test_a_stream_that_is_closed_at_once_is_squelched_and_aborted() -> None:
    scene = StreamScene()
    scene.write(*messages(200))
    scene.writer.flush("none")
    scene.run(0.005)
    scene.writer.close(graceful=False)
    scene.run()
    assert scene.sinks[0].ended == "abort"
    with pytest.raises(UsageError, match="object 0 is not an open stream"):
        scene.host.call(scene.sender.write_stream, 0, b"more", [0])


def test_a_stream_that_is_not_wanted_is_not_requested() -> None:
    scene = StreamScene(drop=randomly(0.1))
    scene.receivers[0].session.extras.stream_acceptor = lambda offer: None
    scene.send(*messages(100))
    assert scene.bench["r1"].kinds()["nack"] == 0
    assert scene.sinks[0].data == b""


def test_without_an_acceptor_streams_are_ignored_and_objects_received() -> None:
    scene = StreamScene(drop=randomly(0.05))
    scene.receivers[0].session.extras.stream_acceptor = None
    scene.write(*messages(50), flush="active")
    scene.host.call(scene.sender.submit, Content(_Bytes(b"y" * 3000), b"file"))
    scene.send(*messages(50))
    assert [event for event in scene.bench["r1"].events if isinstance(event, ObjectReceived)] == [
        ObjectReceived(1, 1, 3000, b"file")
    ]


class _Bytes:
    def __init__(self, data: bytes) -> None:
        self._data, self.size = data, len(data)

    def read(self, offset: int, n: int) -> bytes:
        return self._data[offset : offset + n]


def test_objects_and_streams_are_sent_beside_each_other() -> None:
    scene = StreamScene(receivers=2, drop=randomly(0.05, seed=5))
    second = scene.open(StreamSettings(1 << 16, b"second"))
    both = [Collected(), Collected()]
    for receiver, first, other in zip(scene.receivers, scene.sinks, both, strict=True):
        receiver.session.extras.stream_acceptor = lambda offer, first=first, other=other: other if offer.object_id else first
    content = messages(100)
    for number, message in enumerate(content):
        (second if number % 2 else scene.writer).write(message)
        (second if number % 2 else scene.writer).flush("passive")
        if number % 20 == 0:
            scene.host.call(scene.sender.submit, Content(_Bytes(b"%d" % number * 1000), b"file"))
        scene.run(0.01)
    second.close()
    scene.send()
    for name, first, other in zip(("r1", "r2"), scene.sinks, both, strict=True):
        assert first.data == b"".join(content[::2])
        assert (other.data, other.info) == (b"".join(content[1::2]), b"second")
        received = [event.object_id for event in scene.bench[name].events if isinstance(event, ObjectReceived)]
        assert sorted(received) == [0, 1, 2, 3, 4, 5, 6]


def test_a_stream_whose_blocks_are_larger_than_the_receivers_buffer_is_ignored() -> None:
    scene = StreamScene(buffer=700)
    scene.send(*messages(20))
    assert scene.sinks[0].data == b""
    assert scene.receivers[0].counts()["ignored"] == 1


def test_a_failing_sink_ends_its_stream() -> None:
    class Failing(Collected):
        def write(self, data: bytes, starts: Any) -> object:
            raise OSError("no space left")

    scene = StreamScene(sinks=[Failing()])
    scene.send(*messages(20))
    assert scene.sinks[0].ended == "abort"


def test_numbers_of_blocks_and_messages_begin_again_and_content_stays_right() -> None:
    # Blocks of one segment of 8 bytes, whose numbers have 16 bits, as those of messages have.
    size, step = 560_000, 16_000
    scene = StreamScene(
        drop=randomly(0.002),
        settings=StreamSettings(20_000),
        delay=0.001,
        fec=2,
        fec_m=16,
        segment=8,
        block=1,
        parity=1,
        rate=4e6,
        grtt=0.005,
        backoff=1,
    )
    whole = b"".join(number.to_bytes(4) for number in range(size // 4))
    for start in range(0, size, step):
        scene.write(whole[start : start + step])
        scene.writer.flush()
        scene.run(0.5)
    scene.writer.close()
    scene.run(1.0)
    sink = scene.sinks[0]
    assert (sink.ended, len(sink.parts), sink.data == whole) == ("commit", 1, True)
    assert scene.receivers[0].counts()["data_lost"] > 50
    sent = [packet.message for packet in scene.host.packets if isinstance(packet.message, Data)]
    assert sum(data.block == 0 and not data.repair and data.symbol == 0 for data in sent) == 2
    assert all(data.flags & FLAG_STREAM for data in sent)


def test_ids_of_streams_begin_again() -> None:
    scene = StreamScene()
    scene.sender._next_id = 0xFFFE
    for number in range(4):
        sink = Collected()
        scene.receivers[0].session.extras.stream_acceptor = lambda offer, sink=sink: sink
        scene.writer = scene.open(StreamSettings(4000))
        scene.send(b"%d" % number * 300)
        assert sink.data == b"%d" % number * 300
    # The first stream can still be repaired.
    assert [writer.object_id for writer in scene.writers] == [0, 0xFFFE, 0xFFFF, 1, 2]


def test_an_object_gets_no_id_of_a_stream_that_is_open() -> None:
    scene = StreamScene()
    scene.sender._next_id = 0xFFFF
    submitted = [scene.host.call(scene.sender.submit, Content(Bytes(b"content"))) for _ in range(3)]
    assert submitted == [0xFFFF, 1, 2]
    assert scene.open(StreamSettings(4000)).object_id == 3
    scene.send(b"of the stream")
    assert scene.sinks[0].data == b"of the stream"


@pytest.mark.parametrize("settings", [StreamSettings(info=b"x" * 101), StreamSettings(buffer=1 << 48)])
def test_a_stream_that_norm_can_not_carry_is_refused(settings: StreamSettings) -> None:
    with pytest.raises(UsageError):
        StreamScene(settings=settings)


def test_flush_names_the_last_segment_and_squelch_the_first_block() -> None:
    scene = StreamScene(settings=StreamSettings(2000), drop=dropping((0, 0), receiver="r1", again=True), parity=0, flow=1.0)
    scene.send(*messages(100, longest=100))
    sent = [packet.message for packet in scene.host.packets]
    last = [data for data in sent if isinstance(data, Data) and not data.repair][-1]
    flushes = [(flush.block, flush.symbol) for flush in sent if isinstance(flush, Flush)]
    assert flushes[-1] == (last.block, last.symbol)
    squelches = [squelch for squelch in sent if isinstance(squelch, Squelch)]
    assert squelches
    assert all(squelch.object_id == 0 and squelch.block > 0 for squelch in squelches)


def test_segments_that_arrive_in_batches_change_the_same_as_one_by_one() -> None:
    scene = StreamScene(settings=StreamSettings(1 << 16, b"x"), block=20)
    content = messages(300)
    scene.send(*content)
    codec = NormCodec()
    datagrams = [codec.encode(packet.message) for packet in scene.host.packets]
    for lost in (set(), {7, 8, 50, 51, 52}):
        arriving = [data for number, data in enumerate(datagrams) if number not in lost]
        single, batches = StreamScene(), StreamScene()
        for data in arriving:
            single.bench["r1"].deliver(codec.decode(data), "sender", GROUP, 0.0)
        taken = deliver_batches(batches, arriving)
        assert (taken > 20) or lost
        assert taken > 5
        assert batches.sinks[0].data == single.sinks[0].data
        assert batches.sinks[0].starts == single.sinks[0].starts
        assert batches.receivers[0].counts() == single.receivers[0].counts()
        (left,), (right,) = batches.receivers[0].senders(), single.receivers[0].senders()
        assert left.position == right.position


def deliver_batches(scene: StreamScene, datagrams: list[bytes]) -> int:
    """Deliver datagrams in batches of eight, as far as the codec makes runs of them; return how many runs it made."""
    codec, host, receiver, runs = NormCodec(), scene.bench["r1"], scene.receivers[0], 0
    while datagrams:
        size = len(datagrams[0])
        count = next((place + 1 for place, data in enumerate(datagrams[:8]) if len(data) < size), len(datagrams[:8]))
        count = next((place for place, data in enumerate(datagrams[:count]) if len(data) > size), count)
        run = codec.decode_run(b"".join(datagrams[:count]), 0, size)
        if run is None:
            host.deliver(codec.decode(datagrams.pop(0)), "sender", GROUP, 0.0)
            continue
        runs += 1
        host.call(receiver.receive_run, run, "sender", GROUP)
        del datagrams[: run.packets]
    return runs


def test_a_squelch_for_one_of_two_open_streams_does_not_end_the_other() -> None:
    def drop(crossing: Crossing) -> bool:
        message = crossing.message
        return isinstance(message, Data) and (message.object_id, message.block, message.symbol) == (1, 0, 0)

    scene, sinks = (
        StreamScene(settings=StreamSettings(2000, push=True), drop=drop, parity=0, flow=1.0),
        [Collected(), Collected()],
    )
    scene.receivers[0].accept_streams(lambda offer: sinks[offer.object_id])
    writers = scene.writer, scene.open(StreamSettings(2000, push=True))
    for message in messages(100, longest=100):
        for writer in writers:
            writer.write(message)
            writer.flush("active")
        scene.run(0.01)
    assert [packet for packet in scene.host.packets if isinstance(packet.message, Squelch)]
    scene.run(5)
    assert [sink.ended for sink in sinks] == [None, None]
    assert sinks[0].data == b"".join(messages(100, longest=100))


def test_a_squelch_for_an_object_names_the_first_block_that_a_stream_before_it_still_has() -> None:
    scene = StreamScene(settings=StreamSettings(2000, push=True))
    scene.write(*messages(100), flush="passive")
    key = scene.host.call(scene.sender.submit, Content(Bytes(b"content")))
    scene.run()
    assert scene.sender._streams[0].low > 0
    assert scene.host.call(scene.sender.cancel, key)
    scene.run(1)
    squelches = [packet.message for packet in scene.host.packets if isinstance(packet.message, Squelch)]
    assert [(squelch.object_id, squelch.block) for squelch in squelches] == [(0, scene.sender._streams[0].low)] * len(squelches)
    assert squelches


def test_an_active_flush_of_a_stream_to_which_nothing_was_written_names_no_segment() -> None:
    scene = StreamScene(parity=0)
    scene.writer.flush("active")
    scene.run()
    assert not scene.host.packets
    assert not scene.bench["r1"].packets
    scene.send(b"content", flush="active")
    assert scene.sinks[0].data == b"content"
