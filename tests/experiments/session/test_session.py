"""Sessions in one event loop: objects and files both ways, confirmation, limits, failures and cancellation."""

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

import mcastlab
from experiments.contract.case import SETTINGS
from experiments.contract.worlds import new_group
from mcastlab import ContentReceived, Event, FlushCompleted, ObjectAborted, ObjectRefused, Session, TransferError, UsageError
from protocols.registry import file_protocols
from tests.support.sessions import contents, first, opened, opened_on, run, sockets


def test_two_nodes_of_one_loop_send_to_each_other() -> None:
    large = os.urandom(500_000)

    async def main() -> tuple[list[bytes], list[bytes]]:
        group = new_group()
        async with opened(group) as one, opened(group) as other:
            await one.send_bytes(b"hello", info=b"greeting")
            await other.send_bytes(large)
            return await contents(other, 1), await contents(one, 1)

    assert run(main()) == ([b"hello"], [large])


def test_a_node_does_not_receive_what_it_sends() -> None:
    async def main() -> list[Event]:
        group = new_group()
        async with opened(group) as one, opened(group) as other:
            await one.send_bytes(b"x")
            await one.sent()
            await contents(other, 1)
            events = []
            async for event in one:
                events.append(event)
                if isinstance(event, FlushCompleted):
                    return events
        raise AssertionError

    assert not [event for event in run(main()) if isinstance(event, ContentReceived)]


@pytest.mark.parametrize("name", file_protocols())
def test_every_protocol_of_files_carries_objects(name: str) -> None:
    content = os.urandom(100_000)

    async def main() -> list[bytes]:
        group = new_group()
        settings: dict[str, Any] = {"protocol": name, **SETTINGS.get(name, {}), "rate": "50Mbit"}
        async with opened_on(group, receive=False, **settings) as one, opened_on(group, send=False, **settings) as other:
            await one.send_bytes(content)
            await one.send_bytes(b"second")
            return await contents(other, 2)

    assert sorted(run(main())) == sorted([content, b"second"])


def test_received_files_have_their_names_and_replace_none(tmp_path: Path) -> None:
    (tmp_path / "a.bin").write_bytes(b"content")
    got = tmp_path / "got"

    async def main() -> list[ContentReceived]:
        group = new_group()
        async with opened(group, receive=False) as one, opened(group, send=False, folder=got) as other:
            await one.send_file(tmp_path / "a.bin")
            await one.send_file(tmp_path / "a.bin", name="b.bin")
            await one.send_file(tmp_path / "a.bin")
            await one.send_bytes(b"no file", info=b"c.bin")
            return [await first(other, ContentReceived) for _ in range(4)]

    found = run(main())
    assert [event.path and event.path.name for event in found] == ["a.bin", "b.bin", "a.bin.1", None]
    assert [event.name for event in found] == ["a.bin", "b.bin", "a.bin", "c.bin"]
    assert [event.read() for event in found] == [b"content"] * 3 + [b"no file"]
    assert sorted(path.name for path in got.iterdir()) == ["a.bin", "a.bin.1", "b.bin"]


def test_the_end_of_the_block_waits_until_all_is_sent() -> None:
    content = os.urandom(300_000)

    async def main() -> list[bytes]:
        group = new_group()
        async with opened(group, send=False) as other:
            async with opened(group, receive=False, rate="20Mbit") as one:
                await one.send_bytes(content)
            return await contents(other, 1)

    assert run(main()) == [content]


def test_sent_tells_of_each_object_and_of_a_file_that_changed(tmp_path: Path) -> None:
    good, bad = tmp_path / "good", tmp_path / "bad"
    good.write_bytes(b"good")
    bad.write_bytes(bytes(2_000_000))

    async def main() -> Session:
        async with opened(new_group(), rate="5Mbit") as one:
            sent = [await one.send_file(bad), await one.send_file(good)]
            bad.write_bytes(bytes(10))
            with pytest.raises(TransferError, match=r"bad: the file was changed while it was sent"):
                await one.sent(sent[0])
            (delivery,) = await one.sent(sent[1])
            assert (delivery.object_id, delivery.confirmed, delivery.missing) == (1, (), ())
            assert [item.state for item in sent] == ["failed", "done"]
            # Nobody has to be told twice.
            assert await one.sent() == []
        return one

    run(main())


