"""A NORM receiver's start of reception, its separation of senders, and its inactivity timeout."""

from dataclasses import replace
from math import inf

import pytest

from experiments.contract.content import pattern
from protocols.events import NodeClash, SenderHeard, SenderSilent
from protocols.norm.messages import FLAG_REPAIR
from protocols.norm.repair_requests import requested_repairs
from tests.protocols.norm.scenes import GROUP, GRTT, MessageBuilder, ReceiverHarness, symbols

LONG = 2400
"""Bytes of three blocks."""
LATE = 100
"""Sequence number of a sender that started long ago."""


def test_a_receiver_joins_the_group_and_sends_nothing_unsolicited() -> None:
    receiver = ReceiverHarness()
    assert receiver.host.groups == [GROUP]
    receiver.run_until(1000.0)
    assert not receiver.sent
    assert receiver.machine.deadline == inf


# -- joining -----------------------------------------------------------------------------------------------------------


def test_a_receiver_synchronises_at_the_start_of_an_object() -> None:
    receiver, builder = ReceiverHarness(), MessageBuilder(pattern(LONG), sequence=LATE)
    receiver.receive(*builder.whole(17))
    assert receiver.received() == [17]


def test_in_the_middle_of_an_object_a_receiver_waits_for_the_next() -> None:
    receiver, builder = ReceiverHarness(), MessageBuilder(pattern(LONG), sequence=LATE)
    receiver.receive(*builder.whole(17)[8:], builder.flush(17))
    receiver.run_until(5.0)
    receiver.receive(*builder.whole(18), builder.flush(18))
    receiver.run_until(30.0)
    assert receiver.received() == [18]
    assert not receiver.nacks
    assert not receiver.aborted()


def test_later_in_the_first_block_a_receiver_synchronises_and_requests_the_start() -> None:
    receiver, builder = ReceiverHarness(), MessageBuilder(pattern(LONG), sequence=LATE)
    receiver.receive(*builder.whole(17)[3:])
    receiver.run_to_deadline()
    assert symbols(receiver.requested()[0], 17, 0) == [8, 9, 10]


def test_a_receiver_synchronises_at_norm_info() -> None:
    receiver, builder = ReceiverHarness(), MessageBuilder(pattern(LONG), info=b"name", sequence=LATE)
    receiver.receive(builder.info(17))
    builder.block(0, 17)
    receiver.receive(*builder.block(1, 17))
    receiver.run_to_deadline()
    assert receiver.requested()[0].blocks == ((17, 0, 0),)


def test_a_receiver_does_not_synchronise_at_a_repair() -> None:
    receiver, builder = ReceiverHarness(), MessageBuilder(pattern(LONG), info=b"name", sequence=LATE)
    receiver.receive(builder.info(16, FLAG_REPAIR), builder.data(0, 3, 16, FLAG_REPAIR), builder.flush(16))
    receiver.run_until(5.0)
    assert not receiver.host.offers
    assert not receiver.nacks
    receiver.receive(builder.info(17), *builder.whole(17))
    assert receiver.received() == [17]


@pytest.mark.parametrize("join", ["middle", "end"])
def test_a_receiver_may_join_in_the_middle_of_an_object_and_request_what_came_before(join: str) -> None:
    receiver, builder = ReceiverHarness(join=join), MessageBuilder(pattern(LONG), info=b"name", sequence=LATE)
    messages = builder.whole(17)
    receiver.receive(*messages[12:], builder.flush(17))
    receiver.run_to_deadline()
    # All of the first block and the information by name; of the second, which has parity, as much as is missing.
    (requested,) = receiver.requested()
    assert requested.blocks == ((17, 0, 0),)
    assert requested.has_info(17)
    assert symbols(requested, 17, 1) == [8, 9, 10, 11]
    receiver.receive(
        builder.info(17, FLAG_REPAIR), *(replace(message, flags=message.flags | FLAG_REPAIR) for message in messages)
    )
    assert receiver.received() == [17]


@pytest.mark.parametrize("join", ["middle", "end"])
def test_a_receiver_does_not_join_in_the_middle_at_a_repair(join: str) -> None:
    receiver, builder = ReceiverHarness(join=join), MessageBuilder(pattern(LONG), sequence=LATE)
    receiver.receive(builder.data(1, 3, 16, FLAG_REPAIR))
    receiver.run_until(5.0)
    assert not receiver.host.offers


@pytest.mark.parametrize(("join", "requested"), [("beginning", []), ("middle", []), ("end", [((17, 17),)])])
def test_at_a_flush_only_a_receiver_that_joins_at_the_end_requests_the_object(join: str, requested: list[object]) -> None:
    receiver, builder = ReceiverHarness(join=join), MessageBuilder(pattern(LONG), sequence=LATE)
    receiver.receive(builder.flush(17))
    receiver.run_until(5.0)
    assert [each.objects for each in receiver.requested()[:1]] == requested


def test_objects_before_the_first_synchronised_one_are_ignored() -> None:
    receiver, builder = ReceiverHarness(), MessageBuilder(pattern(800), sequence=LATE)
    receiver.receive(*builder.whole(17))
    receiver.receive(*(builder.data(0, symbol, 16, FLAG_REPAIR) for symbol in range(8)))
    receiver.run_until(5.0)
    assert receiver.received() == [17]
    assert not receiver.nacks


