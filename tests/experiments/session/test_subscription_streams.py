"""Streams of subscriptions, of messages and of updates alike: order, bounded queues, callbacks, ends and failures."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from experiments.session.deliveries import UpdateStream
from experiments.session.message_stream import MessageStream
from experiments.session.subscription_stream import CallbackFailed, DeliveryOverflowed, SubscriptionStream
from protocols.distributor.messages import Source
from protocols.errors import TransferError
from protocols.events import Event
from protocols.jms import jms_message

SOURCE = Source(0x01020304, 1, 2)


class Bed:
    """A stream of one kind, and what it told."""

    def __init__(self, kind: str, callback: Callable[[Any], object] | None = None, most: int = 10) -> None:
        self.told: list[Event] = []
        self.ended: list[SubscriptionStream[Any]] = []
        last = most, self.told.append, self.ended.append
        self.updates = UpdateStream(0, "p", None, callback, *last) if kind == "updates" else None
        self.messages = MessageStream(0, "p", callback, *last) if kind == "messages" else None

    @property
    def stream(self) -> SubscriptionStream[Any]:
        return self.updates or self.messages  # type: ignore[return-value]

    def deliver(self, *contents: bytes, now: float = 0.0) -> None:
        """Deliver contents, of updates all at once."""
        if self.updates is not None:
            self.updates.deliver("p", SOURCE, contents, now)
        for content in contents if self.messages is not None else ():
            assert self.messages is not None
            self.messages.deliver(jms_message(1, 0, "topic:p", content), now)

    async def take(self, count: int) -> list[bytes]:
        return [(await anext(self.stream)).content for _ in range(count)]


KINDS = pytest.mark.parametrize("kind", ["updates", "messages"])
THREE = b"1", b"2", b"3"


@KINDS
def test_what_does_not_fit_is_told_once_in_a_second_and_the_rest_when_the_program_has_caught_up(kind: str) -> None:
    async def main() -> None:
        bed = Bed(kind, most=2)
        bed.deliver(*THREE)
        bed.deliver(b"4", now=0.5)
        assert bed.told == [DeliveryOverflowed("p", 1)]
        bed.deliver(b"5", now=1.5)
        assert bed.told[1:] == [DeliveryOverflowed("p", 3)]
        bed.deliver(b"6", now=1.6)
        assert await bed.take(1) == [b"1"]
        assert len(bed.told) == 2
        assert await bed.take(1) == [b"2"]
        assert bed.told[2:] == [DeliveryOverflowed("p", 4)]
        bed.deliver(b"7", now=1.7)
        assert await bed.take(1) == [b"7"]
        assert (len(bed.told), bed.stream.received, bed.stream.dropped, bed.stream.waiting) == (3, 3, 4, 0)

    asyncio.run(main())


@KINDS
def test_a_callback_gets_everything_at_once_and_what_it_raises_is_told(kind: str) -> None:
    heard: list[bytes] = []

    def callback(item: Any) -> None:
        if item.content == b"2":
            raise ValueError("two")
        heard.append(item.content)

    bed = Bed(kind, callback, most=1)
    bed.deliver(*THREE)
    assert heard == [b"1", b"3"]
    assert [str(event.error) for event in bed.told if isinstance(event, CallbackFailed)] == ["two"]
    assert (bed.stream.received, bed.stream.waiting) == (3, 0)


@KINDS
def test_a_stream_that_ended_gives_what_is_here_and_one_that_failed_then_raises(kind: str) -> None:
    async def main() -> None:
        ended, failed = Bed(kind), Bed(kind)
        for bed in (ended, failed):
            bed.deliver(*THREE)
        ended.stream.finish()
        assert [item.content async for item in ended.stream] == list(THREE)
        ended.stream.close()
        assert not ended.ended
        failed.stream.fail(TransferError("gone"))
        assert await failed.take(3) == list(THREE)
        with pytest.raises(TransferError, match="gone"):
            await failed.take(1)
        failed.stream.close()
        assert failed.ended == [failed.stream]

    asyncio.run(main())


@KINDS
def test_a_program_that_waits_is_woken_by_the_next_item(kind: str) -> None:
    async def main() -> None:
        bed = Bed(kind)
        waiting = asyncio.ensure_future(bed.take(2))
        await asyncio.sleep(0)
        bed.deliver(b"1")
        bed.deliver(b"2")
        assert await waiting == [b"1", b"2"]

    asyncio.run(main())


def test_updates_that_came_together_are_taken_together_after_some_were_taken_alone() -> None:
    async def main() -> None:
        bed = Bed("updates")
        assert bed.updates is not None
        bed.deliver(*THREE)
        bed.deliver(b"4")
        assert await bed.take(1) == [b"1"]
        for wanted in ((b"2", b"3"), (b"4",)):
            updates = await bed.updates.together()
            assert updates is not None
            assert tuple(updates.contents) == wanted
        assert bed.stream.waiting == 0

    asyncio.run(main())
