"""The NORM sender: order, pacing, flushing, and probing."""

from itertools import pairwise
from math import inf

import pytest

from experiments.contract.content import pattern
from protocols.events import FlushCompleted, ObjectSent
from protocols.norm.messages import (
    FLAG_FILE,
    FLAG_INFO,
    Data,
    Flush,
    Info,
    Probe,
)
from protocols.norm.wire.codec import NormCodec
from tests.protocols.norm.scenes import GROUP, GRTT, SenderHarness, items

LONG = 2400
"""Bytes of three blocks."""
FACTOR = 4


def flushed(sender: SenderHarness) -> bool:
    return bool(sender.events_of(FlushCompleted))


# -- order and content -------------------------------------------------------------------------------------------------


def test_a_sender_joins_its_group_and_sends_nothing_unsolicited_without_probing() -> None:
    sender = SenderHarness()
    assert sender.host.groups == [GROUP]
    sender.run_until(1000.0)
    assert not sender.sent
    assert sender.machine.deadline == inf


def test_objects_are_sent_in_order_each_with_its_norm_info_first() -> None:
    sender = SenderHarness()
    assert sender.submit(250, 100, info=b"name") == [0, 1]
    sender.run_until(10.0)
    kinds = [(message.kind, message.object_id) for _, _, message in sender.sent if not isinstance(message, Flush)]
    assert kinds == [("info", 0), *[("data", 0)] * 3, ("info", 1), ("data", 1)]
    assert sender.symbols() == [(0, 0, 0), (0, 0, 1), (0, 0, 2), (1, 0, 0)]
    assert sender.events_of(ObjectSent) == [ObjectSent(0), ObjectSent(1)]


def test_every_message_goes_to_the_group_with_its_encoded_size() -> None:
    sender, codec = SenderHarness(probing="active"), NormCodec()
    sender.submit(LONG, info=b"name")
    sender.run_until(10.0)
    for packet in sender.host.packets:
        assert packet.to == GROUP
        assert packet.size == len(codec.encode(packet.message))


def test_sequence_numbers_have_no_gaps() -> None:
    sender = SenderHarness(probing="active")
    sender.submit(*[100] * 20, info=b"name")
    sender.run_until(5.0)
    assert [message.sequence for _, _, message in sender.sent] == list(range(len(sender.sent)))


def test_data_has_its_content_coding_and_flags() -> None:
    sender = SenderHarness()
    sender.submit(2350, info=b"name")
    sender.run_until(5.0)
    made = sender.messages_of(Data)
    assert b"".join(data.payload or b"" for data in made) == pattern(2350, seed=1)
    assert {data.flags for data in made} == {FLAG_FILE | FLAG_INFO}
    (fti,) = {data.fti for data in made}
    assert fti is not None
    assert (fti.fec_id, fti.object_size, fti.segment, fti.block, fti.parity) == (5, 2350, 100, 8, 4)
    (origin,) = {data.origin for data in made}
    assert (origin.source_id, origin.instance_id, origin.backoff) == (1, 7, FACTOR)


def test_without_info_there_is_no_norm_info_except_for_an_empty_object() -> None:
    sender = SenderHarness()
    sender.submit(100, 0)
    sender.run_until(5.0)
    assert [info.object_id for info in sender.messages_of(Info)] == [1]
    assert [data.flags & FLAG_INFO for data in sender.messages_of(Data)] == [0]


def test_proactive_parity_follows_its_block() -> None:
    sender = SenderHarness(auto_parity=2)
    sender.submit(1600)
    sender.run_until(5.0)
    assert sender.symbols() == [(0, block, symbol) for block in range(2) for symbol in range(10)]
    assert sender.machine.counts()["data_sent"] == 20


# -- pacing ------------------------------------------------------------------------------------------------------------


def test_each_message_waits_for_the_transmission_time_of_the_previous_one() -> None:
    sender = SenderHarness(rate=10_000.0)
    sender.submit(LONG, info=b"name")
    sender.run_until(1.0)
    clear = 0.0
    for when, size, _ in sender.sent[:24]:
        assert when == pytest.approx(clear, abs=1e-9)
        clear = when + size / 10_000.0


def test_a_submission_after_a_pause_is_sent_at_once_without_credit_for_the_pause() -> None:
    sender = SenderHarness(rate=10_000.0)
    sender.submit(1000)
    sender.run_until(50.0)
    before = len(sender.sent)
    sender.submit(1000)
    sender.run_until(50.05)
    octets = sum(size for _, size, _ in sender.sent[before:])
    assert sender.sent[before][0] == 50.0
    # At most 50 ms worth of packets, the catch-up of 20 ms, and one more packet.
    assert octets <= 10_000 * (0.05 + 0.02) + 150


def test_a_sender_woken_late_catches_up_by_at_most_20_ms() -> None:
    sender = SenderHarness(rate=100_000.0)
    sender.submit(20_000)
    sender.run_until(0.01)
    before = len(sender.sent)
    sender.host.turn(5.0)
    octets = sum(size for _, size, _ in sender.sent[before:])
    assert 0.015 * 100_000 < octets <= 0.02 * 100_000 + 150


