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
from tests.protocols.norm.scenes import GROUP, GRTT, Talker, items

LONG = 2400
"""Bytes of three blocks."""
FACTOR = 4


def flushed(talker: Talker) -> bool:
    return bool(talker.told(FlushCompleted))


# -- order and content -------------------------------------------------------------------------------------------------


def test_a_sender_joins_its_group_and_sends_nothing_unsolicited_without_probing() -> None:
    talker = Talker()
    assert talker.host.groups == [GROUP]
    talker.until(1000.0)
    assert not talker.said
    assert talker.machine.deadline == inf


def test_objects_are_sent_in_order_each_with_its_norm_info_first() -> None:
    talker = Talker()
    assert talker.submit(250, 100, info=b"name") == [0, 1]
    talker.until(10.0)
    kinds = [(message.kind, message.object_id) for _, _, message in talker.said if not isinstance(message, Flush)]
    assert kinds == [("info", 0), *[("data", 0)] * 3, ("info", 1), ("data", 1)]
    assert talker.symbols() == [(0, 0, 0), (0, 0, 1), (0, 0, 2), (1, 0, 0)]
    assert talker.told(ObjectSent) == [ObjectSent(0), ObjectSent(1)]


def test_every_message_goes_to_the_group_with_its_encoded_size() -> None:
    talker, codec = Talker(probing="active"), NormCodec()
    talker.submit(LONG, info=b"name")
    talker.until(10.0)
    for packet in talker.host.packets:
        assert packet.to == GROUP
        assert packet.size == len(codec.encode(packet.message))


def test_sequence_numbers_have_no_gaps() -> None:
    talker = Talker(probing="active")
    talker.submit(*[100] * 20, info=b"name")
    talker.until(5.0)
    assert [message.sequence for _, _, message in talker.said] == list(range(len(talker.said)))


def test_data_has_its_content_coding_and_flags() -> None:
    talker = Talker()
    talker.submit(2350, info=b"name")
    talker.until(5.0)
    made = talker.of(Data)
    assert b"".join(data.payload or b"" for data in made) == pattern(2350, seed=1)
    assert {data.flags for data in made} == {FLAG_FILE | FLAG_INFO}
    (fti,) = {data.fti for data in made}
    assert fti is not None
    assert (fti.fec_id, fti.object_size, fti.segment, fti.block, fti.parity) == (5, 2350, 100, 8, 4)
    (origin,) = {data.origin for data in made}
    assert (origin.source_id, origin.instance_id, origin.backoff) == (1, 7, FACTOR)


def test_without_info_there_is_no_norm_info_except_for_an_empty_object() -> None:
    talker = Talker()
    talker.submit(100, 0)
    talker.until(5.0)
    assert [info.object_id for info in talker.of(Info)] == [1]
    assert [data.flags & FLAG_INFO for data in talker.of(Data)] == [0]


def test_proactive_parity_follows_its_block() -> None:
    talker = Talker(auto_parity=2)
    talker.submit(1600)
    talker.until(5.0)
    assert talker.symbols() == [(0, block, symbol) for block in range(2) for symbol in range(10)]
    assert talker.machine.counts()["data_sent"] == 20


# -- pacing ------------------------------------------------------------------------------------------------------------


def test_each_message_waits_for_the_transmission_time_of_the_previous_one() -> None:
    talker = Talker(rate=10_000.0)
    talker.submit(LONG, info=b"name")
    talker.until(1.0)
    clear = 0.0
    for when, size, _ in talker.said[:24]:
        assert when == pytest.approx(clear, abs=1e-9)
        clear = when + size / 10_000.0


def test_a_submission_after_a_pause_is_sent_at_once_without_credit_for_the_pause() -> None:
    talker = Talker(rate=10_000.0)
    talker.submit(1000)
    talker.until(50.0)
    before = len(talker.said)
    talker.submit(1000)
    talker.until(50.05)
    octets = sum(size for _, size, _ in talker.said[before:])
    assert talker.said[before][0] == 50.0
    # At most 50 ms worth of packets, the catch-up of 20 ms, and one more packet.
    assert octets <= 10_000 * (0.05 + 0.02) + 150


def test_a_sender_woken_late_catches_up_by_at_most_20_ms() -> None:
    talker = Talker(rate=100_000.0)
    talker.submit(20_000)
    talker.until(0.01)
    before = len(talker.said)
    talker.host.turn(5.0)
    octets = sum(size for _, size, _ in talker.said[before:])
    assert 0.015 * 100_000 < octets <= 0.02 * 100_000 + 150


