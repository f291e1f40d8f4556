"""A receiver's responses to GRTT probes."""

import pytest

from experiments.contract.content import pattern
from protocols.norm.messages import Ack, Nack
from tests.protocols.norm.scenes import GRTT, Listener, Voice, items

FACTOR = 4


def scene(**settings: object) -> tuple[Listener, Voice]:
    listener, voice = Listener(), Voice(pattern(2400), **settings)  # type: ignore[arg-type]
    listener.hear(*voice.whole())
    return listener, voice


def test_a_probe_is_answered_within_the_back_off_with_the_adjusted_sender_time() -> None:
    listener, voice = scene()
    listener.hear(voice.probe(3, 999_000), now=0.5)
    when = listener.at_expiry()
    assert 0.5 < when <= 0.5 + FACTOR * GRTT
    (ack,) = listener.acks
    assert (ack.source_id, ack.sender_id, ack.instance_id, ack.ack_type, ack.payload) == (9, 1, 1, 1, b"")
    assert ack.response_sec + ack.response_usec * 1e-6 == pytest.approx(3.999 + when - 0.5, abs=2e-6)
    assert ack.response_usec < 1_000_000


def test_responses_spread_over_four_grtt_even_without_back_off() -> None:
    waits = []
    for seed in range(20):
        listener, voice = Listener(seed=seed), Voice(pattern(2400), backoff=0)
        listener.hear(*voice.whole(), voice.probe())
        waits.append(listener.at_expiry())
    assert 0.0 < min(waits) < max(waits) <= 4 * GRTT
    assert len(set(waits)) == 20


def test_a_passive_probe_is_only_recorded() -> None:
    listener, voice = scene()
    listener.hear(voice.probe(active=False))
    listener.until(0.9)
    assert not listener.said


def test_a_response_of_another_receiver_suppresses_its_own() -> None:
    listener, voice = scene()
    listener.hear(voice.probe())
    listener.hear(Ack(77, 0, 1, 1, 1, 0, 1, 500), source="other")
    listener.until(0.9)
    assert not listener.said


@pytest.mark.parametrize("other", [Ack(77, 0, 2, 1, 1, 0, 1, 500), Ack(77, 0, 1, 9, 1, 0, 1, 500), Nack(77, 0, 1, 1, 0, 0, ())])
def test_messages_of_others_without_a_response_to_this_sender_do_not_suppress(other: Ack | Nack) -> None:
    listener, voice = scene()
    listener.hear(voice.probe())
    listener.hear(other, source="other")
    listener.until(0.9)
    assert len(listener.acks) == 1


def test_a_nack_carries_the_response() -> None:
    listener, voice = Listener(), Voice(pattern(2400))
    listener.hear(voice.probe(2, 0))
    listener.hear(*voice.block(0, without=(1,)), voice.data(1, 0))
    listener.until(0.9)
    (nack,) = listener.nacks
    when = next(when for when, message in listener.said if message is nack)
    assert nack.response_sec + nack.response_usec * 1e-6 == pytest.approx(2.0 + when, abs=2e-6)
    # The response is sent only once, whichever message comes first.
    assert len(listener.acks) == (listener.said[0][1] is not nack)


def test_after_a_response_the_receiver_skips_probes_for_some_time() -> None:
    listener, voice = scene()
    listener.hear(voice.probe(), now=0.1)
    answered = listener.at_expiry()
    listener.hear(voice.probe(), now=answered + (FACTOR - 0.01) * GRTT)
    listener.until(0.9)
    assert len(listener.acks) == 1
    listener.hear(voice.probe(), now=0.91)
    listener.until(1.5)
    assert len(listener.acks) == 2


def test_a_second_probe_before_the_response_gets_one_response_with_the_newer_time() -> None:
    listener, voice = scene()
    listener.hear(voice.probe(1, 0), now=0.1)
    due = listener.machine.deadline
    listener.hear(voice.probe(50, 0), now=0.1 + 1e-4)
    assert listener.machine.deadline == due
    listener.until(0.9)
    assert [ack.response_sec for ack in listener.acks] == [50]


def test_a_probe_before_any_content_is_answered() -> None:
    listener, voice = Listener(), Voice(pattern(2400))
    listener.hear(voice.probe())
    listener.until(0.9)
    assert len(listener.acks) == 1


def test_a_nack_before_any_probe_carries_no_response_and_suppresses_none() -> None:
    listener, voice = scene()
    listener.hear(voice.probe())
    listener.hear(Nack(77, 0, 1, 1, 0, 0, (items((0, 0, 8)),)), source="other")
    assert listener.machine.deadline < 1.0


def test_a_clock_that_exceeds_32_bits_wraps() -> None:
    listener, voice = scene()
    listener.hear(voice.probe(0xFFFFFFFF, 999_999), now=0.1)
    listener.at_expiry()
    (ack,) = listener.acks
    assert ack.response_sec == 0


def test_a_probe_of_an_earlier_instance_is_not_answered() -> None:
    listener, voice = scene()
    listener.hear(voice.probe(5000, 0))
    listener.hear(*Voice(pattern(2400), instance=2).whole())
    listener.until(0.9)
    assert not listener.said
