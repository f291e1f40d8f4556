"""Forged messages of the Distributor: what they make a subscriber keep and do is bounded."""

import random
from dataclasses import replace
from typing import Any

import pytest

import protocols.distributor.publisher_state
from experiments.contract.recorder import Recorder
from protocols.distributor import DistributorConfig
from protocols.distributor.events import PublisherGone, QueueOverflowed, SegmentsLost, UpdatesReceived
from protocols.distributor.messages import (
    FIRST,
    LAST,
    MIDDLE,
    Batch,
    Fragment,
    Heartbeat,
    Nak,
    Request,
    Source,
    SubjectUpdates,
)
from protocols.distributor.publisher_state import MOST_PARTS
from protocols.distributor.requests import MOST_RANGES, Requests
from protocols.distributor.roles import MOST_LATEST, MessageSubscriber
from protocols.distributor.serial import on_wire
from protocols.distributor.subscriber import DistributorSubscriber
from protocols.distributor.wire import DistributorCodec
from protocols.machine import Message
from protocols.message_wire import write_head
from protocols.messaging import MessagesLost, Publication, Subscription
from protocols.rng import Rng
from protocols.roles import RoleContext
from tests.protocols.distributor.scene import GROUP, Scene
from tests.protocols.norm.test_hostile import lines

FORGED, STRANGER = Source(77, 78, 79, 80), Source(5, 6, 7, 8)


class Target:
    """A subscriber that has heard the first segment of a forged publisher."""

    def __init__(self, **settings: Any) -> None:
        self.ports = Recorder()
        self.machine = DistributorSubscriber(self.ports, DistributorConfig(**settings), Scene.identity(1), GROUP)
        self.machine.start(0.0)
        self.machine.subscribe(Subscription(0, "/..."), 0.0)
        self.give(segment(1))

    def give(self, message: Message, now: float = 0.0) -> None:
        codec = DistributorCodec()
        self.machine.receive(codec.decode(codec.encode(message)), "forger", GROUP, now)

    @property
    def gaps(self) -> int:
        return len(self.state.requests)

    @property
    def state(self) -> Any:
        (state,) = self.machine._receptions.values()
        return state


def segment(number: int) -> Batch:
    return Batch(FORGED, number, [SubjectUpdates("/t", [b""])], 1, 40)


def test_gaps_before_segments_are_bounded_and_repairs_make_room_for_more() -> None:
    target = Target()
    for number in range(3, 4 * MOST_RANGES, 2):
        target.give(segment(number))
    assert target.gaps == MOST_RANGES
    assert target.machine.held()["receive queue"][0] == target.state.highest // 2 * 40
    target.give(Heartbeat(FORGED, 0, 0, 0, 1 << 30))
    assert target.gaps == MOST_RANGES
    for number in range(2, target.state.highest, 2):
        target.give(replace(segment(number), is_retransmission=True))
    assert target.gaps == target.machine.waiting == 0
    target.give(Heartbeat(FORGED, 0, 0, 0, target.state.highest + 5))
    assert target.gaps == 1


def test_heartbeats_and_segments_within_a_gap_make_no_more_ranges_than_are_allowed() -> None:
    target = Target()
    for number in range(2, 3 * MOST_RANGES):
        target.give(Heartbeat(FORGED, 0, 0, 0, number))
    assert target.gaps == MOST_RANGES
    target = Target()
    target.give(Heartbeat(FORGED, 0, 0, 0, 1 << 20))
    for number in range(3, 8 * MOST_RANGES, 2):
        target.give(segment(number))
    assert target.gaps <= MOST_RANGES + 1
    overflowed = target.machine.counts()["overflowed"]
    assert overflowed > 0
    # What leaves no more ranges is taken.
    target.give(segment(4))
    assert target.machine.counts()["overflowed"] == overflowed


