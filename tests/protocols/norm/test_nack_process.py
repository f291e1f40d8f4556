"""The NACK process of a receiver: back-off, suppression, and hold-off."""

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
    """Return a receiver that detected the loss of symbol 1 of block 0 at time 0."""
    listener, voice = Listener(seed=seed), Voice(pattern(800 * BLOCKS), **settings)
    listener.hear(*voice.block(0, without=(1,)), voice.data(1, 0))
    return listener, voice


def others_ask(listener: Listener, *requests: Request, sender: int = 1, instance: int = 1, now: float | None = None) -> None:
    """Deliver the NACK of another receiver."""
    listener.hear(Nack(77, 0, sender, instance, 0, 0, requests), source="other", now=now)


def finish(listener: Listener, voice: Voice, block: int = 1) -> None:
    """Deliver the remaining symbols of a block and the first symbol of the next."""
    listener.hear(*(voice.data(block, symbol) for symbol in range(1, 8)), voice.data(block + 1, 0))


# -- back-off ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_one_nack_is_sent_within_the_back_off_after_the_end_of_the_block(seed: int) -> None:
    listener, _ = scene(seed)
    listener.until(FACTOR * GRTT)
    ((when, _),) = listener.said
    assert 0.0 < when <= FACTOR * GRTT
    assert symbols(listener.demands()[0], 0, 0) == [8]


def test_different_seeds_draw_different_back_offs_and_equal_seeds_equal_ones() -> None:
    assert scene(1)[0].machine.deadline == scene(1)[0].machine.deadline
    assert len({scene(seed)[0].machine.deadline for seed in range(5)}) == 5


def test_a_loss_in_the_current_block_is_not_requested_if_parity_can_repair_it() -> None:
    listener, voice = Listener(), Voice(pattern(800 * BLOCKS))
    listener.hear(*voice.block(0, without=(1,)))
    assert listener.machine.deadline >= 1.0
    listener.hear(voice.data(1, 0))
    assert listener.machine.deadline <= FACTOR * GRTT


def test_the_nack_includes_losses_during_the_back_off() -> None:
    listener, voice = scene()
    listener.hear(*voice.block(1, without=(0, 3, 4)), voice.data(2, 0))
    listener.at_expiry()
    assert symbols(listener.demands()[0], 0, 0) == [8]
    assert symbols(listener.demands()[0], 0, 1) == [8, 9]


def test_the_last_block_is_requested_at_the_flush() -> None:
    listener, voice = Listener(), Voice(pattern(800))
    listener.hear(*voice.block(0, without=(2, 7)))
    assert listener.machine.deadline >= 1.0
    listener.hear(voice.flush())
    listener.at_expiry()
    assert symbols(listener.demands()[0], 0, 0) == [8, 9]


def test_without_back_off_a_nack_is_sent_at_once() -> None:
    listener, _ = scene(backoff=0)
    assert [when for when, _ in listener.said] == [0.0]


def test_losses_repaired_during_the_back_off_are_not_requested() -> None:
    listener, voice = scene()
    listener.hear(voice.data(0, 1, 0, FLAG_REPAIR))
    assert listener.machine.deadline >= 1.0
    finish(listener, voice)
    listener.until(0.9)
    assert not listener.nacks
    assert listener.machine.counts()["nacks_suppressed"] == 0


def test_a_nack_names_the_sender_and_its_instance() -> None:
    listener, _ = scene(node=5, instance=6)
    listener.at_expiry()
    (nack,) = listener.nacks
    assert (nack.source_id, nack.sequence, nack.sender_id, nack.instance_id) == (9, 0, 5, 6)
    assert (nack.response_sec, nack.response_usec) == (0, 0), "no probe was heard"


def test_the_last_advertised_timing_is_used() -> None:
    listener, voice = Listener(), Voice(pattern(800 * BLOCKS))
    listener.hear(*voice.block(0, without=(1,)))
    voice.retime(backoff=0)
    listener.hear(voice.data(1, 0))
    assert len(listener.nacks) == 1


# -- suppression -------------------------------------------------------------------------------------------------------


