"""The NACK process of a receiver: back-off, suppression, and hold-off."""

from math import inf
from typing import Any

import pytest

from experiments.contract.content import pattern
from protocols.norm.messages import FLAG_REPAIR, Nack
from protocols.norm.nack_process import NackProcess
from protocols.norm.requests import Request
from tests.protocols.norm.scenes import GRTT, MessageBuilder, ReceiverHarness, items, symbols

FACTOR = 4
HOLDOFF = (FACTOR + 2) * GRTT
BLOCKS = 8


def scene(seed: int = 1, **settings: Any) -> tuple[ReceiverHarness, MessageBuilder]:
    """Return a receiver that detected the loss of symbol 1 of block 0 at time 0."""
    receiver, builder = ReceiverHarness(seed=seed), MessageBuilder(pattern(800 * BLOCKS), **settings)
    receiver.receive(*builder.block(0, without=(1,)), builder.data(1, 0))
    return receiver, builder


def nack_by_others(
    receiver: ReceiverHarness, *requests: Request, sender: int = 1, instance: int = 1, now: float | None = None
) -> None:
    """Deliver the NACK of another receiver."""
    receiver.receive(Nack(77, 0, sender, instance, 0, 0, requests), source="other", now=now)


def deliver_rest(receiver: ReceiverHarness, builder: MessageBuilder, block: int = 1) -> None:
    """Deliver the remaining symbols of a block and the first symbol of the next."""
    receiver.receive(*(builder.data(block, symbol) for symbol in range(1, 8)), builder.data(block + 1, 0))


def nack_process(receiver: ReceiverHarness) -> NackProcess:
    """Return the NACK process of the receiver towards its only sender."""
    (sender,) = receiver.machine.senders()
    assert sender.nack_process is not None
    return sender.nack_process


# -- back-off ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_one_nack_is_sent_within_the_back_off_after_the_end_of_the_block(seed: int) -> None:
    receiver, _ = scene(seed)
    receiver.run_until(FACTOR * GRTT)
    ((when, _),) = receiver.sent
    assert 0.0 < when <= FACTOR * GRTT
    assert symbols(receiver.requested()[0], 0, 0) == [8]


def test_different_seeds_draw_different_back_offs_and_equal_seeds_equal_ones() -> None:
    assert scene(1)[0].machine.deadline == scene(1)[0].machine.deadline
    assert len({scene(seed)[0].machine.deadline for seed in range(5)}) == 5


def test_a_loss_in_the_current_block_is_not_requested_if_parity_can_repair_it() -> None:
    receiver, builder = ReceiverHarness(), MessageBuilder(pattern(800 * BLOCKS))
    receiver.receive(*builder.block(0, without=(1,)))
    assert receiver.machine.deadline >= 1.0
    receiver.receive(builder.data(1, 0))
    assert receiver.machine.deadline <= FACTOR * GRTT


def test_the_nack_includes_losses_during_the_back_off() -> None:
    receiver, builder = scene()
    receiver.receive(*builder.block(1, without=(0, 3, 4)), builder.data(2, 0))
    receiver.run_to_deadline()
    assert symbols(receiver.requested()[0], 0, 0) == [8]
    assert symbols(receiver.requested()[0], 0, 1) == [8, 9]


def test_the_last_block_is_requested_at_the_flush() -> None:
    receiver, builder = ReceiverHarness(), MessageBuilder(pattern(800))
    receiver.receive(*builder.block(0, without=(2, 7)))
    assert receiver.machine.deadline >= 1.0
    receiver.receive(builder.flush())
    receiver.run_to_deadline()
    assert symbols(receiver.requested()[0], 0, 0) == [8, 9]


def test_without_back_off_a_nack_is_sent_at_once() -> None:
    receiver, _ = scene(backoff=0)
    assert [when for when, _ in receiver.sent] == [0.0]


def test_losses_repaired_during_the_back_off_are_not_requested() -> None:
    receiver, builder = scene()
    receiver.receive(builder.data(0, 1, 0, FLAG_REPAIR))
    assert receiver.machine.deadline >= 1.0
    deliver_rest(receiver, builder)
    receiver.run_until(0.9)
    assert not receiver.nacks
    assert receiver.machine.counts()["nacks_suppressed"] == 0


def test_a_nack_names_the_sender_and_its_instance() -> None:
    receiver, _ = scene(node=5, instance=6)
    receiver.run_to_deadline()
    (nack,) = receiver.nacks
    assert (nack.source_id, nack.sequence, nack.sender_id, nack.instance_id) == (9, 0, 5, 6)
    assert (nack.response_sec, nack.response_usec) == (0, 0), "no probe was heard"


