"""What a program controls while its session runs: objects sent again, parameters, commands, answers, requests."""

import asyncio
from functools import partial
from typing import Any

import pytest

from experiments.contract.worlds import new_group
from experiments.session import session as session_module
from mcastlab import (
    AckRequest,
    CommandReceived,
    ConfigError,
    ContentReceived,
    Event,
    ObjectAborted,
    SenderHeard,
    Session,
    TransferError,
    UsageError,
)
from protocols.errors import WireError
from protocols.norm.messages import Data, NormMessage
from protocols.norm.wire.codec import NormCodec
from tests.support.sessions import contents, first, opened, opened_on, run


class LosingCodec(NormCodec):
    """Loses a source symbol each time it comes, while `is_losing`."""

    is_losing = True

    def decode(self, data: bytes) -> NormMessage:
        """Raise WireError for the symbol."""
        message = super().decode(data)
        if self.is_losing and isinstance(message, Data) and message.symbol == 3:
            raise WireError("lost")
        return message

    def decode_run(self, data: bytes, start: int, segment: int) -> None:
        """Decode one by one."""


@pytest.fixture
def codec(monkeypatch: pytest.MonkeyPatch) -> LosingCodec:
    """Give all sessions of the test this codec."""
    made = LosingCodec()
    monkeypatch.setattr(session_module, "node_codec", lambda *_: lambda: made)
    return made


def activity(where: Session) -> dict[str, Any]:
    """Return the numbers of the session's machine."""
    return dict(where.statistics().parts[0].values)


def test_an_object_is_sent_again_for_a_receiver_that_was_late() -> None:
    async def main() -> None:
        group = new_group()
        async with opened(group, receive=False) as here:
            news = await here.send_bytes(b"news" * 1000)
            assert not here.requeue(news), "it was not sent yet"
            await here.sent(news)
            async with opened(group, send=False) as late:
                assert here.requeue(news)
                assert not news.is_over
                await here.sent(news)
                assert news.is_over
                assert await contents(late, 1) == [b"news" * 1000]
            here.cancel(news)
            assert not here.requeue(news)

    run(main())


def test_the_rate_of_a_running_sender_is_raised() -> None:
    async def main() -> None:
        async with opened_on(new_group(), receive=False, rate="100kbit", grtt="5ms", robust=4) as here:
            # It would take 160 s.
            big = await here.send_bytes(bytes(2_000_000))
            await asyncio.sleep(0.1)
            here.adjust(rate="400Mbit", cache_min=300, cache_max=400)
            await here.sent(big)
            assert activity(here)["rate"] == 50e6

    run(main(), 15)


def test_parameters_that_can_not_change_are_named() -> None:
    async def main() -> None:
        async with opened(new_group()) as here:
            for settings, error, message in (
                ({"segment": 500}, UsageError, "segment: can't be changed while a sender runs"),
                ({"rate": "fast"}, ConfigError, "adjust.rate: value 'fast' is not allowed; a rate from"),
                ({"speed": 1}, ConfigError, "adjust.speed: value 1 is not allowed; unknown key"),
                ({"cache_max": 1}, ConfigError, "cache_min: 8 is not allowed; at most cache_max"),
            ):
                with pytest.raises(error, match=message):
                    here.adjust(**settings)

    run(main())


def test_a_receiver_is_told_once_of_all_copies_of_a_command() -> None:
    async def main() -> tuple[list[Event], int]:
        group = new_group()
        async with opened(group, send=False, node=2) as there, opened(group, receive=False, node=1) as here:
            await here.send_command(b"stop")
            await here.send_command(b"go", copies=1)
            events = [await first(there, CommandReceived) for _ in range(2)]
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(first(there, CommandReceived), 0.1)
            return list(events), here.host.traffic.packets["application"]

    events, packets = run(main())
    assert events == [CommandReceived(1, b"stop"), CommandReceived(1, b"go")]
    assert packets == 4 + 1, "robust copies, and one"


def test_a_task_that_is_cancelled_withdraws_its_command() -> None:
    async def main() -> int:
        async with opened_on(new_group(), receive=False, grtt="300ms", robust=50) as here:
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(here.send_command(b"stop"), 0.05)
            await here.send_command(b"go", copies=1)
            return here.host.traffic.packets["application"]

    assert run(main()) <= 3


def test_commands_are_refused_where_they_can_not_be() -> None:
    async def main() -> None:
        group = new_group()
        async with opened(group) as here, opened(group, send=False) as there, opened_on(group, protocol="srm") as other:
            for where, copies, size, message in (
                (here, 1, 1401, "a command of 1401 bytes; at most one segment"),
                (here, -1, 1, "copies: value -1 is not allowed"),
                (there, 1, 1, "this session only receives"),
                (other, 1, 1, "the sender of this protocol sends no commands; that of norm does"),
            ):
                with pytest.raises(UsageError, match=message):
                    await where.send_command(bytes(size), copies=copies)
        with pytest.raises(TransferError, match="the session is closed"):
            await here.send_command(b"late")

    run(main())


