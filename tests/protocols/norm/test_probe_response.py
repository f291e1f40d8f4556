"""A receiver's responses to GRTT probes."""

import pytest

from experiments.contract.content import pattern
from protocols.norm.messages import Ack, Nack
from tests.protocols.norm.scenes import GRTT, MessageBuilder, ReceiverHarness, items

FACTOR = 4


def scene(**settings: object) -> tuple[ReceiverHarness, MessageBuilder]:
    receiver, builder = ReceiverHarness(), MessageBuilder(pattern(2400), **settings)  # type: ignore[arg-type]
    receiver.receive(*builder.whole())
    return receiver, builder


def test_a_probe_is_answered_within_the_back_off_with_the_adjusted_sender_time() -> None:
    receiver, builder = scene()
    receiver.receive(builder.probe(3, 999_000), now=0.5)
    when = receiver.run_to_deadline()
    assert 0.5 < when <= 0.5 + FACTOR * GRTT
    (ack,) = receiver.acks
    assert (ack.source_id, ack.sender_id, ack.instance_id, ack.ack_type, ack.payload) == (9, 1, 1, 1, b"")
    assert ack.response_sec + ack.response_usec * 1e-6 == pytest.approx(3.999 + when - 0.5, abs=2e-6)
    assert ack.response_usec < 1_000_000


def test_responses_spread_over_four_grtt_even_without_back_off() -> None:
    waits = []
    for seed in range(20):
        receiver, builder = ReceiverHarness(seed=seed), MessageBuilder(pattern(2400), backoff=0)
        receiver.receive(*builder.whole(), builder.probe())
        waits.append(receiver.run_to_deadline())
    assert 0.0 < min(waits) < max(waits) <= 4 * GRTT
    assert len(set(waits)) == 20


def test_a_passive_probe_is_only_recorded() -> None:
    receiver, builder = scene()
    receiver.receive(builder.probe(active=False))
    receiver.run_until(0.9)
    assert not receiver.sent


def test_a_response_of_another_receiver_suppresses_its_own() -> None:
    receiver, builder = scene()
    receiver.receive(builder.probe())
    receiver.receive(Ack(77, 0, 1, 1, 1, 0, 1, 500), source="other")
    receiver.run_until(0.9)
    assert not receiver.sent


@pytest.mark.parametrize("other", [Ack(77, 0, 2, 1, 1, 0, 1, 500), Ack(77, 0, 1, 9, 1, 0, 1, 500), Nack(77, 0, 1, 1, 0, 0, ())])
def test_messages_of_others_without_a_response_to_this_sender_do_not_suppress(other: Ack | Nack) -> None:
    receiver, builder = scene()
    receiver.receive(builder.probe())
    receiver.receive(other, source="other")
    receiver.run_until(0.9)
    assert len(receiver.acks) == 1


def test_a_nack_carries_the_response() -> None:
    receiver, builder = ReceiverHarness(), MessageBuilder(pattern(2400))
    receiver.receive(builder.probe(2, 0))
    receiver.receive(*builder.block(0, without=(1,)), builder.data(1, 0))
    receiver.run_until(0.9)
    (nack,) = receiver.nacks
    when = next(when for when, message in receiver.sent if message is nack)
    assert nack.response_sec + nack.response_usec * 1e-6 == pytest.approx(2.0 + when, abs=2e-6)
    # The response is sent only once, whichever message comes first.
    assert len(receiver.acks) == (receiver.sent[0][1] is not nack)


def test_after_a_response_the_receiver_skips_probes_for_some_time() -> None:
    receiver, builder = scene()
    receiver.receive(builder.probe(), now=0.1)
    answered = receiver.run_to_deadline()
    receiver.receive(builder.probe(), now=answered + (FACTOR - 0.01) * GRTT)
    receiver.run_until(0.9)
    assert len(receiver.acks) == 1
    receiver.receive(builder.probe(), now=0.91)
    receiver.run_until(1.5)
    assert len(receiver.acks) == 2


def test_a_second_probe_before_the_response_gets_one_response_with_the_newer_time() -> None:
    receiver, builder = scene()
    receiver.receive(builder.probe(1, 0), now=0.1)
    due = receiver.machine.deadline
    receiver.receive(builder.probe(50, 0), now=0.1 + 1e-4)
    assert receiver.machine.deadline == due
    receiver.run_until(0.9)
    assert [ack.response_sec for ack in receiver.acks] == [50]


def test_a_probe_before_any_content_is_answered() -> None:
    receiver, builder = ReceiverHarness(), MessageBuilder(pattern(2400))
    receiver.receive(builder.probe())
    receiver.run_until(0.9)
    assert len(receiver.acks) == 1


def test_a_nack_before_any_probe_carries_no_response_and_suppresses_none() -> None:
    receiver, builder = scene()
    receiver.receive(builder.probe())
    receiver.receive(Nack(77, 0, 1, 1, 0, 0, (items((0, 0, 8)),)), source="other")
    assert receiver.machine.deadline < 1.0


def test_a_clock_that_exceeds_32_bits_wraps() -> None:
    receiver, builder = scene()
    receiver.receive(builder.probe(0xFFFFFFFF, 999_999), now=0.1)
    receiver.run_to_deadline()
    (ack,) = receiver.acks
    assert ack.response_sec == 0


def test_a_probe_of_an_earlier_instance_is_not_answered() -> None:
    receiver, builder = scene()
    receiver.receive(builder.probe(5000, 0))
    receiver.receive(*MessageBuilder(pattern(2400), instance=2).whole())
    receiver.run_until(0.9)
    assert not receiver.sent