def test_the_last_advertised_timing_is_used() -> None:
    receiver, builder = ReceiverHarness(), MessageBuilder(pattern(800 * BLOCKS))
    receiver.receive(*builder.block(0, without=(1,)))
    builder.retime(backoff=0)
    receiver.receive(builder.data(1, 0))
    assert len(receiver.nacks) == 1


# -- suppression -------------------------------------------------------------------------------------------------------


def test_an_equal_request_of_another_receiver_suppresses_the_nack() -> None:
    receiver, _ = scene()
    nack_by_others(receiver, items((0, 0, 8)))
    assert receiver.machine.deadline >= 1.0, "there is nothing to wait for"
    receiver.run_until(0.9)
    assert not receiver.nacks
    assert receiver.machine.counts()["nacks_suppressed"] == 1


def test_several_requests_of_others_together_suppress_the_nack() -> None:
    receiver, builder = scene()
    receiver.receive(*builder.block(1, without=(0, 3)), builder.data(2, 0))
    nack_by_others(receiver, items((0, 0, 8)))
    nack_by_others(receiver, items((0, 1, 8)))
    receiver.run_until(0.9)
    assert not receiver.nacks
    assert receiver.machine.counts()["nacks_suppressed"] == 1


@pytest.mark.parametrize(
    ("sender", "instance", "request_"),
    [(2, 1, items((0, 0, 8))), (1, 2, items((0, 0, 8))), (1, 1, items((0, 1, 8))), (1, 1, items((1, 0, 8)))],
    ids=["other-sender", "other-instance", "other-block", "other-object"],
)
def test_requests_for_other_repairs_do_not_suppress(sender: int, instance: int, request_: Request) -> None:
    receiver, _ = scene()
    nack_by_others(receiver, request_, sender=sender, instance=instance)
    receiver.run_until(0.9)
    assert len(receiver.nacks) == 1


def test_a_smaller_request_does_not_suppress() -> None:
    receiver, builder = scene()
    receiver.receive(*builder.block(1, without=(0, 3, 4)), builder.data(2, 0))
    nack_by_others(receiver, items((0, 0, 8), (0, 1, 8)))
    receiver.run_until(0.9)
    assert symbols(receiver.requested()[0], 0, 1) == [8, 9]


def test_a_loss_after_suppression_is_requested_at_the_end_of_the_original_back_off() -> None:
    receiver, builder = scene()
    expiry = receiver.machine.deadline
    nack_by_others(receiver, items((0, 0, 8)))
    receiver.receive(*builder.block(1, without=(0, 3)), builder.data(2, 0))
    assert receiver.machine.deadline == expiry
    receiver.run_until(expiry)
    assert symbols(receiver.requested()[0], 0, 1) == [8]
    assert receiver.machine.counts()["nacks_suppressed"] == 0


def test_a_request_after_its_own_nack_is_no_suppression() -> None:
    receiver, _ = scene()
    receiver.run_to_deadline()
    nack_by_others(receiver, items((0, 0, 8)))
    receiver.run_until(0.9)
    assert receiver.machine.counts()["nacks_suppressed"] == 0


def test_a_request_during_the_wait_for_a_probe_response_is_no_suppression() -> None:
    receiver, builder = scene()
    receiver.run_to_deadline()
    receiver.receive(builder.probe())
    nack_by_others(receiver, items((0, 0, 8)))
    assert receiver.machine.counts()["nacks_suppressed"] == 0


def test_a_receiver_without_losses_is_not_counted_as_suppressed() -> None:
    receiver, builder = ReceiverHarness(), MessageBuilder(pattern(800 * BLOCKS))
    receiver.receive(*builder.block(0), builder.data(1, 0))
    nack_by_others(receiver, items((0, 0, 8)))
    receiver.run_until(0.9)
    assert receiver.machine.counts()["nacks_suppressed"] == 0
    assert receiver.machine.deadline < inf


# -- hold-off ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suppressed", [False, True])
def test_nothing_is_requested_during_the_hold_off(suppressed: bool) -> None:
    receiver, builder = scene()
    expiry = receiver.machine.deadline
    if suppressed:
        nack_by_others(receiver, items((0, 0, 8)))
    receiver.run_until(expiry)
    before = len(receiver.nacks)
    deliver_rest(receiver, builder)
    for block in range(2, 6):
        receiver.run_until(expiry + 0.2 * (block - 1) * HOLDOFF)
        receiver.receive(*(builder.data(block, symbol) for symbol in range(2, 8)), builder.data(block + 1, 0))
    assert len(receiver.nacks) == before


