"""The NORM receiver: what it delivers, where it joins, what it gives up."""

from math import inf

import pytest

from protocols.events import InfoReceived, ObjectOpened, SenderHeard, SenderReset, SenderSilent
from protocols.machine import Offer, Sink
from protocols.norm.messages import FLAG_FILE, FLAG_INFO, FLAG_REPAIR, Eot, Flush
from tests.protocols.norm.scenes import GROUP, GRTT, Listener, Voice, symbols
from tests.support.content import FailingSink, MemorySink, pattern

LONG = 2400
"""Bytes of three blocks."""
LATE = 100
"""A sequence number of a sender that began long ago."""


def test_it_joins_the_group_and_says_nothing_unasked() -> None:
    listener = Listener()
    assert listener.host.groups == [GROUP]
    listener.until(1000.0)
    assert not listener.said
    assert listener.machine.deadline == inf


# -- content ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 99, 100, 101, 800, 801, 2350])
@pytest.mark.parametrize("info", [None, b"name"])
def test_an_object_without_losses_is_delivered_at_its_last_symbol(size: int, info: bytes | None) -> None:
    listener, voice = Listener(), Voice(pattern(size), info=info)
    if info is not None:
        listener.hear(voice.info())
    messages = voice.whole()
    listener.hear(*messages[:-1])
    assert not listener.received()
    listener.hear(messages[-1])
    assert listener.received() == [0]
    assert listener.content() == voice.content
    listener.hear(voice.flush(), voice.flush())
    listener.until(5.0)
    assert listener.received() == [0]
    assert not listener.said


def test_the_first_message_of_an_object_opens_it_and_information_is_told_at_once() -> None:
    listener, voice = Listener(), Voice(pattern(LONG), info=b"a name")
    listener.hear(voice.info())
    assert listener.told(SenderHeard) == [SenderHeard(1)]
    assert listener.told(ObjectOpened) == [ObjectOpened(1, 0, LONG)]
    assert listener.told(InfoReceived) == [InfoReceived(1, 0, b"a name")]
    assert listener.host.offers == [Offer(1, 0, LONG, True)]


def test_an_empty_object_is_its_information() -> None:
    listener, voice = Listener(), Voice(b"", info=b"just a name")
    listener.hear(voice.info())
    assert listener.received() == [0]
    sink = listener.host.sinks[1, 0]
    assert isinstance(sink, MemorySink)
    assert (bytes(sink.content), sink.info) == (b"", b"just a name")


def test_lost_information_is_asked_for_and_completes_the_object() -> None:
    listener, voice = Listener(), Voice(pattern(LONG), info=b"name")
    voice.info()
    listener.hear(*voice.whole(), voice.flush())
    assert not listener.received()
    listener.at_expiry()
    assert listener.demands()[0].infos == [(0, 0)]
    assert not listener.demands()[0].symbols
    listener.hear(voice.info(flags=FLAG_REPAIR))
    assert listener.received() == [0]


def test_an_object_whose_every_message_was_lost_is_asked_for_whole() -> None:
    listener, voice = Listener(), Voice(pattern(800))
    listener.hear(*voice.whole(0))
    voice.whole(1)
    listener.hear(*voice.whole(2))
    listener.at_expiry()
    assert listener.demands()[0].objects == [(1, 1)]
    repairs = [voice.data(0, symbol, 1, FLAG_REPAIR) for symbol in range(8)]
    listener.hear(*repairs)
    assert listener.received() == [0, 2, 1]
    assert listener.content(1) == voice.content


def test_parity_makes_up_for_lost_symbols() -> None:
    listener, voice = Listener(), Voice(pattern(LONG))
    listener.hear(*voice.block(0, without=(0, 4, 7)), *voice.block(1), *voice.block(2), voice.flush())
    listener.at_expiry()
    assert symbols(listener.demands()[0], 0, 0) == [8, 9, 10]
    listener.hear(*(voice.data(0, symbol, 0, FLAG_REPAIR) for symbol in (9, 10, 11)))
    assert listener.received() == [0]
    assert listener.content() == voice.content


def test_automatic_parity_repairs_without_a_request() -> None:
    listener, voice = Listener(), Voice(pattern(LONG))
    for block in range(3):
        listener.hear(*voice.block(block, without=(2, 5)), voice.data(block, 8), voice.data(block, 9))
    assert listener.received() == [0]
    assert listener.content() == voice.content
    assert not listener.said


def test_symbols_that_overtake_each_other_do_no_harm() -> None:
    listener, voice = Listener(), Voice(pattern(LONG))
    first = voice.data(0, 0)
    rest = voice.whole()[1:]
    listener.hear(first, *(rest[i ^ 1] for i in range(22)), rest[22])
    assert listener.received() == [0]
    assert listener.content() == voice.content