def test_a_sender_woken_slightly_late_keeps_its_rate() -> None:
    sender = SenderHarness(rate=100_000.0)
    sender.submit(20_000)
    while len(sender.messages_of(Data)) < 200:
        sender.host.turn(sender.host.due + 0.003)
    octets = sum(size for _, size, _ in sender.sent)
    assert sender.now == pytest.approx(octets / 100_000.0, abs=0.01)


def test_a_full_network_stops_the_sender_until_it_is_resumed() -> None:
    sender = SenderHarness()
    sender.host.room = 5
    sender.submit(LONG)
    sender.run_until(3.0)
    assert len(sender.sent) == 5
    sender.host.resume(3.0, 4)
    sender.run_until(6.0)
    assert len(sender.sent) == 9
    assert [when for when, _, _ in sender.sent[5:]] == pytest.approx([3.0 + i * sender.sent[5][1] / 1e6 for i in range(4)])
    sender.host.resume(6.0)
    sender.run_until(10.0)
    assert sender.symbols() == [(0, b, s) for b in range(3) for s in range(8)]
    assert flushed(sender)


def test_feedback_is_processed_while_the_network_is_full() -> None:
    sender = SenderHarness()
    sender.submit(LONG)
    sender.run_until(1.0, lambda: len(sender.sent) == 20)
    sender.host.room = 1
    sender.run_until(0.01)
    sender.nack(items((0, 0, 8)))
    sender.run_until(2.0)
    sender.host.resume(2.0)
    sender.run_until(4.0)
    assert (0, 0, 8) in sender.symbols()


# -- flushing ----------------------------------------------------------------------------------------------------------


def test_robust_flushes_are_sent_at_intervals_of_two_grtt() -> None:
    sender = SenderHarness(robust=6)
    sender.submit(LONG)
    sender.run_until(10.0)
    times = sender.times(Flush)
    assert len(times) == 6
    assert [b - a for a, b in pairwise(times)] == pytest.approx([2 * GRTT] * 5)
    assert times[0] - sender.times(Data)[-1] < 0.001
    assert {(flush.object_id, flush.block, flush.symbol) for flush in sender.messages_of(Flush)} == {(0, 2, 7)}


def test_completion_is_reported_once_after_the_back_off_of_receivers() -> None:
    sender = SenderHarness()
    sender.submit(LONG)
    sender.run_until(sender.now + 10.0, lambda: flushed(sender))
    assert sender.now - sender.times(Flush)[-1] == pytest.approx((FACTOR + 2) * GRTT)
    sender.run_until(100.0)
    assert sender.events_of(FlushCompleted) == [FlushCompleted(0)]
    assert sender.machine.deadline == inf


def test_new_content_restarts_the_flushes() -> None:
    sender = SenderHarness()
    sender.submit(100)
    sender.run_until(10.0, lambda: len(sender.messages_of(Flush)) == 2)
    sender.submit(100)
    sender.run_until(20.0)
    assert [flush.object_id for flush in sender.messages_of(Flush)] == [0, 0, 1, 1, 1, 1]
    assert sender.events_of(FlushCompleted) == [FlushCompleted(1)]


def test_a_repair_restarts_the_flushes() -> None:
    sender = SenderHarness()
    sender.submit(LONG)
    sender.run_until(10.0, lambda: len(sender.messages_of(Flush)) == 3)
    sender.nack(items((0, 0, 8)))
    sender.run_until(20.0)
    assert len(sender.messages_of(Flush)) == 3 + 4
    assert len(sender.events_of(FlushCompleted)) == 1


@pytest.mark.parametrize("probing", ["none", "active"])
def test_no_flush_is_sent_while_requests_are_aggregated(probing: str) -> None:
    sender = SenderHarness(probing=probing, probe_min=0.01, probe_max=0.01)
    sender.submit(LONG)
    sender.run_until(10.0, lambda: len(sender.messages_of(Flush)) == 1)
    requested_by = sender.now
    sender.nack(items((0, 0, 8)))
    sender.run_until(20.0, lambda: len(sender.messages_of(Data)) == 25)
    assert len(sender.messages_of(Flush)) == 1
    assert sender.now == pytest.approx(requested_by + (FACTOR + 1) * GRTT, rel=1e-2)


def test_the_flush_of_an_empty_object_names_the_symbol_before_the_first() -> None:
    for fec, last in ((5, (0xFFFFFF, 0xFF)), (129, (0xFFFFFFFF, 0xFFFF)), (0, (0xFFFF, 0xFFFF))):
        sender = SenderHarness(fec=fec, parity=0)
        sender.submit(0)
        sender.run_until(5.0)
        assert {(flush.block, flush.symbol) for flush in sender.messages_of(Flush)} == {last}