def test_a_cancelled_object_is_not_sent_and_is_no_failure_of_the_session() -> None:
    async def main() -> None:
        group = new_group()
        async with opened(group, receive=False, rate="4Mbit") as one, opened(group, send=False) as other:
            long, short = await one.send_bytes(bytes(2_000_000)), await one.send_bytes(b"short")
            assert one.cancel(long)
            assert not one.cancel(long)
            with pytest.raises(TransferError, match="cancelled"):
                await one.sent(long)
            await one.sent(short)
            assert await contents(other, 1) == [b"short"]

    run(main())


def test_a_protocol_that_cancels_nothing_says_so() -> None:
    async def main() -> None:
        async with opened_on(new_group(), protocol="srm", receive=False, **SETTINGS.get("srm", {})) as one:
            with pytest.raises(UsageError, match="the sender of this protocol cancels nothing"):
                one.cancel(await one.send_bytes(b"x"))

    run(main())


def test_a_failure_that_nobody_asked_for_is_raised_at_the_end(tmp_path: Path) -> None:
    bad = tmp_path / "bad"
    bad.write_bytes(bytes(2_000_000))

    async def main() -> None:
        async with opened(new_group(), rate="5Mbit") as one:
            await one.send_file(bad)
            bad.unlink()

    with pytest.raises(TransferError, match="bad: "):
        run(main())


def test_sending_waits_while_many_objects_wait() -> None:
    count = 0

    async def main() -> None:
        nonlocal count
        async with opened(new_group(), rate="1Mbit", receive=False) as one, asyncio.timeout(0.2):
            while True:
                await one.send_bytes(bytes(5_000))
                count += 1

    with pytest.raises(TimeoutError):
        run(main())
    # 32 may wait; 0.2 s at 1 Mbit/s are five objects.
    assert 30 <= count <= 60


def test_objects_beyond_the_memory_are_refused_until_some_are_read() -> None:
    async def main() -> None:
        group = new_group()
        async with opened(group, receive=False) as one, opened(group, send=False, memory="100kB") as other:
            for _ in range(2):
                await one.send_bytes(bytes(60_000))
                await one.sent()
            # The first was received, and the second has no room beside it.
            kinds = []
            while not isinstance(event := await anext(other), ObjectRefused):
                kinds.append(type(event))
            assert ContentReceived in kinds
            assert (event.size, other.received.lost) == (60_000, 1)
            assert "the memory for objects is 100kB" in event.reason
            await one.send_bytes(bytes(60_000))
            assert await contents(other, 1) == [bytes(60_000)]

    run(main())


def test_a_session_that_ends_ends_the_loops_over_its_events() -> None:
    async def main() -> list[Event]:
        async def listen() -> list[Event]:
            return [event async for event in one]

        async with opened(new_group()) as one:
            task = asyncio.create_task(listen())
            await asyncio.sleep(0)
        return await task

    assert run(main()) == []


def test_files_are_open_no_longer_than_they_may_be_read(tmp_path: Path) -> None:
    for number in range(6):
        (tmp_path / f"{number}").write_bytes(bytes(10_000))

    async def main() -> None:
        before = sockets()
        kept = {"cache_min": 1, "cache_max": 2, "flow": 0.1}
        async with opened(new_group(), receive=False, **kept) as one:
            for number in range(6):
                await one.send_file(tmp_path / f"{number}")
            await one.sent()
            await asyncio.sleep(0.05)
            await one.sent()
            still_open = [item for item in sockets() if str(tmp_path) in item]
            # Those in the window may still be read for repairs.
            assert 0 < len(still_open) <= 2
        assert sockets() == before

    run(main())