def test_repeated_messages_change_nothing() -> None:
    listener, voice = Listener(), Voice(pattern(LONG), info=b"name")
    twice = [message for message in (voice.info(), *voice.whole()) for _ in range(2)]
    listener.hear(*twice)
    assert listener.received() == [0]
    assert len(listener.told(InfoReceived)) == 1
    assert listener.machine.counts()["duplicates"] == 24


def test_an_object_sent_a_second_time_is_not_delivered_again() -> None:
    listener, voice = Listener(), Voice(pattern(LONG))
    listener.hear(*voice.whole(), *voice.whole(), voice.flush())
    listener.until(10.0)
    assert listener.received() == [0]
    assert not listener.nacks


# -- joining ---------------------------------------------------------------------------------------------------------------


def test_it_joins_at_the_beginning_of_an_object() -> None:
    listener, voice = Listener(), Voice(pattern(LONG), sequence=LATE)
    listener.hear(*voice.whole(17))
    assert listener.received() == [17]


def test_in_the_middle_of_an_object_it_waits_for_the_next() -> None:
    listener, voice = Listener(), Voice(pattern(LONG), sequence=LATE)
    listener.hear(*voice.whole(17)[8:], voice.flush(17))
    listener.until(5.0)
    listener.hear(*voice.whole(18), voice.flush(18))
    listener.until(30.0)
    assert listener.received() == [18]
    assert not listener.nacks
    assert not listener.aborted()


def test_later_in_the_first_block_it_joins_and_asks_for_the_start() -> None:
    listener, voice = Listener(), Voice(pattern(LONG), sequence=LATE)
    listener.hear(*voice.whole(17)[3:])
    listener.at_expiry()
    assert symbols(listener.demands()[0], 17, 0) == [8, 9, 10]


def test_it_joins_at_information() -> None:
    listener, voice = Listener(), Voice(pattern(LONG), info=b"name", sequence=LATE)
    listener.hear(voice.info(17))
    voice.block(0, 17)
    listener.hear(*voice.block(1, 17))
    listener.at_expiry()
    assert listener.demands()[0].blocks == [(17, 0, 0)]


def test_it_does_not_join_at_a_repair() -> None:
    listener, voice = Listener(), Voice(pattern(LONG), info=b"name", sequence=LATE)
    listener.hear(voice.info(16, FLAG_REPAIR), voice.data(0, 3, 16, FLAG_REPAIR), voice.flush(16))
    listener.until(5.0)
    assert not listener.host.offers
    assert not listener.nacks
    listener.hear(voice.info(17), *voice.whole(17))
    assert listener.received() == [17]


def test_what_lies_before_the_object_it_joined_at_is_of_no_interest() -> None:
    listener, voice = Listener(), Voice(pattern(800), sequence=LATE)
    listener.hear(*voice.whole(17))
    listener.hear(*(voice.data(0, symbol, 16, FLAG_REPAIR) for symbol in range(8)))
    listener.until(5.0)
    assert listener.received() == [17]
    assert not listener.nacks


def test_with_a_sender_that_has_just_begun_it_joins_at_the_very_first_object() -> None:
    listener, voice = Listener(), Voice(pattern(800))
    voice.whole(0)
    voice.block(0, 1)
    listener.hear(voice.flush(1))
    listener.at_expiry()
    assert listener.demands()[0].objects == [(0, 0), (1, 1)]


@pytest.mark.parametrize("sequence", [LATE, 0x10000 - 3])
def test_a_flush_of_a_sender_that_began_long_ago_is_no_reason_to_join(sequence: int) -> None:
    listener, voice = Listener(), Voice(pattern(800), sequence=sequence)
    listener.hear(voice.flush(0))
    listener.until(5.0)
    assert not listener.nacks


# -- what is given up ---------------------------------------------------------------------------------------------------------


def test_a_restarted_sender_ends_what_was_unfinished() -> None:
    listener, voice = Listener(), Voice(pattern(LONG))
    listener.hear(*voice.block(0))
    again = Voice(pattern(LONG, seed=5), instance=2)
    listener.hear(*again.whole())
    assert listener.aborted() == [(0, "the sender restarted")]
    assert listener.told(SenderReset) == [SenderReset(1)]
    assert listener.told(SenderHeard) == [SenderHeard(1)]
    assert listener.received() == [0]
    assert listener.content() == again.content


def test_a_sender_that_restarts_after_everything_arrived_loses_nothing() -> None:
    listener, voice = Listener(), Voice(pattern(800))
    listener.hear(*voice.whole())
    listener.hear(*Voice(pattern(800), instance=2).whole())
    assert listener.received() == [0, 0]
    assert not listener.aborted()