def test_acknowledgements_carry_the_answers_of_applications() -> None:
    async def main() -> None:
        group, asked = new_group(), []
        async with (
            opened(group, receive=False, node=1) as here,
            opened(group, send=False, node=2) as there,
            opened(group, send=False, node=3),
        ):

            def answer(sender: int, content: bytes) -> bytes | None:
                asked.append((sender, content))
                return None if len(asked) == 1 else b"room for 7 more"

            there.answer_acks(answer)
            note = await here.send_bytes(b"content")
            (delivery,) = await here.sent(note, by=AckRequest((2, 3), content=b"how many more?"))
            assert delivery.is_confirmed
            assert {node: content.rstrip(b"\0") for node, content in delivery.contents.items()} == {2: b"room for 7 more"}
            assert len(asked) > 1, "it was asked again"
            assert {(sender, content.rstrip(b"\0")) for sender, content in asked} == {(1, b"how many more?")}
            (mark,) = here.statistics().parts[0].only("watermark")
            assert (mark.states["state"], mark.values["nodes_confirmed"]) == ("confirmed", 2)
            assert [(part.name, part.states["state"]) for part in mark.parts] == [("3", "confirmed"), ("2", "confirmed")]

    run(main())


def test_what_is_not_requested_is_requested_later(codec: LosingCodec) -> None:
    async def main() -> None:
        group = new_group()
        async with opened(group, receive=False, node=1) as here, opened(group, send=False, robust=20) as there:
            there.set_nacking("none")
            note = await here.send_bytes(bytes(20_000))
            await here.sent(note)
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(first(there, ContentReceived), 0.2)
            assert activity(there)["nacks_sent"] == 0
            codec.is_losing = False
            there.set_nacking("normal", 1, note.object_id)
            assert (await first(there, ContentReceived)).size == 20_000
            assert activity(there)["nacks_sent"] == 1

    run(main())


@pytest.mark.parametrize("way", ["give up", "forget"])
def test_an_object_that_is_not_wanted_ends_with_a_reason(codec: LosingCodec, way: str) -> None:
    async def main() -> ObjectAborted:
        group = new_group()
        async with opened(group, receive=False, node=1, parity=0) as here, opened(group, send=False, nacking="none") as there:
            note = await here.send_bytes(bytes(20_000))
            await here.sent(note)
            await first(there, SenderHeard)
            if way == "give up":
                there.give_up(1, note.object_id)
            else:
                assert there.forget_sender(1)
                assert not there.forget_sender(7)
            return await first(there, ObjectAborted)

    assert run(main()).reason == {"give up": "not wanted", "forget": "the sender was forgotten"}[way]


def test_a_boundary_and_a_mode_are_of_a_sender_that_was_heard() -> None:
    async def main() -> None:
        group = new_group()
        async with (
            opened(group, send=False) as there,
            opened(group, receive=False) as here,
            opened_on(group, protocol="srm") as other,
        ):
            there.set_repair_boundary("object")
            calls = (
                (partial(there.set_repair_boundary, "block", 9), "sender 9 has not been heard"),
                (partial(there.set_nacking, "some"), "nacking: 'some' is not allowed; one of normal, info, none"),
                (partial(here.set_nacking, "none"), "this session only sends"),
                (partial(other.set_nacking, "none"), "set_nacking: the receiver of this protocol can't; that of norm can"),
                (partial(other.answer_acks, lambda sender, content: b""), "the receiver of this protocol confirms nothing"),
                (partial(other.adjust, rate="1Mbit"), "the parameters of this protocol can't change"),
            )
            for call, message in calls:
                with pytest.raises(UsageError, match=message):
                    call()

    run(main())


def test_a_receiver_that_limits_the_rate_says_that_it_leaves() -> None:
    async def main() -> None:
        group, settings = new_group(), {"congestion": "norm", "grtt": "5ms", "robust": 4, "rate_max": "5Mbit"}
        async with opened_on(group, receive=False, **settings) as here:
            async with opened_on(group, send=False, node=7, **settings) as there:
                big = await here.send_bytes(bytes(400_000))
                while not is_limiting(there):
                    await asyncio.sleep(0.01)
                assert limiting(here) == ["7"]
            while limiting(here):
                await asyncio.sleep(0.01)
            # Without receivers the rate is halved ever again.
            here.cancel(big)

    run(main())


def limiting(where: Session) -> list[str]:
    """Return the receivers that limit the rate of a sender."""
    (state,) = where.statistics().parts[0].only("congestion")
    return [receiver.name for receiver in state.parts if receiver.states["role"] == "CLR"]


def is_limiting(where: Session) -> bool:
    """Return whether a receiver was told by a sender that it limits the rate."""
    states = [state for sender in where.statistics().parts[0].only("sender") for state in sender.only("congestion")]
    return any(state.states["role"] == "CLR" for state in states)