def test_after_the_hold_off_a_new_round_begins() -> None:
    receiver, builder = scene()
    expiry = receiver.run_to_deadline()
    deliver_rest(receiver, builder)
    receiver.run_until(expiry + HOLDOFF - 1e-6)
    receiver.receive(*builder.block(2)[1:], builder.data(3, 0))
    assert receiver.machine.deadline >= 1.0
    receiver.run_until(expiry + HOLDOFF)
    receiver.receive(*builder.block(3)[1:], builder.data(4, 0))
    second = receiver.run_to_deadline()
    assert expiry + HOLDOFF <= second <= expiry + HOLDOFF + FACTOR * GRTT
    assert [symbols(requested, 0, 0) for requested in receiver.requested()] == [[8], [8]]


def test_a_gap_within_a_block_is_only_recorded() -> None:
    receiver, builder = scene()
    receiver.run_until(receiver.machine.deadline + HOLDOFF)
    receiver.receive(builder.data(1, 1), builder.data(1, 3), *builder.block(1)[5:])
    assert receiver.machine.deadline >= 1.0
    receiver.receive(builder.data(2, 0))
    receiver.run_to_deadline()
    assert [[symbols(requested, 0, block) for block in (0, 1)] for requested in receiver.requested()] == [
        [[8], []],
        [[8], [8, 9]],
    ]


def test_without_back_off_and_parity_the_hold_off_is_one_grtt() -> None:
    receiver, builder = scene(backoff=0, parity=0)
    deliver_rest(receiver, builder)
    receiver.run_until(GRTT - 1e-6)
    receiver.receive(*builder.block(2)[1:], builder.data(3, 0))
    assert len(receiver.nacks) == 1
    receiver.run_until(GRTT)
    receiver.receive(*builder.block(3)[1:], builder.data(4, 0))
    assert len(receiver.nacks) == 2


def test_without_back_off_but_with_parity_the_hold_off_is_two_grtt() -> None:
    receiver, builder = scene(backoff=0)
    deliver_rest(receiver, builder)
    for when, expected in ((1.9, 1), (2.0, 2)):
        receiver.run_until(when * GRTT)
        receiver.receive(builder.flush())
        assert len(receiver.nacks) == expected


def test_an_earlier_repair_answers_the_request_and_remaining_losses_are_requested_again() -> None:
    receiver, builder = scene()
    receiver.receive(*builder.block(1, without=(0, 3)), builder.data(2, 0))
    expiry = receiver.run_to_deadline()
    # The sender repairs block 1: it did not receive the request for block 0, or that repair is lost.
    receiver.receive(builder.data(1, 8, 0, FLAG_REPAIR), now=expiry + GRTT)
    second = receiver.run_to_deadline()
    assert second < expiry + HOLDOFF
    assert set(dict(receiver.requested()[1].units())) == {(0, 0)}


def test_a_rewind_during_the_back_off_does_not_shorten_the_hold_off() -> None:
    receiver, builder = ReceiverHarness(), MessageBuilder(pattern(800 * BLOCKS))
    receiver.receive(*builder.block(0, without=(1, 2)), builder.data(1, 0))
    receiver.receive(builder.data(0, 8, 0, FLAG_REPAIR), *builder.block(1)[1:])
    expiry = receiver.run_to_deadline()
    receiver.receive(*builder.block(2), builder.data(3, 0))
    receiver.run_until(expiry + HOLDOFF - 1e-6)
    assert [symbols(requested, 0, 0) for requested in receiver.requested()] == [[9]]


def test_repairs_in_order_are_no_rewind_and_nothing_is_requested_twice() -> None:
    receiver, builder = scene()
    receiver.receive(*builder.block(1, without=(0, 3)), builder.data(2, 0))
    expiry = receiver.run_to_deadline()
    receiver.receive(builder.data(0, 8, 0, FLAG_REPAIR), now=expiry + GRTT)
    receiver.receive(builder.data(1, 8, 0, FLAG_REPAIR), now=expiry + GRTT)
    receiver.run_until(expiry + HOLDOFF - 1e-6)
    assert len(receiver.nacks) == 1