def test_each_round_of_submissions_is_completed() -> None:
    sender = SenderHarness()
    for expected in range(3):
        sender.submit(100)
        sender.run_until(sender.now + 10.0)
        assert [event.object_id for event in sender.events_of(FlushCompleted)] == list(range(expected + 1))


# -- probing -----------------------------------------------------------------------------------------------------------


def test_the_first_probe_is_sent_at_once_and_the_next_with_the_next_message() -> None:
    sender = SenderHarness(probing="active")
    sender.run_until(100.0)
    assert sender.times(Probe) == [0.0]
    assert sender.machine.deadline == inf
    sender.submit(100)
    sender.run_until(100.5)
    assert sender.times(Probe)[:2] == pytest.approx([0.0, 100.0], abs=0.01)


def test_probes_are_sent_at_growing_intervals_during_transmission() -> None:
    sender = SenderHarness(probing="active", rate=2000.0, probe_min=1.0, probe_max=3.0)
    sender.submit(40_000)
    sender.run_until(20.0)
    times = sender.times(Probe)[:7]
    missing_symbols = [b - a for a, b in pairwise(times)]
    assert missing_symbols == pytest.approx([1.0, 1.5, 2.25, 3.0, 3.0, 3.0], abs=0.1)


def test_probing_ends_with_the_transmission() -> None:
    sender = SenderHarness(probing="active", probe_min=0.01, probe_max=0.02)
    sender.submit(1000)
    sender.run_until(1000.0)
    last = max(sender.times(Flush))
    assert max(sender.times(Probe)) <= last + 0.5
    assert sender.machine.deadline == inf


@pytest.mark.parametrize(("probing", "rate", "count"), [("active", True, 1), ("passive", False, 1), ("none", False, 0)])
def test_only_active_probes_request_responses(probing: str, rate: bool, count: int) -> None:
    sender = SenderHarness(probing=probing)
    sender.run_until(1.0)
    probes = sender.messages_of(Probe)
    assert len(probes) == count
    assert all((probe.rate is not None) == rate for probe in probes)


def test_probes_are_numbered_and_carry_a_nonzero_clock() -> None:
    sender = SenderHarness(probing="active", rate=2000.0)
    sender.submit(20_000)
    sender.run_until(5.0)
    found = [(probe.cc_sequence, probe.send_sec + probe.send_usec / 1e6) for probe in sender.messages_of(Probe)]
    times = sender.times(Probe)
    assert [number for number, _ in found] == list(range(len(times)))
    assert found[0][1] > 0.0
    assert [clock - found[0][1] for _, clock in found] == pytest.approx([when - times[0] for when in times], abs=2e-6)


def respond(sender: SenderHarness, rtt: float) -> None:
    """Deliver a response to the last probe with a round-trip time of `rtt` seconds."""
    probe, when = sender.messages_of(Probe)[-1], sender.times(Probe)[-1]
    clock = probe.send_sec * 1_000_000 + probe.send_usec + round((sender.now - when) * 1e6)
    sender.respond(clock - round(rtt * 1e6), sender.now)


def test_responses_raise_and_lower_the_advertised_grtt() -> None:
    sender = SenderHarness(probing="active", rate=100_000.0, grtt=0.05, probe_min=0.2, probe_max=0.2)
    sender.submit(300_000)
    first = sender.machine.grtt
    sender.run_until(0.5)
    respond(sender, 0.4)
    assert sender.machine.grtt == pytest.approx(0.25 * 0.05 + 0.75 * 0.4, rel=0.08)
    sender.run_until(0.51)
    assert sender.messages_of(Data)[-1].origin.grtt > sender.messages_of(Data)[0].origin.grtt
    assert sender.machine.counts()["acks_received"] == 1
    high = sender.machine.grtt
    for i in range(20):
        sender.run_until(0.7 + 0.2 * i)
        respond(sender, 0.01)
    assert sender.machine.grtt < 0.6 * high
    assert sender.machine.grtt >= first * 0.2


def test_the_response_in_a_nack_is_a_sample() -> None:
    sender = SenderHarness(probing="active", grtt=0.05)
    sender.submit(LONG)
    sender.run_until(0.5)
    probe = sender.messages_of(Probe)[0]
    before = sender.machine.grtt
    sender.nack(items((0, 0, 8)), echo=probe.send_sec * 1_000_000 + probe.send_usec + 100_000)
    assert sender.machine.grtt > before


def test_feedback_for_other_senders_or_earlier_instances_is_ignored() -> None:
    sender = SenderHarness(probing="active")
    sender.submit(LONG)
    sender.run_until(0.5)
    before = sender.machine.counts(), len(sender.messages_of(Data)), sender.machine.grtt
    sender.nack(items((0, 0, 8)), sender=2, echo=1)
    sender.nack(items((0, 0, 8)), instance=6, echo=1)
    sender.run_until(0.6)
    after = sender.machine.counts()
    assert (after["nacks_received"], len(sender.messages_of(Data)), sender.machine.grtt) == (0, *before[1:])
