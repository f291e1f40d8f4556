"""Connections of the Distributor in one event loop: updates both ways, callbacks, bounded queues, hostile input, failures."""

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

import mcastlab
from experiments.contract.worlds import new_group
from mcastlab import (
    CallbackFailed,
    DeliveryOverflowed,
    DistributorConnection,
    PublisherGone,
    PublisherHeard,
    TransferError,
    Update,
    UsageError,
)
from tests.support.sessions import run, sockets

QUICK: dict[str, Any] = {"heartbeat": "50ms", "timeout": "50ms", "heartbeats_lost": 4, "segment": 1400}


def opened(group: str, **more: Any) -> DistributorConnection:
    return mcastlab.distributor(group, "127.0.0.1", **{**QUICK, **more})


def played(main: Callable[[DistributorConnection, DistributorConnection], Awaitable[Any]], **more: Any) -> Any:
    """Run a coroutine with two connections of one group."""

    async def inner() -> Any:
        group = new_group()
        async with opened(group, application="one", **more) as one, opened(group, application="other", **more) as other:
            return await main(one, other)

    return run(inner())


async def until(condition: Callable[[], object]) -> None:
    while not condition():
        await asyncio.sleep(0.002)


def test_updates_reach_iterators_and_callbacks_with_their_values() -> None:
    async def main(one: DistributorConnection, other: DistributorConnection) -> None:
        called: list[Update] = []
        prices = other.subscribe("/quotes/*/ABB", value="price")
        other.subscribe("/...", called.append, value=7)
        await one.publish("/quotes/NASDAQ/ABB", b"12.5")
        await one.publish("/news", b"hello")
        await one.publish("/quotes/X/ABB", b"")
        first, second = await anext(prices), await anext(prices)
        assert (first.subject, first.content, first.value) == ("/quotes/NASDAQ/ABB", b"12.5", "price")
        assert (second.subject, second.content) == ("/quotes/X/ABB", b"")
        await until(lambda: len(called) == 3)
        assert [(update.content, update.value) for update in called] == [(b"12.5", 7), (b"hello", 7), (b"", 7)]

    played(main)


def test_large_and_small_updates_of_two_publishers_arrive_whole_and_in_order() -> None:
    async def main(one: DistributorConnection, other: DistributorConnection) -> None:
        sent = [os.urandom(size) for size in (0, 1, 1362, 1363, 100_000, 50, 3_000_000, 7)]
        back = other.subscribe("/s")
        forth = one.subscribe("/s")
        for content in sent:
            await one.publish("/s", content)
        await other.publish_many("/s", sent[:4])
        found: dict[int, list[bytes]] = {}
        for incoming in (back, forth):
            # What a connection publishes reaches its own subscriptions, too.
            while sum(map(len, found.values())) < 12:
                update = await anext(incoming)
                found.setdefault(update.source.sender_id, []).append(update.content)
            assert sorted(found.values(), key=len) == [sent[:4], sent]
            found.clear()

    played(main)


def test_many_updates_come_together() -> None:
    async def main(one: DistributorConnection, other: DistributorConnection) -> None:
        contents = [b"%d" % number for number in range(20_000)]
        incoming = other.subscribe("/s")
        await one.publish_many("/s", contents)
        found: list[bytes] = []
        most = 0
        while len(found) < len(contents):
            updates = await incoming.together()
            assert updates is not None
            most = max(most, len(updates.contents))
            found += updates.contents
        assert found == contents
        assert most > 10

    played(main, holdback="10ms", holdback_threshold=0)


def test_publishers_that_come_and_go_are_told() -> None:
    async def main() -> None:
        group = new_group()
        async with opened(group) as here:
            here.subscribe("/...")
            async with opened(group, application="feed") as there:
                await there.announce()
                heard = [await anext(here), await anext(here)]
            gone = await anext(here)
        assert [event.application for event in heard if isinstance(event, PublisherHeard)] == ["", "feed"]
        assert isinstance(gone, PublisherGone)

    run(main())


def test_a_callback_that_raises_loses_its_update_and_no_other() -> None:
    async def main(one: DistributorConnection, other: DistributorConnection) -> None:
        good: list[bytes] = []

        def callback(update: Update) -> None:
            if update.content == b"2":
                raise ValueError("two")
            good.append(update.content)

        other.subscribe("/s", callback)
        incoming = other.subscribe("/s")
        await one.publish_many("/s", [b"1", b"2", b"3"])
        assert [(await anext(incoming)).content for _ in range(3)] == [b"1", b"2", b"3"]
        assert good == [b"1", b"3"]
        failed = [event for event in other._events if isinstance(event, CallbackFailed)]
        assert [str(event.error) for event in failed] == ["two"]

    played(main)