def test_a_session_is_entered_once() -> None:
    async def main() -> None:
        async with opened(new_group()) as one:
            with pytest.raises(UsageError, match="a session is entered once"):
                await one.__aenter__()

    run(main())


class Wrong(Exception):
    """An error of the test."""


async def end_in(way: str, group: str) -> None:
    """Open a session with things under way, and end it in some way."""
    async with opened(group, rate="1Mbit") as one:
        await one.send_bytes(bytes(1_000_000))
        stream = await one.open_stream(1 << 16)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(stream.write(bytes(1 << 20)))
            listening = tasks.create_task(first(one, ObjectAborted))
            await asyncio.sleep(0.05)
            if way == "exception":
                raise Wrong
            if way == "cancellation":
                asyncio.current_task().cancel()  # type: ignore[union-attr]
            if way == "failure":
                one._loop.call_soon(fail)
            await listening


def fail() -> None:
    """Raise as a machine with an error would."""
    raise Wrong


@pytest.mark.parametrize("way", ["exception", "cancellation", "failure"])
def test_whatever_ends_a_session_leaves_no_socket_and_no_task(way: str) -> None:
    async def main() -> None:
        before, group = sockets(), new_group()
        async with opened(group, receive=False) as beside:
            expected: type[BaseException] = asyncio.CancelledError if way == "cancellation" else ExceptionGroup
            with pytest.raises(expected) as caught:
                await asyncio.create_task(end_in(way, group))
            if way == "failure":
                assert isinstance(caught.value, ExceptionGroup)
                assert caught.value.subgroup(TransferError) is not None
            # Another session of the program goes on.
            async with opened(group, send=False) as other:
                await beside.send_bytes(b"still here")
                assert await contents(other, 1) == [b"still here"]
        await asyncio.sleep(0)
        assert sockets() == before

    run(main())


def test_a_failed_session_raises_at_every_call_and_at_the_end() -> None:
    async def main() -> None:
        async with opened(new_group()) as one:
            one._loop.call_soon(fail)
            with pytest.raises(TransferError, match=r"the session failed: Wrong\(\)"):
                await anext(one)
            with pytest.raises(TransferError, match="failed"):
                await one.send_bytes(b"x")
            with pytest.raises(TransferError, match="failed"):
                await one.closed()

    with pytest.raises(TransferError, match="the session failed") as caught:
        run(main())
    assert isinstance(caught.value.__cause__, Wrong)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"group": "0.0.0.0:6003"}, "group: value '0.0.0.0:6003' is not allowed; the address of a group or of a host"),
        ({"group": "239.1.2.3"}, "group: '239.1.2.3' is not an address and a port"),
        ({"iface": "nothing0"}, "iface: 'nothing0' is no device"),
        ({"node": 0}, "node: value 0 is not allowed; a whole number from 1 to 4294967294"),
        ({"send": False, "receive": False}, "send, receive: False is not allowed for both"),
        ({"memory": "much"}, "memory: value 'much' is not allowed; a size, like 64MB"),
        ({"boundary": "word"}, "boundary: value 'word' is not allowed; one of line, message, byte"),
        ({"rate": "fast"}, "protocol.rate: value 'fast' is not allowed"),
        ({"protocol": "smoke"}, "protocol.name: value 'smoke' is not allowed"),
    ],
)
def test_a_wrong_argument_is_named(options: dict[str, Any], message: str) -> None:
    async def main() -> None:
        arguments = {"group": new_group(), "iface": "127.0.0.1", **options}
        async with mcastlab.session(**arguments):
            pass

    before = sockets()
    with pytest.raises(UsageError) as caught:
        run(main())
    assert message in str(caught.value)
    assert sockets() == before


def test_a_session_that_only_receives_sends_nothing() -> None:
    async def main() -> None:
        async with opened(new_group(), send=False) as one:
            with pytest.raises(UsageError, match="this session only receives"):
                await one.send_bytes(b"x")

    run(main())
