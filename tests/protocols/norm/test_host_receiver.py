"""A receiver knows whether a sender may still ask for an ACK of what it has."""

from dataclasses import replace
from typing import Any

import pytest

from protocols.acknowledgement import AwaitedReceiver
from protocols.norm.host_receiver import NormHostReceiver
from protocols.norm.messages import FLAG_REPAIR, Ack
from protocols.norm.quantise import rtt_code, rtt_seconds
from tests.protocols.norm.scenes import GRTT, MessageBuilder, ReceiverHarness


def complete(**settings: Any) -> tuple[MessageBuilder, ReceiverHarness, NormHostReceiver]:
    """Return a receiver that has a sender's only object at time 0."""
    builder, receiver = MessageBuilder(bytes(1000)), ReceiverHarness(kind=NormHostReceiver, **settings)
    receiver.receive(*builder.whole(), now=0.0)
    assert receiver.received() == [0]
    assert isinstance(receiver.machine, NormHostReceiver)
    return builder, receiver, receiver.machine


def test_it_has_the_method_of_the_contract() -> None:
    assert isinstance(complete()[2], AwaitedReceiver)


def test_it_is_awaited_until_the_end_is_announced() -> None:
    builder, receiver, machine = complete()
    assert machine.is_awaited(0.5, 0.0)
    receiver.receive(builder.flush(), now=0.5)
    assert not machine.is_awaited(0.5, 0.0)
    receiver.receive(*builder.whole(1), now=0.6)
    assert machine.is_awaited(0.6, 0.0)


@pytest.mark.parametrize("asks", [True, False])
def test_it_is_awaited_a_little_longer_by_a_sender_that_asks_it(asks: bool) -> None:
    builder, receiver, machine = complete()
    receiver.receive(replace(builder.flush(), acking=(9 if asks else 8,)), now=0.5)
    assert machine.is_awaited(0.5, 0.0) == asks
    receiver.run_until(0.5 + GRTT)
    assert bool(receiver.acks) == asks
    assert isinstance(receiver.acks[0], Ack) if asks else True
    assert machine.is_awaited(0.5 + 4 * GRTT, 0.0) == asks
    assert not machine.is_awaited(0.5 + 6 * GRTT, 0.0)


def test_it_is_awaited_by_a_sender_that_was_started_again_whatever_its_first_start_announced() -> None:
    builder, receiver, machine = complete()
    receiver.receive(builder.flush(), now=0.5)
    again = MessageBuilder(bytes(1000), instance=2)
    receiver.receive(*again.whole(), now=0.6)
    assert receiver.received() == [0, 0]
    assert machine.is_awaited(0.6, 0.6)
    receiver.receive(again.flush(), now=0.7)
    assert not machine.is_awaited(0.7, 0.6)


def test_it_is_not_awaited_by_a_sender_that_is_not_heard_any_more() -> None:
    _, _, machine = complete()
    assert machine.is_awaited(1.0, 0.0)
    assert not machine.is_awaited(1.01, 0.0)


def test_it_is_not_awaited_without_a_sender_nor_when_it_is_silent() -> None:
    receiver = ReceiverHarness(kind=NormHostReceiver)
    assert isinstance(receiver.machine, NormHostReceiver)
    assert not receiver.machine.is_awaited(0.0, 0.0)
    assert not complete(feedback="none")[2].is_awaited(0.0, 0.0)


def test_it_is_awaited_while_a_sender_that_asked_it_repairs_and_does_not_ask() -> None:
    builder, receiver, machine = complete()
    receiver.receive(replace(builder.flush(), acking=(9,)), now=0.5)
    for step in range(1, 20):
        receiver.receive(builder.data(0, 0, flags=FLAG_REPAIR), now=0.5 + step * GRTT)
    assert machine.is_awaited(0.5 + 20 * GRTT, 0.0)
    assert not machine.is_awaited(0.5 + 25 * GRTT, 0.0)


def test_it_is_awaited_for_the_rounds_of_a_sender_whose_group_has_long_ways() -> None:
    builder = MessageBuilder(bytes(1000), grtt=2.0)
    receiver = ReceiverHarness(kind=NormHostReceiver)
    receiver.receive(*builder.whole(), replace(builder.flush(), acking=(9,)), now=0.5)
    assert isinstance(receiver.machine, NormHostReceiver)
    assert receiver.machine.is_awaited(0.5 + 2 * 2.0, 0.0)
    assert not receiver.machine.is_awaited(0.5 + 6 * 2.0, 0.0)


@pytest.mark.parametrize(("grtt", "longest"), [(GRTT, 10.0), (10.0, 2 * 20 * rtt_seconds(rtt_code(10.0)))])
def test_it_is_awaited_for_an_activity_period_while_the_sender_repairs(grtt: float, longest: float) -> None:
    builder = MessageBuilder(bytes(1000), grtt=grtt)
    receiver = ReceiverHarness(kind=NormHostReceiver, robust=20)
    receiver.receive(*builder.whole(), now=0.0)
    assert isinstance(receiver.machine, NormHostReceiver)
    receiver.receive(builder.data(0, 0, flags=FLAG_REPAIR), now=0.95 * longest)
    assert receiver.machine.is_awaited(0.99 * longest, 0.0)
    assert not receiver.machine.is_awaited(longest, 0.0)
