"""What a session makes of the acknowledgements that a sender collects: answers, failures, cancellation, several questions."""

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar, cast

import pytest

from experiments.contract.case import SETTINGS
from experiments.contract.worlds import new_group
from experiments.session.outbox import Outbox
from experiments.session.transmission import Transmission
from mcastlab import Delivery, StreamOpened, TransferError, UsageError
from protocols.acknowledgement import AckRequest
from protocols.events import AcksCompleted, ObjectAborted
from protocols.machine import Content
from tests.support.sessions import first, opened, opened_on, run

T = TypeVar("T")
ASK = AckRequest((2, 3))


class Asked:
    """A sender that notes what it is asked."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, int]] = []

    def submit(self, content: Content, now: float) -> int:
        """Give an object the next id."""
        self.calls.append(("submit", content.source.size))
        return len(self.calls) - 1

    def require_acks(self, object_id: int, request: AckRequest, now: float) -> None:
        """Note a question."""
        assert request is ASK
        if object_id == 9:
            raise UsageError("object 9 is not known")
        self.calls.append(("require", object_id))

    def cancel_acks(self, object_id: int, now: float) -> None:
        """Note that a question is withdrawn."""
        self.calls.append(("cancel", object_id))


class Host:
    """A host that calls at once."""

    def call(self, verb: Callable[..., T], *args: Any) -> T:
        """Call a method of the machine."""
        return verb(*args, 0.0)


def outbox_of(sender: object) -> Outbox:
    """Return an outbox over a sender of the test."""
    return Outbox(cast(Any, Host()), cast(Any, sender), 1)


def test_each_question_gets_its_answer_in_order() -> None:
    async def main() -> list[list[Delivery]]:
        sender, first, second = Asked(), Transmission(0, "a", 1), Transmission(1, "b", 1)
        outbox = outbox_of(sender)
        both = asyncio.create_task(outbox.confirmed([first, second], ASK))
        again = asyncio.create_task(outbox.confirmed([first], ASK))
        await asyncio.sleep(0)
        # All are asked before the first answer.
        assert sender.calls == [("require", 0), ("require", 1), ("require", 0)]
        outbox.on_event(AcksCompleted(0, (2, 3), ()))
        outbox.on_event(AcksCompleted(1, (2,), (3,)))
        outbox.on_event(AcksCompleted(0, (), (2, 3)))
        return [await both, await again]

    assert run(main()) == [[Delivery(0, (2, 3), ()), Delivery(1, (2,), (3,))], [Delivery(0, (), (2, 3))]]


def test_a_task_that_is_cancelled_withdraws_its_questions() -> None:
    async def main() -> None:
        sender = Asked()
        outbox = outbox_of(sender)
        task = asyncio.create_task(outbox.confirmed([Transmission(0, "a", 1), Transmission(1, "b", 1)], ASK))
        await asyncio.sleep(0)
        outbox.on_event(AcksCompleted(0, (2, 3), ()))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert sender.calls[2:] == [("cancel", 1)]

    run(main())


def test_a_question_that_is_refused_withdraws_those_before() -> None:
    async def main() -> None:
        sender = Asked()
        outbox = outbox_of(sender)
        with pytest.raises(UsageError, match="object 9 is not known"):
            await outbox.confirmed([Transmission(0, "a", 1), Transmission(9, "b", 1)], ASK)
        assert sender.calls == [("require", 0), ("cancel", 0)]

    run(main())


def test_an_object_that_fails_is_not_waited_for() -> None:
    async def main() -> None:
        outbox = outbox_of(Asked())
        item = outbox.submit(cast(Any, Content(cast(Any, type("Source", (), {"size": 5})()))), "notes")
        task = asyncio.create_task(outbox.confirmed([item], ASK))
        await asyncio.sleep(0)
        outbox.on_event(ObjectAborted(1, item.object_id, "source: gone"))
        with pytest.raises(TransferError, match="notes: gone"):
            await task

    run(main())


def test_a_session_that_fails_withdraws_nothing_any_more() -> None:
    async def main() -> None:
        sender = Asked()
        outbox = outbox_of(sender)
        task = asyncio.create_task(outbox.confirmed([Transmission(0, "a", 1)], ASK))
        await asyncio.sleep(0)
        outbox.fail(TransferError("the session failed"))
        with pytest.raises(TransferError, match="the session failed"):
            await task
        assert sender.calls == [("require", 0)]

    run(main())


def test_a_protocol_without_acknowledgements_says_so() -> None:
    async def main() -> None:
        async with opened_on(new_group(), protocol="srm", receive=False, **SETTINGS.get("srm", {})) as one:
            note = await one.send_bytes(b"x")
            with pytest.raises(UsageError, match="the receivers of this protocol confirm nothing"):
                await one.sent(note, by=[2])
            with pytest.raises(UsageError, match="what is to be confirmed has to be named"):
                await one.sent(by=[2])

    run(main())


# -- with NORM, whose sender collects acknowledgements -----------------------------------------------------------------


def test_receivers_confirm_what_they_have_and_others_are_missing() -> None:
    async def main() -> list[Delivery]:
        group = new_group()
        async with opened(group, node=1) as one, opened(group, node=2, send=False), opened(group, node=3):
            note = await one.send_bytes(bytes(50_000))
            second = await one.send_bytes(b"second")
            return await one.sent(note, second, by=[2, 3, 4])

    found = run(main())
    assert found == [Delivery(0, (2, 3), (4,)), Delivery(1, (2, 3), (4,))]
    assert not found[0].is_confirmed


def test_a_stream_is_confirmed_while_it_is_open_and_at_its_end() -> None:
    async def main() -> list[Delivery]:
        group = new_group()
        async with opened(group, node=1, receive=False) as one, opened(group, node=2, send=False) as other:

            async def read() -> list[bytes]:
                return [message async for message in (await first(other, StreamOpened)).stream]

            reading = asyncio.create_task(read())
            async with await one.open_stream() as out:
                await out.write(b"so far")
                found = await one.sent(out, by=[2])
                await out.write(b"the rest")
            found += await one.sent(out, by=[2])
            assert await reading == [b"so far", b"the rest"]
            return found

    assert [delivery.is_confirmed for delivery in run(main())] == [True, True]


def test_a_question_with_a_time_limit_ends_in_time() -> None:
    async def main() -> None:
        async with opened(new_group(), node=1, receive=False, robust=40, grtt="50ms") as one:
            note = await one.send_bytes(b"x")
            async with asyncio.timeout(0.2):
                await one.sent(note, by=[2])

    with pytest.raises(TimeoutError):
        run(main())
