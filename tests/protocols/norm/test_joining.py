"""A NORM receiver's start of reception, its separation of senders, and its inactivity timeout."""

from math import inf

import pytest

from experiments.contract.content import pattern
from protocols.events import SenderHeard, SenderSilent
from protocols.norm.messages import FLAG_REPAIR
from protocols.norm.repair_requests import requested_repairs
from tests.protocols.norm.scenes import GROUP, GRTT, Listener, Voice, symbols

LONG = 2400
"""Bytes of three blocks."""
LATE = 100
"""A sequence number of a sender that began long ago."""


def test_a_receiver_joins_the_group_and_sends_nothing_unsolicited() -> None:
    listener = Listener()
    assert listener.host.groups == [GROUP]
    listener.until(1000.0)
    assert not listener.said
    assert listener.machine.deadline == inf


# -- joining -----------------------------------------------------------------------------------------------------------


def test_a_receiver_synchronises_at_the_start_of_an_object() -> None:
    listener, voice = Listener(), Voice(pattern(LONG), sequence=LATE)
    listener.hear(*voice.whole(17))
    assert listener.received() == [17]


def test_in_the_middle_of_an_object_a_receiver_waits_for_the_next() -> None:
    listener, voice = Listener(), Voice(pattern(LONG), sequence=LATE)
    listener.hear(*voice.whole(17)[8:], voice.flush(17))
    listener.until(5.0)
    listener.hear(*voice.whole(18), voice.flush(18))
    listener.until(30.0)
    assert listener.received() == [18]
    assert not listener.nacks
    assert not listener.aborted()


def test_later_in_the_first_block_a_receiver_synchronises_and_requests_the_start() -> None:
    listener, voice = Listener(), Voice(pattern(LONG), sequence=LATE)
    listener.hear(*voice.whole(17)[3:])
    listener.at_expiry()
    assert symbols(listener.demands()[0], 17, 0) == [8, 9, 10]


def test_a_receiver_synchronises_at_norm_info() -> None:
    listener, voice = Listener(), Voice(pattern(LONG), info=b"name", sequence=LATE)
    listener.hear(voice.info(17))
    voice.block(0, 17)
    listener.hear(*voice.block(1, 17))
    listener.at_expiry()
    assert listener.demands()[0].blocks == ((17, 0, 0),)


def test_a_receiver_does_not_synchronise_at_a_repair() -> None:
    listener, voice = Listener(), Voice(pattern(LONG), info=b"name", sequence=LATE)
    listener.hear(voice.info(16, FLAG_REPAIR), voice.data(0, 3, 16, FLAG_REPAIR), voice.flush(16))
    listener.until(5.0)
    assert not listener.host.offers
    assert not listener.nacks
    listener.hear(voice.info(17), *voice.whole(17))
    assert listener.received() == [17]


def test_objects_before_the_first_synchronised_one_are_ignored() -> None:
    listener, voice = Listener(), Voice(pattern(800), sequence=LATE)
    listener.hear(*voice.whole(17))
    listener.hear(*(voice.data(0, symbol, 16, FLAG_REPAIR) for symbol in range(8)))
    listener.until(5.0)
    assert listener.received() == [17]
    assert not listener.nacks


def test_with_a_sender_that_just_started_a_receiver_synchronises_at_the_first_object() -> None:
    listener, voice = Listener(), Voice(pattern(800))
    voice.whole(0)
    voice.block(0, 1)
    listener.hear(voice.flush(1))
    listener.at_expiry()
    assert listener.demands()[0].objects == ((0, 0), (1, 1))


@pytest.mark.parametrize(("fec", "parity"), [(0, 0), (5, 4), (129, 4)])
def test_a_request_before_any_content_uses_the_senders_fec_id(fec: int, parity: int) -> None:
    listener, voice = Listener(), Voice(pattern(800), fec=fec, parity=parity)
    voice.whole(0)
    listener.hear(voice.flush(0))
    listener.at_expiry()
    assert requested_repairs(listener.nacks[0].requests, fec).objects == ((0, 0),)