def test_a_slow_program_is_told_what_it_was_too_slow_for() -> None:
    async def main(one: DistributorConnection, other: DistributorConnection) -> None:
        incoming = other.subscribe("/s", most=10)
        await one.publish_many("/s", [b"%d" % number for number in range(25)])
        await until(lambda: incoming.dropped)
        assert [(await anext(incoming)).content for _ in range(10)] == [b"%d" % number for number in range(10)]
        assert incoming.dropped == 15
        assert other.statistics()["updates_dropped"] == 15
        assert DeliveryOverflowed("/s", 15) in other._events

    played(main, holdback="5ms")


def test_a_subscription_ends_for_its_iterator_and_others_go_on() -> None:
    async def main(one: DistributorConnection, other: DistributorConnection) -> None:
        ended, kept = other.subscribe("/s"), other.subscribe("/...")
        await one.publish("/s", b"a")
        assert (await anext(kept)).content == b"a"
        ended.close()
        ended.close()
        await one.publish("/s", b"b")
        assert (await anext(kept)).content == b"b"
        assert [update.content async for update in ended] == [b"a"]
        assert await ended.together() is None

    played(main)


def test_a_rate_makes_publish_wait_and_nothing_is_lost() -> None:
    async def main(one: DistributorConnection, other: DistributorConnection) -> None:
        incoming = other.subscribe("/s")
        began = asyncio.get_running_loop().time()
        for number in range(100):
            await one.publish("/s", b"%4d" % number * 250)
        await one.flush()
        # 100 kB at 2 Mbit/s take 0.4 s.
        assert asyncio.get_running_loop().time() - began > 0.3
        found = [(await anext(incoming)).content for _ in range(100)]
        assert found == [b"%4d" % number * 250 for number in range(100)]

    played(main, rate="2Mbit")


def test_datagrams_of_strangers_are_counted_and_change_nothing() -> None:
    async def main() -> None:
        group = new_group()
        host, _, port = group.partition(":")
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
            stranger.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton("127.0.0.1"))
            async with opened(group) as one, opened(group) as other:
                incoming = other.subscribe("/...")
                await one.announce()
                noise = [
                    b"",
                    b"x",
                    b"\1\0",
                    b"\1\0\1\5" + bytes(24),
                    b"\1\0\4\5" + bytes(30),
                    os.urandom(1400),
                    b"\2" + bytes(60),
                ]
                noise += [b"\1\0\1\5" + os.urandom(600) for _ in range(50)]
                # Longer than a segment, as long as UDP allows, and a header alone.
                noise += [b"\1\0\1\5" + os.urandom(65_000), bytes(65_507), b"\1\0\6\5" + bytes(16)]
                for number in range(100):
                    stranger.sendto(noise[number % len(noise)], (host, int(port)))
                    await one.publish("/s", b"%d" % number)
                assert [(await anext(incoming)).content for _ in range(100)] == [b"%d" % number for number in range(100)]
                assert other.statistics()["malformed"] > 50

    run(main())


@pytest.mark.parametrize("pattern", ["", "quotes", "/.../a"])
def test_an_impossible_subscription_is_refused_with_its_name(pattern: str) -> None:
    async def main(one: DistributorConnection, other: DistributorConnection) -> None:
        with pytest.raises(UsageError, match="subscription"):
            one.subscribe(pattern)
        with pytest.raises(UsageError, match="wildcards"):
            await one.publish("/a/*", b"")
        kept = one.subscribe("/a")
        await other.publish("/a", b"x")
        assert (await anext(kept)).content == b"x"

    played(main)


def test_a_closed_connection_says_so_and_leaves_no_descriptor() -> None:
    before = sockets()

    async def main() -> DistributorConnection:
        async with opened(new_group()) as connection:
            incoming = connection.subscribe("/s")
            await connection.publish("/s", b"a")
        assert [update.content async for update in incoming] == [b"a"]
        assert [event async for event in connection]
        with pytest.raises(TransferError, match="closed"):
            await connection.publish("/s", b"b")
        with pytest.raises(TransferError, match="closed"):
            connection.subscribe("/s")
        return connection

    connection = run(main())
    assert connection.statistics()["messages_published"] == 1
    assert sockets() == before


def test_two_connections_of_a_program_have_sender_ids_of_their_own() -> None:
    async def main(one: DistributorConnection, other: DistributorConnection) -> None:
        incoming = one.subscribe("/...")
        await one.publish("/a", b"")
        await other.publish("/b", b"")
        ids = {(await anext(incoming)).source.sender_id for _ in range(2)}
        assert len(ids) == 2
        assert min(ids) >= 61234

    played(main)


@pytest.mark.parametrize(
    ("options", "match"),
    [({"segment": 10}, "segment"), ({"speed": 1}, "speed"), ({"group": "1.2.3.4:5"}, "group"), ({"rate": "fast"}, "rate")],
)
def test_wrong_parameters_are_refused_with_their_name(options: dict[str, Any], match: str) -> None:
    with pytest.raises(UsageError, match=match):
        mcastlab.distributor(**{"group": "239.7.7.1:5000", **options})