def test_no_more_objects_are_pending_than_the_window_holds() -> None:
    listener, voice = Listener(window=4), Voice(pattern(800))
    for object_id in range(8):
        listener.hear(*voice.block(0, object_id, without=(3,)))
    assert listener.aborted() == [(object_id, "outside the window") for object_id in range(4)]
    listener.hear(*(voice.data(0, 9, object_id, FLAG_REPAIR) for object_id in range(8)))
    assert listener.received() == [4, 5, 6, 7]


def test_after_a_long_silence_no_more_than_a_window_is_asked_for() -> None:
    listener, voice = Listener(window=4), Voice(pattern(800))
    listener.hear(*voice.whole(0))
    listener.hear(*voice.whole(5000))
    listener.at_expiry()
    assert listener.demands()[0].objects == [(4997, 4999)]
    assert listener.received() == [0, 5000]


def test_a_squelch_ends_what_comes_before_it() -> None:
    listener, voice = Listener(), Voice(pattern(LONG))
    listener.hear(voice.data(0, 0, 0), voice.data(0, 0, 3))
    listener.hear(voice.squelch(2))
    assert [object_id for object_id, reason in listener.aborted() if reason == "squelched"] == [0, 1]
    listener.until(2.0)
    assert listener.demands()[0].objects == [(2, 2)]


def test_a_squelch_names_holes() -> None:
    listener, voice = Listener(), Voice(pattern(LONG))
    listener.hear(voice.data(0, 0, 0), voice.data(0, 0, 3))
    listener.hear(voice.squelch(0, 2))
    assert listener.aborted() == [(2, "squelched")]
    listener.until(2.0)
    assert listener.demands()[0].objects == [(1, 1)]


def test_a_squelch_of_what_is_complete_or_unknown_changes_nothing() -> None:
    listener, voice = Listener(), Voice(pattern(800))
    listener.hear(*voice.whole(0), voice.squelch(0, 7, 9))
    assert not listener.aborted()
    fresh = Listener()
    fresh.hear(Voice(pattern(800), sequence=LATE).squelch(20, 21))
    assert not fresh.aborted()


def test_an_unwanted_object_is_not_asked_for() -> None:
    listener, voice = Listener(), Voice(pattern(LONG))

    def accept(offer: Offer) -> Sink | None:
        return None if offer.object_id == 1 else MemorySink(offer.size)

    listener.host.accepting = accept
    listener.hear(*voice.whole(0), *voice.whole(1)[:5], voice.whole(1)[9], *voice.whole(2), voice.flush(2))
    listener.until(10.0)
    assert listener.received() == [0, 2]
    assert not listener.nacks
    assert not listener.aborted()
    assert len(listener.host.offers) == 3, "and not offered twice"


@pytest.mark.parametrize("verb", ["write", "commit"])
def test_a_failing_sink_ends_its_object_with_the_reason(verb: str) -> None:
    listener, voice = Listener(), Voice(pattern(800))
    listener.host.accepting = lambda offer: FailingSink(offer.size, verb) if offer.object_id == 0 else MemorySink(offer.size)
    listener.hear(*voice.whole(0), *voice.whole(1), voice.flush(1))
    listener.until(10.0)
    ((object_id, reason),) = listener.aborted()
    assert object_id == 0
    assert "no space left" in reason
    assert listener.received() == [1]
    assert not listener.nacks


# -- several senders -----------------------------------------------------------------------------------------------------------


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


def test_each_sender_is_asked_for_what_it_sent() -> None:
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


def test_messages_with_the_own_node_id_are_not_heard() -> None:
    listener = Listener(node=1)
    listener.hear(*Voice(pattern(800), node=1).whole())
    assert not listener.host.events
    assert listener.machine.counts()["data_received"] == 0


# -- activity ------------------------------------------------------------------------------------------------------------------


def test_after_twenty_silent_periods_a_sender_is_reported_silent_once() -> None:
    listener, voice = Listener(), Voice(pattern(800))
    listener.hear(*voice.whole())
    listener.until(19.9)
    assert not listener.told(SenderSilent)
    listener.until(1000.0)
    assert listener.told(SenderSilent) == [SenderSilent(1)]
    assert listener.machine.deadline == inf


def test_the_period_grows_with_round_trip_and_robustness() -> None:
    listener, voice = Listener(robust=20), Voice(pattern(800), grtt=0.5)
    listener.hear(*voice.whole())
    listener.until(20 * 2 * 20 * 0.5 - 1.0)
    assert not listener.told(SenderSilent)
    listener.until(1000.0)
    assert listener.told(SenderSilent)


def test_any_message_of_the_sender_is_a_sign_of_life() -> None:
    listener, voice = Listener(), Voice(pattern(800))
    listener.hear(*voice.whole())
    for i in range(1, 10):
        listener.until(10.0 * i)
        listener.hear(voice.flush())
    assert not listener.told(SenderSilent)


