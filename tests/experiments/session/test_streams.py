"""Streams of sessions as files: messages, lines and bytes, back-pressure at both ends, gaps, and what ends them."""

import asyncio
import random
from typing import Any

import pytest

from experiments.contract.worlds import new_group
from experiments.session.boundaries import LENGTH, LONGEST, Boundary
from experiments.session.incoming_stream import IncomingStream
from experiments.session.waiting import Changes
from mcastlab import Session, StreamOpened, TransferError, UsageError
from tests.support.sessions import first, opened, opened_on, run


async def incoming(where: Session) -> IncomingStream:
    """Return the next stream."""
    return (await first(where, StreamOpened)).stream


def transferred(pieces: list[bytes], boundary: Boundary, **options: Any) -> list[bytes]:
    """Write pieces to a stream; return what is read from it."""

    async def main() -> list[bytes]:
        group = new_group()
        async with (
            opened(group, receive=False, boundary=boundary) as one,
            opened(group, send=False, boundary=boundary) as other,
        ):
            async with await one.open_stream(**options) as out:
                for piece in pieces:
                    await out.write(piece)
            stream = await incoming(other)
            came = [piece async for piece in stream]
            assert stream.gaps == 0
            await one.sent(out)
            return came

    return run(main())


@pytest.mark.parametrize("flush", ["none", "passive", "active"])
def test_messages_arrive_as_they_were_written(flush: str) -> None:
    chance = random.Random(1)
    messages = [b"", *(chance.randbytes(chance.randrange(3000)) for _ in range(300)), b""]
    assert transferred(messages, "message", flush=flush) == messages


def test_lines_arrive_one_by_one_whatever_was_written_together() -> None:
    assert transferred([b"one\ntwo\nth", b"ree\n", b"no end"], "line") == [b"one\n", b"two\n", b"three\n", b"no end"]


def test_bytes_have_no_boundaries() -> None:
    content = random.Random(2).randbytes(200_000)
    assert b"".join(transferred([content[:70_000], content[70_000:]], "byte")) == content


def test_what_is_written_in_one_turn_of_the_loop_is_sent_together() -> None:
    async def main() -> int:
        group = new_group()
        async with opened(group, receive=False) as one, opened(group, send=False) as other:
            out = await one.open_stream()
            for number in range(100):
                await out.write(b"%d" % number)
            stream = await incoming(other)
            # It arrives without a flush by the program.
            for number in range(100):
                assert await stream.receive() == b"%d" % number
            return one.counts()["data_sent"]

    assert run(main()) == 1


def test_a_stream_reads_like_a_file() -> None:
    async def main() -> None:
        group = new_group()
        async with opened(group, receive=False, boundary="byte") as one, opened(group, send=False, boundary="byte") as other:
            async with await one.open_stream() as out:
                await out.write(b"first line\nsecond line\nand the rest\nof it")
            stream = await incoming(other)
            assert await stream.readline() == b"first line\n"
            assert await stream.read(6) == b"second"
            assert await stream.readline() == b" line\n"
            assert await stream.read() == b"and the rest\nof it"
            assert (await stream.read(10), await stream.readline(), await stream.receive()) == (b"", b"", None)

    run(main())


def test_a_program_that_writes_much_leaves_the_event_loop_to_others() -> None:
    async def main() -> None:
        turns = 0

        async def beside() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        async with opened(new_group(), receive=False, rate="500Mbit") as one:
            other = asyncio.create_task(beside())
            async with await one.open_stream(4 << 20) as out:
                for _ in range(10_000):
                    await out.write(bytes(100))
                # All of it has room.
                assert turns >= 10
            other.cancel()

    run(main())


def test_writing_waits_for_room_and_nothing_is_lost() -> None:
    async def main() -> None:
        group = new_group()
        # 20 Mbit/s are 0.5 MB in 0.2 s, so that 2 MB can't be written at once.
        async with opened(group, receive=False, rate="20Mbit") as one, opened(group, send=False) as other:
            loop = asyncio.get_running_loop()
            begin = loop.time()
            messages = [bytes([number]) * 20_000 for number in range(100)]

            async def read() -> list[bytes]:
                return [message async for message in await incoming(other)]

            reading = asyncio.create_task(read())
            async with await one.open_stream(256_000) as out:
                for message in messages:
                    await out.write(message)
                assert loop.time() - begin > 0.4
            assert await reading == messages

    run(main())


def test_a_program_that_reads_slowly_gets_everything_the_buffer_covers() -> None:
    async def main() -> None:
        group = new_group()
        async with opened(group, receive=False, rate="200Mbit") as one, opened(group, send=False) as other:
            messages = [bytes([number % 251]) * 10_000 for number in range(400)]
            async with await one.open_stream(8 << 20) as out:
                for message in messages:
                    await out.write(message)
            stream = await incoming(other)
            # More than may wait in the session: the rest waits in the protocol.
            await one.sent()
            came = []
            async for message in stream:
                came.append(message)
                await asyncio.sleep(0)
            assert came == messages

    run(main())