def test_with_a_sender_that_just_started_a_receiver_synchronises_at_the_first_object() -> None:
    receiver, builder = ReceiverHarness(), MessageBuilder(pattern(800))
    builder.whole(0)
    builder.block(0, 1)
    receiver.receive(builder.flush(1))
    receiver.run_to_deadline()
    assert receiver.requested()[0].objects == ((0, 0), (1, 1))


@pytest.mark.parametrize(("fec", "parity"), [(0, 0), (5, 4), (129, 4)])
def test_a_request_before_any_content_uses_the_senders_fec_id(fec: int, parity: int) -> None:
    receiver, builder = ReceiverHarness(), MessageBuilder(pattern(800), fec=fec, parity=parity)
    builder.whole(0)
    receiver.receive(builder.flush(0))
    receiver.run_to_deadline()
    assert requested_repairs(receiver.nacks[0].requests, fec).objects == ((0, 0),)


@pytest.mark.parametrize("sequence", [LATE, 0x10000 - 3])
def test_a_flush_of_a_sender_that_started_long_ago_does_not_synchronise(sequence: int) -> None:
    receiver, builder = ReceiverHarness(), MessageBuilder(pattern(800), sequence=sequence)
    receiver.receive(builder.flush(1))
    receiver.run_until(5.0)
    assert not receiver.nacks


@pytest.mark.parametrize("sequence", [LATE, 0x10000 - 3])
def test_a_first_object_of_one_block_is_requested_if_only_its_flush_arrived(sequence: int) -> None:
    receiver, builder = ReceiverHarness(), MessageBuilder(pattern(800), sequence=sequence)
    receiver.receive(builder.flush(0))
    receiver.run_until(5.0)
    assert receiver.nacks


# -- activity ----------------------------------------------------------------------------------------------------------


def test_after_twenty_inactive_periods_a_sender_is_reported_silent_once() -> None:
    receiver, builder = ReceiverHarness(), MessageBuilder(pattern(800))
    receiver.receive(*builder.whole())
    receiver.run_until(19.9)
    assert not receiver.events_of(SenderSilent)
    receiver.run_until(1000.0)
    assert receiver.events_of(SenderSilent) == [SenderSilent(1)]
    assert receiver.machine.deadline == inf


def test_the_inactivity_period_grows_with_grtt_and_robustness() -> None:
    receiver, builder = ReceiverHarness(robust=20), MessageBuilder(pattern(800), grtt=0.5)
    receiver.receive(*builder.whole())
    receiver.run_until(20 * 2 * 20 * 0.5 - 1.0)
    assert not receiver.events_of(SenderSilent)
    receiver.run_until(1000.0)
    assert receiver.events_of(SenderSilent)


def test_any_message_of_the_sender_resets_the_inactivity_timer() -> None:
    receiver, builder = ReceiverHarness(), MessageBuilder(pattern(800))
    receiver.receive(*builder.whole())
    for i in range(1, 10):
        receiver.run_until(10.0 * i)
        receiver.receive(builder.flush())
    assert not receiver.events_of(SenderSilent)


def test_a_sender_that_resumes_can_be_reported_silent_again() -> None:
    receiver, builder = ReceiverHarness(), MessageBuilder(pattern(800))
    receiver.receive(*builder.whole())
    receiver.run_until(100.0)
    receiver.receive(*builder.whole(1))
    receiver.run_until(200.0)
    assert receiver.received() == [0, 1]
    assert receiver.events_of(SenderSilent) == [SenderSilent(1)] * 2


def test_nacks_to_a_silent_sender_are_repeated_until_it_is_reported() -> None:
    receiver, builder = ReceiverHarness(), MessageBuilder(pattern(LONG))
    receiver.receive(*builder.block(0, without=(1,)))
    receiver.run_until(15.5)
    assert 10 <= len(receiver.nacks) <= 20
    assert all(symbols(requested, 0, 0) == [8] for requested in receiver.requested())
    receiver.run_until(100.0)
    assert len(receiver.nacks) <= 21, "and not for ever"


# -- several senders ---------------------------------------------------------------------------------------------------


def test_senders_are_kept_apart() -> None:
    receiver = ReceiverHarness()
    one, two = MessageBuilder(pattern(LONG), node=1), MessageBuilder(pattern(LONG, seed=3), node=2, instance=4)
    for left, right in zip(one.whole(), two.whole(), strict=True):
        receiver.receive(left, source="a")
        receiver.receive(right, source="b")
    assert [(event.sender) for event in receiver.events_of(SenderHeard)] == [1, 2]
    assert receiver.received() == [0, 0]
    assert receiver.content(0, 1) == one.content
    assert receiver.content(0, 2) == two.content


def test_nacks_name_the_sender_of_the_missing_content() -> None:
    receiver = ReceiverHarness()
    one, two = MessageBuilder(pattern(LONG), node=1), MessageBuilder(pattern(LONG), node=2, instance=4)
    receiver.receive(*one.block(0, without=(1,)), *one.block(1))
    receiver.receive(*two.block(0, without=(2, 3)), *two.block(1))
    receiver.run_until(5 * GRTT)
    found = {
        nack.sender_id: (nack.instance_id, symbols(requested, 0, 0))
        for nack, requested in zip(receiver.nacks, receiver.requested(), strict=True)
    }
    assert found == {1: (1, [8]), 2: (4, [8, 9])}


def test_messages_with_the_receivers_own_node_id_are_ignored_and_reported() -> None:
    receiver = ReceiverHarness(node=1)
    receiver.receive(*MessageBuilder(pattern(800), node=1).whole())
    assert receiver.host.events == [NodeClash(1, "sender")]
    assert receiver.machine.counts()["data_received"] == 0