def test_a_sender_that_speaks_again_after_silence_can_fall_silent_again() -> None:
    listener, voice = Listener(), Voice(pattern(800))
    listener.hear(*voice.whole())
    listener.until(100.0)
    listener.hear(*voice.whole(1))
    listener.until(200.0)
    assert listener.received() == [0, 1]
    assert listener.told(SenderSilent) == [SenderSilent(1)] * 2


def test_a_silent_sender_is_asked_again_and_again_for_what_is_missing() -> None:
    listener, voice = Listener(), Voice(pattern(LONG))
    listener.hear(*voice.block(0, without=(1,)))
    listener.until(15.5)
    assert 10 <= len(listener.nacks) <= 20
    assert all(symbols(demand, 0, 0) == [8] for demand in listener.demands())
    listener.until(100.0)
    assert len(listener.nacks) <= 21, "and not for ever"


# -- counters ----------------------------------------------------------------------------------------------------------------


def test_loss_is_counted_by_sequence_numbers_from_the_first_message_on() -> None:
    listener, voice = Listener(), Voice(pattern(LONG), sequence=0xFFFA)
    messages = voice.whole()
    listener.hear(*messages[:4], *messages[7:])
    counts = listener.machine.counts()
    assert (counts["data_received"], counts["data_lost"]) == (21, 3)


def test_a_message_that_was_only_late_is_not_lost() -> None:
    listener, voice = Listener(), Voice(pattern(LONG))
    messages = voice.whole()
    listener.hear(*messages[:4], *messages[5:], messages[4])
    counts = listener.machine.counts()
    assert (counts["data_received"], counts["data_lost"]) == (24, 0)


# -- messages without sense -----------------------------------------------------------------------------------------------------


def crooked(voice: Voice, **changes: object) -> object:
    message = voice.data(1, 2)
    for name, value in changes.items():
        setattr(message, name, value)
    return message


@pytest.mark.parametrize(
    "changes",
    [
        {"block": 3},
        {"block": 16_000_000},
        {"symbol": 12},
        {"symbol": 255},
        {"payload": b"short", "length": 5},
        {"payload": bytes(101), "length": 101},
        {"payload": b"", "length": 0},
        {"fti": Voice(pattern(5000)).fti},
        {"fti": Voice(pattern(LONG), segment=50).fti},
    ],
    ids=str,
)
def test_symbols_that_do_not_fit_their_object_are_ignored_and_counted(changes: dict[str, object]) -> None:
    listener, voice = Listener(), Voice(pattern(LONG))
    listener.hear(*voice.block(0))
    listener.hear(crooked(voice, **changes))  # type: ignore[arg-type]
    assert listener.machine.counts()["ignored"] == 1
    listener.hear(*voice.block(1), *voice.block(2), voice.flush())
    listener.until(5.0)
    assert listener.received() == [0]
    assert listener.content() == voice.content


def test_content_of_which_the_coding_is_unknown_is_ignored() -> None:
    listener, voice = Listener(), Voice(pattern(800))
    listener.hear(crooked(voice, fti=None, block=0))  # type: ignore[arg-type]
    assert listener.machine.counts()["ignored"] == 1
    assert not listener.host.offers


def test_coding_told_by_information_only_is_enough() -> None:
    listener, voice = Listener(), Voice(pattern(LONG), info=b"name")
    listener.hear(voice.info())
    for message in voice.whole():
        message.fti = None
        listener.hear(message)
    assert listener.received() == [0]


@pytest.mark.parametrize(("block", "symbol"), [(99, 3), (0xFFFFFF, 0xFF), (0, 200)])
def test_a_flush_beyond_the_object_does_no_harm(block: int, symbol: int) -> None:
    listener, voice = Listener(), Voice(pattern(LONG))
    listener.hear(*voice.block(0))
    listener.hear(Flush(voice.origin, voice.sequence, 5, 0, block, symbol))
    voice.sequence += 1
    listener.hear(*voice.block(1), *voice.block(2))
    listener.until(5.0)
    listener.hear(*(voice.data(b, s, 0, FLAG_REPAIR) for b in (1, 2) for s in range(8)))
    assert listener.received() == [0]
    assert listener.content() == voice.content


def test_streams_and_other_commands_are_left_alone() -> None:
    listener, voice = Listener(), Voice(pattern(800))
    stream = voice.data(0, 0)
    stream.flags = 32
    listener.hear(stream, Eot(voice.origin, 1))
    listener.until(5.0)
    assert not listener.host.offers
    assert not listener.nacks


def test_an_object_is_a_file_only_when_its_flag_says_so() -> None:
    listener, voice = Listener(), Voice(pattern(800))
    message = voice.data(0, 0)
    message.flags &= ~(FLAG_FILE | FLAG_INFO)
    listener.hear(message)
    assert listener.host.offers == [Offer(1, 0, 800, False)]
