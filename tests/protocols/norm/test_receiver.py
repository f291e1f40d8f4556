"""The NORM receiver: what it delivers, and what it gives up."""

import pytest

from experiments.contract.content import CheckedSink, FailingSink, pattern
from protocols.events import InfoReceived, ObjectOpened, SenderHeard, SenderReset
from protocols.machine import Offer, Sink
from protocols.norm.messages import EMPTY_OBJECT, FLAG_REPAIR, Flush
from protocols.norm.repair_requests import requested_repairs
from tests.protocols.norm.scenes import Listener, Voice, symbols

LONG = 2400
"""Bytes of three blocks."""
LATE = 100
"""A sequence number of a sender that began long ago."""


# -- content -----------------------------------------------------------------------------------------------------------


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
    assert isinstance(sink, CheckedSink)
    assert (bytes(sink.content), sink.info) == (b"", b"just a name")


@pytest.mark.parametrize("fec", [0, 5, 129])
def test_of_an_object_whose_flush_says_it_is_empty_only_the_information_is_asked_for(fec: int) -> None:
    listener, voice = Listener(), Voice(b"", info=b"just a name", fec=fec, parity=0)
    voice.info()
    listener.hear(Flush(voice.origin, 1, fec, 0, *EMPTY_OBJECT[fec]))
    listener.at_expiry()
    demand = requested_repairs(listener.nacks[0].requests, fec)
    assert (demand.infos, demand.objects) == (((0, 0),), ())
    voice.sequence = 2
    listener.hear(voice.info(flags=FLAG_REPAIR))
    assert listener.received() == [0]
    sink = listener.host.sinks[1, 0]
    assert isinstance(sink, CheckedSink)
    assert sink.info == b"just a name"


def test_lost_information_is_asked_for_and_completes_the_object() -> None:
    listener, voice = Listener(), Voice(pattern(LONG), info=b"name")
    voice.info()
    listener.hear(*voice.whole(), voice.flush())
    assert not listener.received()
    listener.at_expiry()
    assert listener.demands()[0].infos == ((0, 0),)
    assert not listener.demands()[0].symbols
    listener.hear(voice.info(flags=FLAG_REPAIR))
    assert listener.received() == [0]


def test_an_object_whose_every_message_was_lost_is_asked_for_whole() -> None:
    listener, voice = Listener(), Voice(pattern(800))
    listener.hear(*voice.whole(0))
    voice.whole(1)
    listener.hear(*voice.whole(2))
    listener.at_expiry()
    assert listener.demands()[0].objects == ((1, 1),)
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


# -- what is given up --------------------------------------------------------------------------------------------------


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
    assert listener.demands()[0].objects == ((4997, 4999),)
    assert listener.received() == [0, 5000]


def test_a_squelch_ends_what_comes_before_it() -> None:
    listener, voice = Listener(), Voice(pattern(LONG))
    listener.hear(voice.data(0, 0, 0), voice.data(0, 0, 3))
    listener.hear(voice.squelch(2))
    assert [object_id for object_id, reason in listener.aborted() if reason == "squelched"] == [0, 1]
    listener.until(2.0)
    assert listener.demands()[0].objects == ((2, 2),)


def test_a_squelch_names_holes() -> None:
    listener, voice = Listener(), Voice(pattern(LONG))
    listener.hear(voice.data(0, 0, 0), voice.data(0, 0, 3))
    listener.hear(voice.squelch(0, 2))
    assert listener.aborted() == [(2, "squelched")]
    listener.until(2.0)
    assert listener.demands()[0].objects == ((1, 1),)


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
        return None if offer.object_id == 1 else CheckedSink(offer.size)

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
    listener.host.accepting = lambda offer: FailingSink(offer.size, verb) if offer.object_id == 0 else CheckedSink(offer.size)
    listener.hear(*voice.whole(0), *voice.whole(1), voice.flush(1))
    listener.until(10.0)
    ((object_id, reason),) = listener.aborted()
    assert object_id == 0
    assert "no space left" in reason
    assert listener.received() == [1]
    assert not listener.nacks


def test_object_ids_go_round() -> None:
    listener, voice = Listener(), Voice(pattern(800), sequence=LATE)
    for object_id in (65534, 65535, 0, 1):
        listener.hear(*voice.block(0, object_id, without=(object_id % 8,) if object_id else tuple(range(8))))
    listener.until(0.5)
    (demand,) = listener.demands()
    assert [symbols(demand, object_id, 0) for object_id in (65534, 65535)] == [[8], [8]]
    assert demand.objects == ((0, 0),)
    listener.hear(*(voice.data(0, 9, object_id, FLAG_REPAIR) for object_id in (65534, 65535, 1)))
    listener.hear(*(voice.data(0, symbol, 0, FLAG_REPAIR) for symbol in range(8)))
    assert listener.received() == [65534, 65535, 1, 0]