def test_refused_numbers_are_kept_in_few_ranges() -> None:
    target = Target()
    target.give(Heartbeat(FORGED, 0, 0, 0, 1 << 20))
    for first in range(10):
        target.give(Nak(FORGED, 0, 0, tuple(range(3 + 30_000 * first, 3 + 30_000 * (first + 1), 2))))
    assert len(target.state._skipped) == MOST_RANGES
    assert target.gaps <= MOST_RANGES + 1
    assert lines(lambda: target.give(segment(1 << 21))) < 4 * MOST_RANGES


@pytest.mark.parametrize("high", [3, 8 * MOST_RANGES])
def test_a_request_costs_little_whatever_is_missing(high: int) -> None:
    target = Target()
    for number in range(3, 4 * MOST_RANGES, 2):
        target.give(segment(number))
    request = Request(STRANGER, 0, FORGED.sender_id, FORGED.start, 2, high, "", "")
    assert lines(lambda: target.give(request)) < 25 * MOST_RANGES


def test_what_is_cut_from_the_missing_numbers_is_what_was_there() -> None:
    rng = random.Random(1)
    requests, missing = Requests(DistributorConfig(), Rng(1)), set[int]()
    number = 0
    for _ in range(60):
        number += rng.randrange(2, 6)
        last = number + rng.randrange(0, 9)
        requests.miss(number, last, 0.0)
        missing |= set(range(number, last + 1))
        number = last
    for _ in range(300):
        low = rng.randrange(0, number)
        high = low + rng.choice([0, 0, 1, 5, 50])
        kind = rng.randrange(3)
        if kind == 0:
            assert {each for gap in requests.refused(low, high) for each in range(gap[0], gap[1] + 1)} == missing & set(
                range(low, high + 1)
            )
            missing -= set(range(low, high + 1))
        elif kind == 1:
            requests.heard(low, high, rng.random())
        else:
            ranges = len(requests)
            splits = requests.splits(low)
            requests.served(low)
            assert splits == (len(requests) > ranges)
            missing -= {low}
        held = [each for item in requests._missing for each in range(item.low, item.high + 1)]
        assert held == sorted(missing)


def test_waiting_segments_are_bounded_however_short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocols.distributor.publisher_state, "MOST_WAITING", 100)
    target = Target()
    for number in range(3, 1000):
        target.give(segment(number))
    assert len(target.state._waiting) == target.machine.waiting == 100
    target.give(segment(2))
    assert target.machine.waiting == 0


def test_short_parts_of_a_large_update_take_no_more_memory_than_a_multiple_of_their_bytes() -> None:
    target, count = Target(), 5 * MOST_PARTS
    target.give(Fragment(FORGED, 2, FIRST, b"0", "/t", count))
    for number in range(1, count):
        target.give(Fragment(FORGED, 2 + number, MIDDLE if number < count - 1 else LAST, b"%d" % (number % 10)))
        assert target.state._large is None or len(target.state._large.parts) <= MOST_PARTS
    (update,) = [event for event in target.ports.events if isinstance(event, UpdatesReceived)][1:]
    assert update.contents == ((b"0123456789" * count)[:count],)


def role() -> MessageSubscriber:
    machine = MessageSubscriber(Recorder(), RoleContext(DistributorConfig(), 3, GROUP))
    machine.subscribe(Subscription(0, "/..."), 0.0)
    return machine


def update(number: int, publisher: int = 7, start: int = 1) -> UpdatesReceived:
    message = Publication(publisher, number, "/t", 0, b"")
    return UpdatesReceived(Source(7, 7, start), "/t", (write_head(message),), (0,))


def lost(machine: MessageSubscriber, *events: Any) -> list[MessagesLost]:
    return [told for event in events for told in machine.heard(event, 0.0) if isinstance(told, MessagesLost)]