@pytest.mark.parametrize("sequence", [LATE, 0x10000 - 3])
def test_a_flush_of_a_sender_that_started_long_ago_does_not_synchronise(sequence: int) -> None:
    listener, voice = Listener(), Voice(pattern(800), sequence=sequence)
    listener.hear(voice.flush(1))
    listener.until(5.0)
    assert not listener.nacks


@pytest.mark.parametrize("sequence", [LATE, 0x10000 - 3])
def test_a_first_object_of_one_block_is_requested_if_only_its_flush_arrived(sequence: int) -> None:
    listener, voice = Listener(), Voice(pattern(800), sequence=sequence)
    listener.hear(voice.flush(0))
    listener.until(5.0)
    assert listener.nacks


# -- activity ----------------------------------------------------------------------------------------------------------


def test_after_twenty_inactive_periods_a_sender_is_reported_silent_once() -> None:
    listener, voice = Listener(), Voice(pattern(800))
    listener.hear(*voice.whole())
    listener.until(19.9)
    assert not listener.told(SenderSilent)
    listener.until(1000.0)
    assert listener.told(SenderSilent) == [SenderSilent(1)]
    assert listener.machine.deadline == inf


def test_the_inactivity_period_grows_with_grtt_and_robustness() -> None:
    listener, voice = Listener(robust=20), Voice(pattern(800), grtt=0.5)
    listener.hear(*voice.whole())
    listener.until(20 * 2 * 20 * 0.5 - 1.0)
    assert not listener.told(SenderSilent)
    listener.until(1000.0)
    assert listener.told(SenderSilent)


def test_any_message_of_the_sender_resets_the_inactivity_timer() -> None:
    listener, voice = Listener(), Voice(pattern(800))
    listener.hear(*voice.whole())
    for i in range(1, 10):
        listener.until(10.0 * i)
        listener.hear(voice.flush())
    assert not listener.told(SenderSilent)


def test_a_sender_that_resumes_can_be_reported_silent_again() -> None:
    listener, voice = Listener(), Voice(pattern(800))
    listener.hear(*voice.whole())
    listener.until(100.0)
    listener.hear(*voice.whole(1))
    listener.until(200.0)
    assert listener.received() == [0, 1]
    assert listener.told(SenderSilent) == [SenderSilent(1)] * 2


def test_nacks_to_a_silent_sender_are_repeated_until_it_is_reported() -> None:
    listener, voice = Listener(), Voice(pattern(LONG))
    listener.hear(*voice.block(0, without=(1,)))
    listener.until(15.5)
    assert 10 <= len(listener.nacks) <= 20
    assert all(symbols(demand, 0, 0) == [8] for demand in listener.demands())
    listener.until(100.0)
    assert len(listener.nacks) <= 21, "and not for ever"


# -- several senders ---------------------------------------------------------------------------------------------------


def test_senders_are_kept_apart() -> None:
    listener = Listener()
    one, two = Voice(pattern(LONG), node=1), Voice(pattern(LONG, seed=3), node=2, instance=4)
    for left, right in zip(one.whole(), two.whole(), strict=True):
        listener.hear(left, source="a")
        listener.hear(right, source="b")
    assert [(event.sender) for event in listener.told(SenderHeard)] == [1, 2]
    assert listener.received() == [0, 0]
    assert listener.content(0, 1) == one.content
    assert listener.content(0, 2) == two.content


def test_nacks_name_the_sender_of_the_missing_content() -> None:
    listener = Listener()
    one, two = Voice(pattern(LONG), node=1), Voice(pattern(LONG), node=2, instance=4)
    listener.hear(*one.block(0, without=(1,)), *one.block(1))
    listener.hear(*two.block(0, without=(2, 3)), *two.block(1))
    listener.until(5 * GRTT)
    found = {
        nack.sender_id: (nack.instance_id, symbols(demand, 0, 0))
        for nack, demand in zip(listener.nacks, listener.demands(), strict=True)
    }
    assert found == {1: (1, [8]), 2: (4, [8, 9])}


def test_messages_with_the_receivers_own_node_id_are_ignored() -> None:
    listener = Listener(node=1)
    listener.hear(*Voice(pattern(800), node=1).whole())
    assert not listener.host.events
    assert listener.machine.counts()["data_received"] == 0
