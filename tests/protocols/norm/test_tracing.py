"""Trace output of NORM: short descriptions of messages, and decisions of the NACK process."""

from typing import Any

import pytest

from experiments.contract.content import pattern
from protocols.machine import Message
from protocols.norm.messages import FLAG_REPAIR, Nack
from protocols.norm.requests import (
    LEVEL_BLOCK,
    LEVEL_INFO,
    LEVEL_OBJECT,
    Request,
)
from tests.protocols.norm.scenes import MessageBuilder, ReceiverHarness, SenderHarness, items, ranges


def builder() -> MessageBuilder:
    """Return the messages of a sender of four blocks of eight symbols."""
    return MessageBuilder(pattern(3200), info=b"name")


def nack(*requests: Request) -> Nack:
    """Return a NACK of another receiver to the sender of `MessageBuilder`."""
    return Nack(77, 0, 1, 1, 0, 0, requests)


@pytest.mark.parametrize(
    ("message", "brief"),
    [
        (builder().data(0, 1), "0.0.1"),
        (builder().data(0, 9), "0.0.p1"),
        (builder().info(3), "3"),
        (builder().squelch(2), "2.0"),
        (builder().probe(), ""),
        (nack(items((0, 2, 7))), "0.2.7"),
        (nack(ranges((0, 2, 7), (0, 2, 9))), "0.2.7-9"),
        (nack(items((0, 2), (0, 3), (1, 0), level=LEVEL_BLOCK)), "0.2, 0.3 +1"),
        (nack(items((4,), level=LEVEL_OBJECT)), "4"),
        (nack(items((4,), level=LEVEL_INFO)), "info 4"),
    ],
)
def test_messages_have_short_descriptions(message: Message, brief: str) -> None:
    assert message.brief == brief


def test_repairs_are_described_as_repairs() -> None:
    sender = builder()
    assert sender.data(0, 1, flags=sender.flags | FLAG_REPAIR).repair
    assert not sender.data(0, 1).repair
    assert sender.info(0, flags=sender.flags | FLAG_REPAIR).repair
    assert not sender.probe().repair


def listening() -> tuple[ReceiverHarness, list[tuple[str, Any]]]:
    """Return a traced receiver that lacks a symbol, and its decisions so far."""
    receiver, sender = ReceiverHarness(), builder()
    seen: list[tuple[str, Any]] = []
    receiver.host.trace = lambda name, detail: seen.append((name, detail))
    receiver.receive(sender.info(), *sender.block(0, without=(1,)), sender.data(1, 0))
    return receiver, seen


def test_a_back_off_that_ends_with_a_request_is_traced() -> None:
    receiver, seen = listening()
    assert [name for name, _ in seen] == ["nack_backoff"]
    expiry = receiver.run_to_deadline()
    assert seen[0][1] == {"until": expiry}
    assert seen[1][0] == "nack_due"
    assert seen[1][1]["silent_until"] > expiry
    assert len(receiver.nacks) == 1


def test_a_suppressed_back_off_is_traced() -> None:
    receiver, seen = listening()
    receiver.receive(nack(items((0, 0, 8))))
    assert [name for name, _ in seen] == ["nack_backoff", "nack_suppressed"]
    assert seen[1][1] == {"due": seen[0][1]["until"]}


def test_a_sender_traces_the_time_it_aggregates_requests() -> None:
    sender = SenderHarness()
    seen: list[tuple[str, Any]] = []
    sender.host.trace = lambda name, detail: seen.append((name, detail))
    sender.submit(3000)
    sender.run_until(0.5)
    sender.nack(items((0, 0, 0)), now=0.5)
    assert [name for name, _ in seen] == ["repair_aggregation"]
    assert seen[0][1]["until"] > 0.5