def test_an_equal_request_of_another_receiver_suppresses_the_nack() -> None:
    listener, _ = scene()
    others_ask(listener, items((0, 0, 8)))
    assert listener.machine.deadline >= 1.0, "there is nothing to wait for"
    listener.until(0.9)
    assert not listener.nacks
    assert listener.machine.counts()["nacks_suppressed"] == 1


def test_several_requests_of_others_together_suppress_the_nack() -> None:
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
def test_requests_for_other_repairs_do_not_suppress(sender: int, instance: int, request_: Request) -> None:
    listener, _ = scene()
    others_ask(listener, request_, sender=sender, instance=instance)
    listener.until(0.9)
    assert len(listener.nacks) == 1


def test_a_smaller_request_does_not_suppress() -> None:
    listener, voice = scene()
    listener.hear(*voice.block(1, without=(0, 3, 4)), voice.data(2, 0))
    others_ask(listener, items((0, 0, 8), (0, 1, 8)))
    listener.until(0.9)
    assert symbols(listener.demands()[0], 0, 1) == [8, 9]


def test_a_loss_after_suppression_is_requested_at_the_end_of_the_original_back_off() -> None:
    listener, voice = scene()
    expiry = listener.machine.deadline
    others_ask(listener, items((0, 0, 8)))
    listener.hear(*voice.block(1, without=(0, 3)), voice.data(2, 0))
    assert listener.machine.deadline == expiry
    listener.until(expiry)
    assert symbols(listener.demands()[0], 0, 1) == [8]
    assert listener.machine.counts()["nacks_suppressed"] == 0


def test_a_request_after_its_own_nack_is_no_suppression() -> None:
    listener, _ = scene()
    listener.at_expiry()
    others_ask(listener, items((0, 0, 8)))
    listener.until(0.9)
    assert listener.machine.counts()["nacks_suppressed"] == 0


def test_a_request_during_the_wait_for_a_probe_response_is_no_suppression() -> None:
    listener, voice = scene()
    listener.at_expiry()
    listener.hear(voice.probe())
    others_ask(listener, items((0, 0, 8)))
    assert listener.machine.counts()["nacks_suppressed"] == 0


def test_a_receiver_without_losses_is_not_counted_as_suppressed() -> None:
    listener, voice = Listener(), Voice(pattern(800 * BLOCKS))
    listener.hear(*voice.block(0), voice.data(1, 0))
    others_ask(listener, items((0, 0, 8)))
    listener.until(0.9)
    assert listener.machine.counts()["nacks_suppressed"] == 0
    assert listener.machine.deadline < inf


# -- hold-off ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suppressed", [False, True])
def test_nothing_is_requested_during_the_hold_off(suppressed: bool) -> None:
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


def test_after_the_hold_off_a_new_round_begins() -> None:
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


def test_a_gap_within_a_block_is_only_recorded() -> None:
    listener, voice = scene()
    listener.until(listener.machine.deadline + HOLDOFF)
    listener.hear(voice.data(1, 1), voice.data(1, 3), *voice.block(1)[5:])
    assert listener.machine.deadline >= 1.0
    listener.hear(voice.data(2, 0))
    listener.at_expiry()
    assert [[symbols(demand, 0, block) for block in (0, 1)] for demand in listener.demands()] == [[[8], []], [[8], [8, 9]]]


def test_without_back_off_and_parity_the_hold_off_is_one_grtt() -> None:
    listener, voice = scene(backoff=0, parity=0)
    finish(listener, voice)
    listener.until(GRTT - 1e-6)
    listener.hear(*voice.block(2)[1:], voice.data(3, 0))
    assert len(listener.nacks) == 1
    listener.until(GRTT)
    listener.hear(*voice.block(3)[1:], voice.data(4, 0))
    assert len(listener.nacks) == 2


def test_without_back_off_but_with_parity_the_hold_off_is_two_grtt() -> None:
    listener, voice = scene(backoff=0)
    finish(listener, voice)
    for when, expected in ((1.9, 1), (2.0, 2)):
        listener.until(when * GRTT)
        listener.hear(voice.flush())
        assert len(listener.nacks) == expected