def test_a_sender_woken_slightly_late_keeps_its_rate() -> None:
    talker = Talker(rate=100_000.0)
    talker.submit(20_000)
    while len(talker.of(Data)) < 200:
        talker.host.turn(talker.host.due + 0.003)
    octets = sum(size for _, size, _ in talker.said)
    assert talker.now == pytest.approx(octets / 100_000.0, abs=0.01)


def test_a_full_network_stops_the_sender_until_it_is_resumed() -> None:
    talker = Talker()
    talker.host.room = 5
    talker.submit(LONG)
    talker.until(3.0)
    assert len(talker.said) == 5
    talker.host.resume(3.0, 4)
    talker.until(6.0)
    assert len(talker.said) == 9
    assert [when for when, _, _ in talker.said[5:]] == pytest.approx([3.0 + i * talker.said[5][1] / 1e6 for i in range(4)])
    talker.host.resume(6.0)
    talker.until(10.0)
    assert talker.symbols() == [(0, b, s) for b in range(3) for s in range(8)]
    assert flushed(talker)


def test_feedback_is_processed_while_the_network_is_full() -> None:
    talker = Talker()
    talker.submit(LONG)
    talker.until(1.0, lambda: len(talker.said) == 20)
    talker.host.room = 1
    talker.until(0.01)
    talker.nack(items((0, 0, 8)))
    talker.until(2.0)
    talker.host.resume(2.0)
    talker.until(4.0)
    assert (0, 0, 8) in talker.symbols()


# -- flushing ----------------------------------------------------------------------------------------------------------


def test_robust_flushes_are_sent_at_intervals_of_two_grtt() -> None:
    talker = Talker(robust=6)
    talker.submit(LONG)
    talker.until(10.0)
    times = talker.times(Flush)
    assert len(times) == 6
    assert [b - a for a, b in pairwise(times)] == pytest.approx([2 * GRTT] * 5)
    assert times[0] - talker.times(Data)[-1] < 0.001
    assert {(flush.object_id, flush.block, flush.symbol) for flush in talker.of(Flush)} == {(0, 2, 7)}


def test_completion_is_reported_once_after_the_back_off_of_receivers() -> None:
    talker = Talker()
    talker.submit(LONG)
    talker.until(talker.now + 10.0, lambda: flushed(talker))
    assert talker.now - talker.times(Flush)[-1] == pytest.approx((FACTOR + 2) * GRTT)
    talker.until(100.0)
    assert talker.told(FlushCompleted) == [FlushCompleted(0)]
    assert talker.machine.deadline == inf


def test_new_content_restarts_the_flushes() -> None:
    talker = Talker()
    talker.submit(100)
    talker.until(10.0, lambda: len(talker.of(Flush)) == 2)
    talker.submit(100)
    talker.until(20.0)
    assert [flush.object_id for flush in talker.of(Flush)] == [0, 0, 1, 1, 1, 1]
    assert talker.told(FlushCompleted) == [FlushCompleted(1)]


def test_a_repair_restarts_the_flushes() -> None:
    talker = Talker()
    talker.submit(LONG)
    talker.until(10.0, lambda: len(talker.of(Flush)) == 3)
    talker.nack(items((0, 0, 8)))
    talker.until(20.0)
    assert len(talker.of(Flush)) == 3 + 4
    assert len(talker.told(FlushCompleted)) == 1


@pytest.mark.parametrize("probing", ["none", "active"])
def test_no_flush_is_sent_while_requests_are_aggregated(probing: str) -> None:
    talker = Talker(probing=probing, probe_min=0.01, probe_max=0.01)
    talker.submit(LONG)
    talker.until(10.0, lambda: len(talker.of(Flush)) == 1)
    asked = talker.now
    talker.nack(items((0, 0, 8)))
    talker.until(20.0, lambda: len(talker.of(Data)) == 25)
    assert len(talker.of(Flush)) == 1
    assert talker.now == pytest.approx(asked + (FACTOR + 1) * GRTT, rel=1e-2)


def test_the_flush_of_an_empty_object_names_the_symbol_before_the_first() -> None:
    for fec, last in ((5, (0xFFFFFF, 0xFF)), (129, (0xFFFFFFFF, 0xFFFF)), (0, (0xFFFF, 0xFFFF))):
        talker = Talker(fec=fec, parity=0)
        talker.submit(0)
        talker.until(5.0)
        assert {(flush.block, flush.symbol) for flush in talker.of(Flush)} == {last}


def test_each_round_of_submissions_is_completed() -> None:
    talker = Talker()
    for expected in range(3):
        talker.submit(100)
        talker.until(talker.now + 10.0)
        assert [event.object_id for event in talker.told(FlushCompleted)] == list(range(expected + 1))


