"""Messages that are written on connections, cut into segments, and shared between connections."""

from protocols.framing import LengthPrefixed
from sim.tcp.streams import Frames, ObjectWriter
from tests.support.talkers import Numbered

FRAME = 104
"""Bytes on the stream of a message of 100."""


def test_a_message_written_on_many_connections_is_one_frame() -> None:
    frames = Frames(LengthPrefixed())
    writers, message = [ObjectWriter(frames) for _ in range(3)], Numbered(0, 100)
    for writer in writers:
        writer.write(message, 100)
    (first,), *others = [writer.cut(1 + FRAME) for writer in writers]
    assert first == (message, FRAME)
    assert all(frame is first for (frame,) in others)


def test_a_frame_is_that_of_the_message_and_the_size() -> None:
    frames, one, other = Frames(LengthPrefixed()), Numbered(0, 100), Numbered(1, 100)
    assert frames.frame(one, 100) == (one, 104)
    assert frames.frame(other, 100) == (other, 104)
    assert frames.frame(other, 50) == (other, 54)
    assert frames.frame(one, 100) == (one, 104)


def test_a_segment_carries_the_messages_that_end_in_it() -> None:
    writer = ObjectWriter(Frames(LengthPrefixed()))
    messages = [Numbered(number, 100) for number in range(4)]
    for message in messages[:3]:
        writer.write(message, 100)
    assert writer.behind == 1 + 3 * FRAME
    assert writer.cut(FRAME) == ()
    assert writer.cut(1 + FRAME) == ((messages[0], FRAME),)
    assert writer.cut(3 * FRAME) == ((messages[1], FRAME),)
    assert writer.cut(1 + 3 * FRAME) == ((messages[2], FRAME),)
    writer.write(messages[3], 100)
    assert writer.cut(1 + 4 * FRAME) == ((messages[3], FRAME),)


def test_what_is_dropped_is_in_no_segment() -> None:
    frames = Frames(LengthPrefixed())
    writer, other = ObjectWriter(frames), ObjectWriter(frames)
    for _ in range(2):
        writer.write(Numbered(0, 100), 100)
    writer.cut(50)
    writer.drop(50)
    assert writer.behind == 50
    assert writer.cut(50) == other.cut(1) == ()
