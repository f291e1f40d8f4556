"""The NACK process of a receiver: when it asks, when it leaves it to others, how long it waits after that."""

from math import inf
from typing import Any

import pytest

from experiments.contract.content import pattern
from protocols.norm.messages import FLAG_REPAIR, Nack, Request
from tests.protocols.norm.scenes import GRTT, Listener, Voice, items, symbols

FACTOR = 4
HOLDOFF = (FACTOR + 2) * GRTT
BLOCKS = 8


def scene(seed: int = 1, **settings: Any) -> tuple[Listener, Voice]:
    """A receiver that lost symbol 1 of block 0 and has noticed it at time 0."""
    listener, voice = Listener(seed=seed), Voice(pattern(800 * BLOCKS), **settings)
    listener.hear(*voice.block(0, without=(1,)), voice.data(1, 0))
    return listener, voice


def others_ask(listener: Listener, *requests: Request, sender: int = 1, instance: int = 1, now: float | None = None) -> None:
    """The NACK of another receiver."""
    listener.hear(Nack(77, 0, sender, instance, 0, 0, requests), source="other", now=now)


def finish(listener: Listener, voice: Voice, block: int = 1) -> None:
    """The rest of a block comes whole, and the first symbol of the next."""
    listener.hear(*(voice.data(block, symbol) for symbol in range(1, 8)), voice.data(block + 1, 0))


# -- when it asks ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_it_asks_once_within_the_back_off_after_the_block_is_over(seed: int) -> None:
    listener, _ = scene(seed)
    listener.until(FACTOR * GRTT)
    ((when, _),) = listener.said
    assert 0.0 < when <= FACTOR * GRTT
    assert symbols(listener.demands()[0], 0, 0) == [8]


def test_different_receivers_wait_differently_and_the_same_equally() -> None:
    assert scene(1)[0].machine.deadline == scene(1)[0].machine.deadline
    assert len({scene(seed)[0].machine.deadline for seed in range(5)}) == 5


def test_a_loss_in_a_block_under_way_is_not_asked_for_when_parity_can_repair_it() -> None:
    listener, voice = Listener(), Voice(pattern(800 * BLOCKS))
    listener.hear(*voice.block(0, without=(1,)))
    assert listener.machine.deadline >= 1.0
    listener.hear(voice.data(1, 0))
    assert listener.machine.deadline <= FACTOR * GRTT


def test_the_request_covers_what_went_missing_during_the_back_off() -> None:
    listener, voice = scene()
    listener.hear(*voice.block(1, without=(0, 3, 4)), voice.data(2, 0))
    listener.at_expiry()
    assert symbols(listener.demands()[0], 0, 0) == [8]
    assert symbols(listener.demands()[0], 0, 1) == [8, 9]


def test_the_last_block_is_asked_for_at_the_flush() -> None:
    listener, voice = Listener(), Voice(pattern(800))
    listener.hear(*voice.block(0, without=(2, 7)))
    assert listener.machine.deadline >= 1.0
    listener.hear(voice.flush())
    listener.at_expiry()
    assert symbols(listener.demands()[0], 0, 0) == [8, 9]


def test_without_back_off_it_asks_at_once() -> None:
    listener, _ = scene(backoff=0)
    assert [when for when, _ in listener.said] == [0.0]


def test_what_is_repaired_in_time_is_not_asked_for() -> None:
    listener, voice = scene()
    listener.hear(voice.data(0, 1, 0, FLAG_REPAIR))
    assert listener.machine.deadline >= 1.0
    finish(listener, voice)
    listener.until(0.9)
    assert not listener.nacks
    assert listener.machine.counts()["nacks_suppressed"] == 0


def test_the_sender_and_its_instance_are_named() -> None:
    listener, _ = scene(node=5, instance=6)
    listener.at_expiry()
    (nack,) = listener.nacks
    assert (nack.source_id, nack.sequence, nack.sender_id, nack.instance_id) == (9, 0, 5, 6)
    assert (nack.response_sec, nack.response_usec) == (0, 0), "no probe was heard"


def test_the_timing_advertised_last_counts() -> None:
    listener, voice = Listener(), Voice(pattern(800 * BLOCKS))
    listener.hear(*voice.block(0, without=(1,)))
    voice.retime(backoff=0)
    listener.hear(voice.data(1, 0))
    assert len(listener.nacks) == 1


# -- suppression -------------------------------------------------------------------------------------------------------


def test_a_request_of_others_for_as_much_keeps_it_silent() -> None:
    listener, _ = scene()
    others_ask(listener, items((0, 0, 8)))
    assert listener.machine.deadline >= 1.0, "there is nothing to wait for"
    listener.until(0.9)
    assert not listener.nacks
    assert listener.machine.counts()["nacks_suppressed"] == 1