def test_a_block_that_raises_ends_the_stream_at_once() -> None:
    async def main() -> None:
        group = new_group()
        async with opened(group, receive=False) as one, opened(group, send=False) as other:
            out = await one.open_stream()

            async def interrupted() -> None:
                async with out:
                    raise ZeroDivisionError

            await out.write(b"before")
            stream = await incoming(other)
            assert await stream.receive() == b"before"
            with pytest.raises(ZeroDivisionError):
                await interrupted()
            with pytest.raises(UsageError, match="the stream is closed"):
                await out.write(b"after")
            with pytest.raises(TransferError, match="has no end"):
                await stream.receive()

    run(main())


def test_waiting_for_an_open_stream_is_refused() -> None:
    async def main() -> None:
        async with opened(new_group(), receive=False) as one:
            out = await one.open_stream()
            with pytest.raises(UsageError, match="the stream is open"):
                await one.sent(out)
            with pytest.raises(UsageError, match="flush: value 'often' is not allowed"):
                await one.open_stream(flush="often")  # type: ignore[arg-type]
            with pytest.raises(UsageError, match=f"at most {LONGEST}"):
                await out.write(bytes(LONGEST + 1))

    run(main())


def test_a_protocol_without_streams_says_so() -> None:
    async def main() -> None:
        async with opened_on(new_group(), protocol="srm", receive=False) as one:
            with pytest.raises(UsageError, match="the protocol of this session has no streams"):
                await one.open_stream()

    run(main())


# -- a received stream alone ---------------------------------------------------------------------------------------------


def stream_of(boundary: Boundary, resumed: list[tuple[int, int]] | None = None) -> IncomingStream:
    """Return a stream that nothing sends."""
    return IncomingStream(7, 3, boundary, lambda *key: (resumed if resumed is not None else []).append(key))


def framed(message: bytes) -> bytes:
    """Return a message with its length."""
    return len(message).to_bytes(LENGTH, "big") + message


def read_all(stream: IncomingStream) -> list[bytes]:
    """Return what is left of a stream that has ended."""

    async def main() -> list[bytes]:
        return [piece async for piece in stream]

    return run(main())


@pytest.mark.parametrize("boundary", ["line", "message"])
def test_a_message_before_a_gap_is_dropped_unless_it_is_whole(boundary: Boundary) -> None:
    wrap = framed if boundary == "message" else lambda text: text + b"\n"
    stream = stream_of(boundary)
    stream.write(wrap(b"whole") + wrap(b"cut off")[:-3], [0])
    stream.skip()
    stream.write(wrap(b"after"), [0])
    stream.commit(b"info")
    unwrapped = [piece.removesuffix(b"\n") for piece in read_all(stream)]
    assert (unwrapped, stream.gaps, stream.info) == ([b"whole", b"after"], 1, b"info")


def test_a_forged_length_costs_a_gap_and_no_memory() -> None:
    stream = stream_of("message")
    stream.write(framed(b"good"), [0])
    stream.write((1 << 31).to_bytes(LENGTH, "big"), [0])
    for _ in range(50):
        stream.write(bytes(LONGEST // 10), [])
    assert stream.gaps == 1
    stream.write(b"rest of something" + framed(b"next"), [17])
    stream.commit(b"")
    assert read_all(stream) == [b"good", b"next"]


def test_a_program_that_does_not_read_fills_the_stream_and_resumes_it() -> None:
    resumed: list[tuple[int, int]] = []
    stream = stream_of("byte", resumed)
    assert not stream.write(bytes(1 << 20), [])
    assert stream.write(bytes(1), [])

    async def main() -> None:
        await stream.receive()

    run(main())
    assert resumed == [(7, 3)]


def test_an_error_comes_after_what_has_arrived() -> None:
    async def main() -> None:
        stream = stream_of("byte")
        stream.write(b"last", [])
        stream.abort()
        assert await stream.receive() == b"last"
        with pytest.raises(TransferError, match="stream 3 of sender 7 has no end"):
            await stream.receive()

    run(main())


def test_a_cancelled_task_does_not_cancel_what_others_wait_for() -> None:
    async def main() -> None:
        changes = Changes()
        seen: list[int] = []
        waiting = [asyncio.create_task(changes.until(lambda: seen)) for _ in range(3)]
        await asyncio.sleep(0)
        waiting[0].cancel()
        await asyncio.sleep(0)
        seen.append(1)
        changes.changed()
        await asyncio.gather(*waiting[1:])
        assert waiting[0].cancelled()

    run(main())
