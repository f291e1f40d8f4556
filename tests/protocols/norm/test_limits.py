"""What one address may ask of a sender and of a receiver."""

from typing import Any

from experiments.contract.fake_host import FakeHost
from protocols.norm.limits import BURST, MOST_SOURCES, NACKS, NEW_SENDERS, RepairLimit, SourceLimit
from protocols.norm.messages import Ack, Data, Nack, Squelch
from protocols.norm.receiver import NormReceiver
from protocols.norm.requests import Item, Request
from tests.protocols.norm.scenes import GROUP, MessageBuilder, SenderHarness, quick


def test_an_account_fills_with_time_and_belongs_to_a_host_whatever_its_port() -> None:
    limit = SourceLimit(2.0)
    found = [limit.admits(("10.0.0.1", port), 0.0, 1.0) for port in range(4)]
    assert found == [True, True, False, False]
    assert limit.admits(("10.0.0.2", 1), 0.0, 1.0)
    assert limit.admits(("10.0.0.1", 1), 1.0, 1.0)
    assert not limit.admits(("10.0.0.1", 1), 1.0, 1.0)


def test_a_bounded_number_of_addresses_is_remembered() -> None:
    limit = SourceLimit(2.0)
    for number in range(3 * MOST_SOURCES):
        limit.take(number, 1.0, 0.0, 1.0)
    assert len(limit._buckets) == MOST_SOURCES


def test_an_address_brings_a_few_new_senders_at_once_and_others_are_not_affected() -> None:
    host = FakeHost("listener")
    machine = NormReceiver(host, quick(), 9, GROUP)
    host.run(machine)
    for node in range(1, 1000):
        host.deliver(MessageBuilder(bytes(800), node=node).data(0, 0), ("10.0.0.66", node), GROUP, 0.0)
    assert len(machine.senders()) == NEW_SENDERS
    host.deliver(MessageBuilder(bytes(800), node=2000).data(0, 0), ("10.0.0.1", 6003), GROUP, 0.0)
    assert machine.senders()[-1].node == 2000  # type: ignore[index]


# -- the sender ------------------------------------------------------------------------------------------------------------

RATE = 1e6
EVERYTHING = Request(2, 8, (Item(5, 0), Item(5, 0x7FFF)))
GOOD, BAD = ("10.0.0.2", 6003), ("10.0.0.66", 6003)


def sending(**settings: Any) -> SenderHarness:
    """Return a sender with a limit, in the middle of an object."""
    sender = SenderHarness(**{"rate": RATE, "grtt": 0.01, "parity": 0, "repair_share": 0.25, **settings})
    sender.submit(4_000_000)
    sender.run_until(1.0)
    return sender


def ask(sender: SenderHarness, source: Any, *requests: Request) -> None:
    """Deliver a NACK from an address."""
    nack = Nack(7, 0, 1, 7, 0, 0, requests)
    sender.host.deliver(nack, source, GROUP, sender.now)


def new_and_repairs(sender: SenderHarness, since: int) -> tuple[int, int]:
    """Return how many messages with new content and with repairs were sent since the first `since`."""
    found = sender.messages_of(Data)[since:]
    return sum(not message.repair for message in found), sum(message.repair for message in found)


def test_new_content_keeps_its_share_whatever_is_requested() -> None:
    sender = sending()
    since = len(sender.messages_of(Data))
    for step in range(100):
        ask(sender, (f"10.0.1.{step}", 1), EVERYTHING)
        sender.run_until(1.0 + 0.02 * step)
    new, repairs = new_and_repairs(sender, since)
    burst = BURST * RATE / 100
    assert new > 0.7 * (new + repairs - burst)
    assert repairs > burst, "requests are served all the same"


def test_without_a_limit_requests_stop_new_content() -> None:
    sender = sending(repair_share=1.0)
    since = len(sender.messages_of(Data))
    for step in range(100):
        ask(sender, BAD, EVERYTHING)
        sender.run_until(1.0 + 0.02 * step)
    new, repairs = new_and_repairs(sender, since)
    assert new < 0.2 * repairs


def test_a_range_that_is_longer_than_a_segment_is_served() -> None:
    sender = SenderHarness(rate=RATE, grtt=0.01, parity=0, repair_share=0.25, segment=8)
    sender.submit(4000)
    sender.run_until(1.0)
    ask(sender, GOOD, Request(2, 1, (Item(5, 0, 1, 0), Item(5, 0, 1, 3))))
    sender.run_until(2.0)
    assert sender.machine.counts()["repairs_sent"] == 4