def test_several_requests_of_others_together_keep_it_silent() -> None:
    listener, voice = scene()
    listener.hear(*voice.block(1, without=(0, 3)), voice.data(2, 0))
    others_ask(listener, items((0, 0, 8)))
    others_ask(listener, items((0, 1, 8)))
    listener.until(0.9)
    assert not listener.nacks
    assert listener.machine.counts()["nacks_suppressed"] == 1


@pytest.mark.parametrize(
    ("sender", "instance", "request_"),
    [(2, 1, items((0, 0, 8))), (1, 2, items((0, 0, 8))), (1, 1, items((0, 1, 8))), (1, 1, items((1, 0, 8)))],
    ids=["other-sender", "other-instance", "other-block", "other-object"],
)
def test_requests_that_bring_nothing_do_not(sender: int, instance: int, request_: Request) -> None:
    listener, _ = scene()
    others_ask(listener, request_, sender=sender, instance=instance)
    listener.until(0.9)
    assert len(listener.nacks) == 1


def test_a_request_for_too_little_does_not_keep_it_silent() -> None:
    listener, voice = scene()
    listener.hear(*voice.block(1, without=(0, 3, 4)), voice.data(2, 0))
    others_ask(listener, items((0, 0, 8), (0, 1, 8)))
    listener.until(0.9)
    assert symbols(listener.demands()[0], 0, 1) == [8, 9]


def test_a_need_that_comes_up_after_it_fell_silent_speaks_at_the_time_first_chosen() -> None:
    listener, voice = scene()
    expiry = listener.machine.deadline
    others_ask(listener, items((0, 0, 8)))
    listener.hear(*voice.block(1, without=(0, 3)), voice.data(2, 0))
    assert listener.machine.deadline == expiry
    listener.until(expiry)
    assert symbols(listener.demands()[0], 0, 1) == [8]
    assert listener.machine.counts()["nacks_suppressed"] == 0


def test_a_request_that_comes_after_its_own_is_no_suppression() -> None:
    listener, _ = scene()
    listener.at_expiry()
    others_ask(listener, items((0, 0, 8)))
    listener.until(0.9)
    assert listener.machine.counts()["nacks_suppressed"] == 0


def test_nor_is_it_one_while_the_answer_to_a_probe_is_due() -> None:
    listener, voice = scene()
    listener.at_expiry()
    listener.hear(voice.probe())
    others_ask(listener, items((0, 0, 8)))
    assert listener.machine.counts()["nacks_suppressed"] == 0


def test_who_lacks_nothing_is_not_suppressed() -> None:
    listener, voice = Listener(), Voice(pattern(800 * BLOCKS))
    listener.hear(*voice.block(0), voice.data(1, 0))
    others_ask(listener, items((0, 0, 8)))
    listener.until(0.9)
    assert listener.machine.counts()["nacks_suppressed"] == 0
    assert listener.machine.deadline < inf


# -- hold-off ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suppressed", [False, True])
def test_during_the_hold_off_nothing_is_asked_for(suppressed: bool) -> None:
    listener, voice = scene()
    expiry = listener.machine.deadline
    if suppressed:
        others_ask(listener, items((0, 0, 8)))
    listener.until(expiry)
    before = len(listener.nacks)
    finish(listener, voice)
    for block in range(2, 6):
        listener.until(expiry + 0.2 * (block - 1) * HOLDOFF)
        listener.hear(*(voice.data(block, symbol) for symbol in range(2, 8)), voice.data(block + 1, 0))
    assert len(listener.nacks) == before


def test_after_the_hold_off_the_next_look_begins_anew() -> None:
    listener, voice = scene()
    expiry = listener.at_expiry()
    finish(listener, voice)
    listener.until(expiry + HOLDOFF - 1e-6)
    listener.hear(*voice.block(2)[1:], voice.data(3, 0))
    assert listener.machine.deadline >= 1.0
    listener.until(expiry + HOLDOFF)
    listener.hear(*voice.block(3)[1:], voice.data(4, 0))
    second = listener.at_expiry()
    assert expiry + HOLDOFF <= second <= expiry + HOLDOFF + FACTOR * GRTT
    assert [symbols(demand, 0, 0) for demand in listener.demands()] == [[8], [8]]


def test_a_gap_within_a_block_is_only_noted() -> None:
    listener, voice = scene()
    listener.until(listener.machine.deadline + HOLDOFF)
    listener.hear(voice.data(1, 1), voice.data(1, 3), *voice.block(1)[5:])
    assert listener.machine.deadline >= 1.0
    listener.hear(voice.data(2, 0))
    listener.at_expiry()
    assert [[symbols(demand, 0, block) for block in (0, 1)] for demand in listener.demands()] == [[[8], []], [[8], [8, 9]]]


