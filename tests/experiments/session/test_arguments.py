"""What a program gives to a session is checked at the call; the session goes on after what was refused."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

import mcastlab
from mcastlab.messaging import connect
from protocols.errors import UsageError

Call = Callable[[Any], object]
OF_A_SESSION: dict[str, tuple[Call, str]] = {
    "text": (lambda s: s.send_bytes("text"), "data: value 'text' is not allowed; bytes"),
    "a number": (lambda s: s.send_bytes(3), "data: value 3 is not allowed; bytes"),
    "information that is text": (lambda s: s.send_bytes(b"x", "name"), "info: value 'name' is not allowed; bytes"),
    "no file": (lambda s: s.send_file(None), "path: value None is not allowed; text"),
    "nothing sent": (lambda s: s.sent("x"), "what: value 'x' is not allowed; an object or a stream"),
    "nothing cancelled": (lambda s: s.cancel(None), "what: value None is not allowed; an object or a stream"),
    "a buffer with a unit": (lambda s: s.open_stream("1MB"), "buffer: value '1MB' is not allowed; a whole number"),
    "a command that is text": (lambda s: s.send_command("x"), "content: value 'x' is not allowed; bytes"),
    "copies that are text": (lambda s: s.send_command(b"x", copies="x"), "copies: value 'x' is not allowed; a whole number"),
}
OF_A_CONNECTION: dict[str, tuple[Call, str]] = {
    "no subject": (lambda c: c.publish(None, b"x"), "subject: value None is not allowed; text"),
    "text": (lambda c: c.publish("/a", "text"), "content: value 'text' is not allowed; bytes"),
    "bytes for a list of them": (lambda c: c.publish_many("/a", b"text"), "contents: value b'text' is not allowed; a list"),
    "no pattern": (lambda c: c.subscribe(None), "pattern: value None is not allowed; text"),
    "no function": (lambda c: c.subscribe("/a", 3), "callback: value 3 is not allowed; a function"),
}
OF_A_BUS: dict[str, tuple[Call, str]] = {
    "no topic": (lambda b: b.publish(None, "x"), "topic: value None is not allowed; text"),
    "a lifetime that is text": (lambda b: b.publish("t", "x", ttl="5"), "ttl: '5' is not allowed; seconds above 0"),
    "properties that are none": (lambda b: b.publish("t", "x", properties=3), "properties: value 3 is not allowed; a mapping"),
    "a property without a name": (lambda b: b.publish("t", "x", properties={3: 1}), "properties: value {3: 1} is not"),
    "no selector": (lambda b: b.subscribe("t", selector=3), "selector: value 3 is not allowed; text"),
    "no function": (lambda b: b.subscribe("t", 3), "callback: value 3 is not allowed; a function"),
}


async def refused(calls: dict[str, tuple[Call, str]], of: Any) -> None:
    """Make the calls; each has to raise UsageError with the words beside it."""
    for call, words in calls.values():
        with pytest.raises(UsageError) as caught:
            await made(call, of)
        assert str(caught.value).startswith(words)


async def made(call: Call, of: Any) -> None:
    """Make a call, and wait for what it returns if that can be awaited."""
    done = call(of)
    if isinstance(done, Awaitable):
        await done


def test_a_session_goes_on_after_arguments_that_are_refused() -> None:
    async def run() -> None:
        async with mcastlab.session("239.7.7.91:6391", "lo", grtt="5ms", robust=2) as session:
            await refused(OF_A_SESSION, session)
            buffer: Any = bytearray(b"buffers are taken")
            (delivery,) = await session.sent(await session.send_bytes(buffer))
            assert delivery.object_id == 0

    asyncio.run(run())


def test_a_connection_goes_on_after_arguments_that_are_refused() -> None:
    async def run() -> None:
        async with mcastlab.distributor("239.7.7.92:6392", "lo", management=None) as connection:
            await refused(OF_A_CONNECTION, connection)
            await connection.publish("/a", b"x")

    asyncio.run(run())


def test_a_bus_goes_on_after_arguments_that_are_refused() -> None:
    async def run() -> None:
        async with connect("239.7.7.93:6393", "lo", grtt="5ms") as bus:
            await refused(OF_A_BUS, bus)
            await bus.publish("t", "x")

    asyncio.run(run())