def test_after_a_restart_of_a_publisher_no_negative_number_of_messages_is_lost() -> None:
    machine = role()
    again = Source(7, 7, 2)
    told = lost(machine, update(9), SegmentsLost(Source(7, 7, 1), 10, 3, ""), update(12))
    assert told == [MessagesLost(7, 2, 10, 11)]
    told = lost(machine, SegmentsLost(again, 1, 4, ""), update(2, start=2), SegmentsLost(again, 7, 1, ""), update(4, start=2))
    assert told == [MessagesLost(7, 4), MessagesLost(7, 1, 3, 3)]


def test_lost_segments_that_nothing_follows_are_reported_at_once_and_by_number_with_the_next_message() -> None:
    machine, source = role(), Source(7, 7, 1)
    told = lost(machine, update(9), SegmentsLost(source, 10, 3, "", is_last=True), PublisherGone(source))
    assert told == [MessagesLost(7, 3)]
    told = lost(machine, update(9), SegmentsLost(source, 10, 3, "", is_last=True), update(12))
    assert told == [MessagesLost(7, 3), MessagesLost(7, 2, 10, 11)]


def test_what_a_publisher_that_was_gone_had_lost_is_reported_by_number_with_its_next_message() -> None:
    machine, source = role(), Source(7, 7, 1)
    told = lost(machine, update(9), SegmentsLost(source, 10, 3, "", is_last=False), PublisherGone(source), update(12))
    assert told == [MessagesLost(7, 3), MessagesLost(7, 2, 10, 11)]


def test_publishers_that_were_gone_fill_no_table() -> None:
    machine = role()
    for start in range(MOST_LATEST + 10):
        source = Source(7, 7, start)
        assert lost(machine, SegmentsLost(source, 1, 1, ""), PublisherGone(source)) == [MessagesLost(7, 1)]
    assert len(machine._lost) == MOST_LATEST


def test_publishers_that_messages_name_fill_no_table() -> None:
    machine = role()
    for publisher in range(2 * MOST_LATEST):
        machine.heard(update(0, publisher), 0.0)
    assert len(machine._latest) == MOST_LATEST


def test_requests_of_others_make_no_more_ranges_of_what_is_missing() -> None:
    target = Target()
    target.give(segment(100_000))
    for number in range(3, 4 * MOST_RANGES, 2):
        target.give(Request(STRANGER, 5, FORGED.sender_id, FORGED.start, number, number, "h", "a"))
    assert MOST_RANGES <= target.gaps <= MOST_RANGES + 2
    target.give(Request(STRANGER, 5, FORGED.sender_id, FORGED.start, 2, 99_999, "h", "a"))
    assert target.gaps <= MOST_RANGES + 2


@pytest.mark.parametrize("number", [-1_000_000, -2, (1 << 31) - 2])
def test_what_is_missing_of_a_publisher_that_is_gone_is_reported_whatever_its_numbers_are(number: int) -> None:
    target, source = Target(heartbeats_lost=0), STRANGER
    for seqno in (number, on_wire(number + 2)):
        target.give(Batch(source, seqno, [SubjectUpdates("/t", [str(seqno).encode()])], 1, 50))
    while target.machine.deadline < 100.0:
        target.machine.wake(target.machine.deadline)
    own = [event for event in target.ports.events if getattr(event, "source", None) == source]
    (lost,) = [event for event in own if isinstance(event, SegmentsLost)]
    assert (lost.first, lost.count) == (number + 1, 1)
    assert [event.contents for event in own if isinstance(event, UpdatesReceived)][1:] == [(str(on_wire(number + 2)).encode(),)]
    assert any(isinstance(event, PublisherGone) for event in own)
    assert target.machine.kept == target.machine.waiting == 0


def test_a_segment_that_comes_after_it_was_given_up_is_no_overflow() -> None:
    target = Target()
    target.give(segment(5))
    target.give(Nak(FORGED, 0, 0, (3,)))
    target.give(replace(segment(3), is_retransmission=True))
    assert not [event for event in target.ports.events if isinstance(event, QueueOverflowed)]
    assert (target.machine.counts()["overflowed"], target.machine.counts()["duplicates"]) == (0, 1)