def test_an_address_that_asked_for_everything_waits_and_another_is_served() -> None:
    sender = sending()
    ask(sender, BAD, EVERYTHING)
    sender.run_until(1.2)
    item = sender.machine._window.objects[0]
    item.repair_blocks.clear()
    item.wanted.clear()
    ask(sender, BAD, EVERYTHING)
    assert not item.requested
    ask(sender, GOOD, Request(1, 1, (Item(5, 0, 1, 2),)))
    assert item.requested


def test_a_sender_with_nothing_else_to_do_serves_everybody() -> None:
    sender = SenderHarness(rate=1e6, grtt=0.01, parity=0, repair_share=0.25)
    sender.submit(100_000)
    sender.run_until(2.0)
    for step in range(3):
        since = len(sender.messages_of(Data))
        ask(sender, BAD, EVERYTHING)
        sender.run_until(3.0 + step)
        assert new_and_repairs(sender, since)[1] >= 1000


def test_a_nack_longer_than_a_segment_is_ignored() -> None:
    sender = sending()
    item = sender.machine._window.objects[0]
    ask(sender, GOOD, Request(1, 1, tuple(Item(5, 0, 0, symbol % 8) for symbol in range(100))))
    assert not item.requested
    ask(sender, GOOD, Request(1, 1, tuple(Item(5, 0, 0, symbol % 8) for symbol in range(8))))
    assert item.requested


def test_an_address_that_sends_many_nacks_is_heard_now_and_then() -> None:
    limit = RepairLimit(0.5, 1e6)
    found = [limit.admits(BAD, 0.0, 0.1, is_idle=True) for _ in range(1000)]
    assert sum(found) == NACKS
    assert limit.admits(BAD, 0.1, 0.1, is_idle=True)


def test_what_an_address_may_request_at_once_follows_the_rate() -> None:
    limit = RepairLimit(0.5, 1e6)
    limit.follow(8e6)
    limit.charge(GOOD, 1_900_000, 0.0)
    assert limit.admits(GOOD, 0.0, 0.1, is_idle=False), "0.25 s of the new rate are 2 MB"
    limit.follow(1e6)
    limit.charge(BAD, 300_000, 0.0)
    assert not limit.admits(BAD, 0.0, 0.1, is_idle=False), "0.25 s of this one are 250 kB"


def test_with_congestion_control_repairs_are_limited_by_its_rate_from_the_start() -> None:
    sender = SenderHarness(rate=1e9, congestion="norm", probing="active", repair_share=0.25)
    limit, control = sender.machine._limit, sender.machine.congestion
    assert limit is not None
    assert control is not None
    assert limit._rate == 0.25 * control.rate


def test_at_most_one_squelch_is_sent_in_two_round_trips() -> None:
    sender = sending()
    for step in range(100):
        ask(sender, (f"10.0.2.{step}", 1), Request(1, 1, (Item(5, 0xC000 + step, 0, 0),)))
        sender.run_until(1.0 + 0.001 * step)
    assert 2 <= len(sender.messages_of(Squelch)) <= 0.1 / (2 * sender.machine.grtt) + 2


def test_an_echo_of_the_future_or_of_no_probe_changes_no_round_trip_time() -> None:
    sender = sending(probing="active")
    before = sender.machine.grtt
    for clock in (1, 999_000, (1 << 32) * 1_000_000 - 1, 5_000_000):
        sender.respond(clock, sender.now)
    assert sender.machine.grtt == before
    sender.respond(sender.machine._clock(0.5), sender.now)
    assert sender.machine.grtt > before, "half a second is possible"


def test_who_has_heard_no_probe_changes_no_round_trip_time() -> None:
    def estimate(echo: tuple[int, int], **settings: Any) -> float:
        sender = sending(**settings)
        sender.host.turn(2.0)
        node, instance = sender.machine._factory.origin.source_id, sender.machine._factory.origin.instance_id
        sender.host.deliver(Ack(7, 0, node, instance, 1, 0, *echo), BAD, GROUP, 2.0)
        return sender.machine.grtt

    for seconds in range(6):
        assert estimate((seconds, 1)) < 0.02
    assert max(estimate((seconds, 1), repair_share=1.0) for seconds in range(6)) > 0.5, "the clock of others begins at 1 s"
    clock = sending().machine._clock(0.0)
    assert estimate(divmod(clock, 1_000_000)) > 0.5, "who has heard a probe can tell this one from no far receiver"