# -- probing -----------------------------------------------------------------------------------------------------------


def test_the_first_probe_is_sent_at_once_and_the_next_with_the_next_message() -> None:
    talker = Talker(probing="active")
    talker.until(100.0)
    assert talker.times(Probe) == [0.0]
    assert talker.machine.deadline == inf
    talker.submit(100)
    talker.until(100.5)
    assert talker.times(Probe)[:2] == pytest.approx([0.0, 100.0], abs=0.01)


def test_probes_are_sent_at_growing_intervals_during_transmission() -> None:
    talker = Talker(probing="active", rate=2000.0, probe_min=1.0, probe_max=3.0)
    talker.submit(40_000)
    talker.until(20.0)
    times = talker.times(Probe)[:7]
    missing_symbols = [b - a for a, b in pairwise(times)]
    assert missing_symbols == pytest.approx([1.0, 1.5, 2.25, 3.0, 3.0, 3.0], abs=0.1)


def test_probing_ends_with_the_transmission() -> None:
    talker = Talker(probing="active", probe_min=0.01, probe_max=0.02)
    talker.submit(1000)
    talker.until(1000.0)
    last = max(talker.times(Flush))
    assert max(talker.times(Probe)) <= last + 0.5
    assert talker.machine.deadline == inf


@pytest.mark.parametrize(("probing", "rate", "count"), [("active", True, 1), ("passive", False, 1), ("none", False, 0)])
def test_only_active_probes_request_responses(probing: str, rate: bool, count: int) -> None:
    talker = Talker(probing=probing)
    talker.until(1.0)
    probes = talker.of(Probe)
    assert len(probes) == count
    assert all((probe.rate is not None) == rate for probe in probes)


def test_probes_are_numbered_and_carry_a_nonzero_clock() -> None:
    talker = Talker(probing="active", rate=2000.0)
    talker.submit(20_000)
    talker.until(5.0)
    found = [(probe.cc_sequence, probe.send_sec + probe.send_usec / 1e6) for probe in talker.of(Probe)]
    times = talker.times(Probe)
    assert [number for number, _ in found] == list(range(len(times)))
    assert found[0][1] > 0.0
    assert [clock - found[0][1] for _, clock in found] == pytest.approx([when - times[0] for when in times], abs=2e-6)


def answer(talker: Talker, rtt: float) -> None:
    """Deliver a response to the last probe with a round-trip time of `rtt` seconds."""
    probe, when = talker.of(Probe)[-1], talker.times(Probe)[-1]
    clock = probe.send_sec * 1_000_000 + probe.send_usec + round((talker.now - when) * 1e6)
    talker.answer(clock - round(rtt * 1e6), talker.now)


def test_responses_raise_and_lower_the_advertised_grtt() -> None:
    talker = Talker(probing="active", rate=100_000.0, grtt=0.05, probe_min=0.2, probe_max=0.2)
    talker.submit(300_000)
    first = talker.machine.grtt
    talker.until(0.1)
    answer(talker, 0.4)
    assert talker.machine.grtt == pytest.approx(0.25 * 0.05 + 0.75 * 0.4, rel=0.08)
    talker.until(0.11)
    assert talker.of(Data)[-1].origin.grtt > talker.of(Data)[0].origin.grtt
    assert talker.machine.counts()["acks_received"] == 1
    high = talker.machine.grtt
    for i in range(20):
        talker.until(0.3 + 0.2 * i)
        answer(talker, 0.01)
    assert talker.machine.grtt < 0.6 * high
    assert talker.machine.grtt >= first * 0.2


def test_the_response_in_a_nack_is_a_sample() -> None:
    talker = Talker(probing="active", grtt=0.05)
    talker.submit(LONG)
    talker.until(0.1)
    probe = talker.of(Probe)[0]
    before = talker.machine.grtt
    talker.nack(items((0, 0, 8)), echo=probe.send_sec * 1_000_000 + probe.send_usec - 400_000)
    assert talker.machine.grtt > before


def test_feedback_for_other_senders_or_earlier_instances_is_ignored() -> None:
    talker = Talker(probing="active")
    talker.submit(LONG)
    talker.until(0.5)
    before = talker.machine.counts(), len(talker.of(Data)), talker.machine.grtt
    talker.nack(items((0, 0, 8)), sender=2, echo=1)
    talker.nack(items((0, 0, 8)), instance=6, echo=1)
    talker.until(0.6)
    after = talker.machine.counts()
    assert (after["nacks_received"], len(talker.of(Data)), talker.machine.grtt) == (0, *before[1:])