def test_an_earlier_repair_answers_the_request_and_remaining_losses_are_requested_again() -> None:
    listener, voice = scene()
    listener.hear(*voice.block(1, without=(0, 3)), voice.data(2, 0))
    expiry = listener.at_expiry()
    # The sender repairs block 1: it did not receive the request for block 0, or that repair is lost.
    listener.hear(voice.data(1, 8, 0, FLAG_REPAIR), now=expiry + GRTT)
    second = listener.at_expiry()
    assert second < expiry + HOLDOFF
    assert set(listener.demands()[1].symbols) == {(0, 0)}


def test_a_rewind_during_the_back_off_does_not_shorten_the_hold_off() -> None:
    listener, voice = Listener(), Voice(pattern(800 * BLOCKS))
    listener.hear(*voice.block(0, without=(1, 2)), voice.data(1, 0))
    listener.hear(voice.data(0, 8, 0, FLAG_REPAIR), *voice.block(1)[1:])
    expiry = listener.at_expiry()
    listener.hear(*voice.block(2), voice.data(3, 0))
    listener.until(expiry + HOLDOFF - 1e-6)
    assert [symbols(demand, 0, 0) for demand in listener.demands()] == [[9]]


def test_repairs_in_order_are_no_rewind_and_nothing_is_requested_twice() -> None:
    listener, voice = scene()
    listener.hear(*voice.block(1, without=(0, 3)), voice.data(2, 0))
    expiry = listener.at_expiry()
    listener.hear(voice.data(0, 8, 0, FLAG_REPAIR), now=expiry + GRTT)
    listener.hear(voice.data(1, 8, 0, FLAG_REPAIR), now=expiry + GRTT)
    listener.until(expiry + HOLDOFF - 1e-6)
    assert len(listener.nacks) == 1


def test_repairs_without_the_repair_flag_are_recognised_as_a_rewind() -> None:
    listener, voice = scene()
    listener.hear(*voice.block(1, without=(0, 3)), voice.data(2, 0))
    expiry = listener.at_expiry()
    listener.hear(voice.data(1, 8), now=expiry + GRTT)
    assert listener.at_expiry() < expiry + HOLDOFF


def test_parity_sent_after_its_block_is_no_rewind() -> None:
    listener, voice = Listener(), Voice(pattern(800 * BLOCKS))
    listener.hear(*voice.block(0, without=(1, 2)), voice.data(0, 8))
    first = listener.machine.deadline
    listener.hear(voice.data(0, 10))
    assert listener.machine.deadline >= first
    assert not listener.nacks


def test_the_hold_off_ends_when_everything_is_repaired() -> None:
    listener, voice = scene()
    expiry = listener.at_expiry()
    finish(listener, voice)
    listener.hear(voice.data(0, 8, 0, FLAG_REPAIR))
    listener.hear(*voice.block(2, without=(0, 5)), voice.data(3, 0))
    assert listener.at_expiry() < expiry + HOLDOFF
    assert set(listener.demands()[1].symbols) == {(0, 2)}


def test_a_request_extends_up_to_the_repair_in_progress() -> None:
    listener, voice = scene()
    listener.hear(*voice.block(1, without=(0, 3)), *voice.block(2, without=(4,)), voice.data(3, 0))
    # The sender has rewound to block 1: block 2 may still follow.
    listener.hear(voice.data(1, 9, 0, FLAG_REPAIR))
    listener.at_expiry()
    assert set(listener.demands()[0].symbols) == {(0, 0)}


def test_an_unanswered_request_is_repeated_at_flushes_after_the_hold_off() -> None:
    listener, voice = Listener(), Voice(pattern(800))
    listener.hear(*voice.block(0, without=(2,)))
    for i in range(60):
        listener.hear(voice.flush(), now=2 * GRTT * i)
        listener.until(2 * GRTT * (i + 1))
    # Each round takes a back-off and the hold-off: (K + 2) to (2K + 2) GRTT, and up to two more until the next flush.
    rounds = 120 / (2 * FACTOR + 4), 120 / (FACTOR + 2)
    assert rounds[0] <= len(listener.nacks) <= rounds[1]
    assert all(nack.requests == (items((0, 0, 8, 8)),) for nack in listener.nacks)