def test_without_back_off_and_parity_the_hold_off_is_one_round_trip() -> None:
    listener, voice = scene(backoff=0, parity=0)
    finish(listener, voice)
    listener.until(GRTT - 1e-6)
    listener.hear(*voice.block(2)[1:], voice.data(3, 0))
    assert len(listener.nacks) == 1
    listener.until(GRTT)
    listener.hear(*voice.block(3)[1:], voice.data(4, 0))
    assert len(listener.nacks) == 2


def test_without_back_off_but_with_parity_the_hold_off_is_two_round_trips() -> None:
    listener, voice = scene(backoff=0)
    finish(listener, voice)
    for when, expected in ((1.9, 1), (2.0, 2)):
        listener.until(when * GRTT)
        listener.hear(voice.flush())
        assert len(listener.nacks) == expected


def test_a_sender_that_repairs_something_earlier_has_answered_and_is_asked_again_for_what_is_still_missing() -> None:
    listener, voice = scene()
    listener.hear(*voice.block(1, without=(0, 3)), voice.data(2, 0))
    expiry = listener.at_expiry()
    # It turns to block 1, so that it did not hear of block 0, or its repair is lost.
    listener.hear(voice.data(1, 8, 0, FLAG_REPAIR), now=expiry + GRTT)
    second = listener.at_expiry()
    assert second < expiry + HOLDOFF
    assert set(listener.demands()[1].symbols) == {(0, 0)}


def test_a_step_back_during_the_back_off_does_not_shorten_the_hold_off() -> None:
    listener, voice = Listener(), Voice(pattern(800 * BLOCKS))
    listener.hear(*voice.block(0, without=(1, 2)), voice.data(1, 0))
    listener.hear(voice.data(0, 8, 0, FLAG_REPAIR), *voice.block(1)[1:])
    expiry = listener.at_expiry()
    listener.hear(*voice.block(2), voice.data(3, 0))
    listener.until(expiry + HOLDOFF - 1e-6)
    assert [symbols(demand, 0, 0) for demand in listener.demands()] == [[9]]


def test_a_repair_in_order_is_no_step_back_and_nothing_is_asked_twice() -> None:
    listener, voice = scene()
    listener.hear(*voice.block(1, without=(0, 3)), voice.data(2, 0))
    expiry = listener.at_expiry()
    listener.hear(voice.data(0, 8, 0, FLAG_REPAIR), now=expiry + GRTT)
    listener.hear(voice.data(1, 8, 0, FLAG_REPAIR), now=expiry + GRTT)
    listener.until(expiry + HOLDOFF - 1e-6)
    assert len(listener.nacks) == 1


def test_repairs_of_peers_without_the_repair_flag_are_seen_as_a_step_back_too() -> None:
    listener, voice = scene()
    listener.hear(*voice.block(1, without=(0, 3)), voice.data(2, 0))
    expiry = listener.at_expiry()
    listener.hear(voice.data(1, 8), now=expiry + GRTT)
    assert listener.at_expiry() < expiry + HOLDOFF


def test_parity_sent_behind_its_block_is_no_step_back() -> None:
    listener, voice = Listener(), Voice(pattern(800 * BLOCKS))
    listener.hear(*voice.block(0, without=(1, 2)), voice.data(0, 8))
    first = listener.machine.deadline
    listener.hear(voice.data(0, 10))
    assert listener.machine.deadline >= first
    assert not listener.nacks


def test_when_all_is_repaired_the_hold_off_ends_with_it() -> None:
    listener, voice = scene()
    expiry = listener.at_expiry()
    finish(listener, voice)
    listener.hear(voice.data(0, 8, 0, FLAG_REPAIR))
    listener.hear(*voice.block(2, without=(0, 5)), voice.data(3, 0))
    assert listener.at_expiry() < expiry + HOLDOFF
    assert set(listener.demands()[1].symbols) == {(0, 2)}


def test_the_request_reaches_up_to_the_repair_under_way() -> None:
    listener, voice = scene()
    listener.hear(*voice.block(1, without=(0, 3)), *voice.block(2, without=(4,)), voice.data(3, 0))
    # The sender has gone back to block 1 already: block 2 may still be on its way.
    listener.hear(voice.data(1, 9, 0, FLAG_REPAIR))
    listener.at_expiry()
    assert set(listener.demands()[0].symbols) == {(0, 0)}


def test_an_unanswered_request_is_repeated_at_each_flush_after_the_hold_off() -> None:
    listener, voice = Listener(), Voice(pattern(800))
    listener.hear(*voice.block(0, without=(2,)))
    for i in range(60):
        listener.hear(voice.flush(), now=2 * GRTT * i)
        listener.until(2 * GRTT * (i + 1))
    # Each round takes a back-off and the hold-off: at most (2K + 2) GRTT, at least (K + 2), and up to two to the next flush.
    rounds = 120 / (2 * FACTOR + 4), 120 / (FACTOR + 2)
    assert rounds[0] <= len(listener.nacks) <= rounds[1]
    assert all(nack.requests == (items((0, 0, 8, 8)),) for nack in listener.nacks)