def test_repairs_without_the_repair_flag_are_recognised_as_a_rewind() -> None:
    receiver, builder = scene()
    receiver.receive(*builder.block(1, without=(0, 3)), builder.data(2, 0))
    expiry = receiver.run_to_deadline()
    receiver.receive(builder.data(1, 8), now=expiry + GRTT)
    assert receiver.run_to_deadline() < expiry + HOLDOFF


def test_parity_sent_after_its_block_is_no_rewind() -> None:
    receiver, builder = ReceiverHarness(), MessageBuilder(pattern(800 * BLOCKS))
    receiver.receive(*builder.block(0, without=(1, 2)), builder.data(0, 8))
    first = receiver.machine.deadline
    receiver.receive(builder.data(0, 10))
    assert receiver.machine.deadline >= first
    assert not receiver.nacks


def test_the_hold_off_ends_when_everything_is_repaired() -> None:
    receiver, builder = scene()
    expiry = receiver.run_to_deadline()
    deliver_rest(receiver, builder)
    receiver.receive(builder.data(0, 8, 0, FLAG_REPAIR))
    receiver.receive(*builder.block(2, without=(0, 5)), builder.data(3, 0))
    assert receiver.run_to_deadline() < expiry + HOLDOFF
    assert set(dict(receiver.requested()[1].units())) == {(0, 2)}


def test_a_request_extends_up_to_the_repair_in_progress() -> None:
    receiver, builder = scene()
    receiver.receive(*builder.block(1, without=(0, 3)), *builder.block(2, without=(4,)), builder.data(3, 0))
    # The sender has rewound to block 1: block 2 may still follow.
    receiver.receive(builder.data(1, 9, 0, FLAG_REPAIR))
    receiver.run_to_deadline()
    assert set(dict(receiver.requested()[0].units())) == {(0, 0)}


def test_an_unanswered_request_is_repeated_at_flushes_after_the_hold_off() -> None:
    receiver, builder = ReceiverHarness(), MessageBuilder(pattern(800))
    receiver.receive(*builder.block(0, without=(2,)))
    for i in range(60):
        receiver.receive(builder.flush(), now=2 * GRTT * i)
        receiver.run_until(2 * GRTT * (i + 1))
    # Each round takes a back-off and the hold-off: (K + 2) to (2K + 2) GRTT, and up to two more until the next flush.
    rounds = 120 / (2 * FACTOR + 4), 120 / (FACTOR + 2)
    assert rounds[0] <= len(receiver.nacks) <= rounds[1]
    assert all(nack.requests == (items((0, 0, 8, 8)),) for nack in receiver.nacks)


def test_a_request_that_brought_nothing_for_long_is_repeated_rarely_and_often_again_at_the_end() -> None:
    receiver, builder = ReceiverHarness(), MessageBuilder(pattern(800 * 400))
    receiver.receive(*builder.block(0, without=(1,)))
    for block in range(1, 400):
        receiver.receive(*builder.block(block), now=block * GRTT)
        receiver.run_until((block + 1) * GRTT)
    assert sum(when > 200 * GRTT for when, _ in receiver.sent) <= 2
    at_end = len(receiver.nacks)
    for step in range(20):
        receiver.receive(builder.flush(), now=(400 + 2 * step) * GRTT)
        receiver.run_until((402 + 2 * step) * GRTT)
    # As in the test before: a sender that announces its end has nothing else to do than to serve requests.
    assert len(receiver.nacks) - at_end >= 40 / (2 * FACTOR + 4)


def test_a_hold_off_is_not_long_any_more_when_something_was_repaired() -> None:
    receiver, builder = ReceiverHarness(), MessageBuilder(pattern(800 * 400))
    receiver.receive(*builder.block(0, without=(1,)), *builder.block(1, without=(1,)))
    for block in range(2, 300):
        receiver.receive(*builder.block(block), now=block * GRTT)
        receiver.run_until((block + 1) * GRTT)
    process = nack_process(receiver)
    receiver.receive(builder.data(300, 0), now=process.holdoff_end)
    assert process.holdoff_end - process.backoff_end > 50 * HOLDOFF
    receiver.receive(builder.data(0, 1, flags=FLAG_REPAIR), builder.data(300, 1))
    receiver.run_until(process.backoff_end + GRTT)
    assert set(dict(receiver.requested()[-1].units())) == {(0, 1)}, "block 1 is missing first now"
    assert process.holdoff_end - process.backoff_end == pytest.approx(HOLDOFF, rel=0.1)
