"""The bursts that a NORM sender plans equal what it then sends."""

from typing import Any

import pytest

from protocols.fast.lookahead import Burst
from protocols.norm.fast import FastNormSender
from protocols.norm.fast.messages import FastData
from protocols.norm.messages import Data
from tests.protocols.norm.scenes import SenderHarness, items, ranges


class BurstCarrier:
    """Carrier of a burst of which `sent` messages were sent; keeps the calls."""

    def __init__(self, burst: Burst, sent: int) -> None:
        self.burst, self.sent = burst, sent
        self.shortened: list[float] = []

    def report(self) -> None:
        """Return the number of messages sent."""
        last = self.burst.begin + (self.sent - 1) * self.burst.interval
        self.burst.commit(self.sent, last, last + self.burst.interval)

    def shorten(self, until: float) -> None:
        """Record the call."""
        self.shortened.append(until)


def sender(size: int = 9_600, **settings: Any) -> SenderHarness:
    """Return a sender with counted content that has sent its first symbols."""
    made = SenderHarness(kind=FastNormSender, **{"probing": "passive", **settings})
    made.submit(size, counted=True)
    made.run_until(0.01, lambda: len(made.messages_of(Data)) == 3)
    return made


def plan(made: SenderHarness) -> list[Burst]:
    """Return the bursts that the sender plans now."""
    assert isinstance(made.machine, FastNormSender)
    return made.machine.plan_bursts()


def planned(bursts: list[Burst]) -> list[tuple[float, FastData]]:
    """Return (time, message) of each planned message."""
    rows, begin = [], bursts[0].begin
    for burst in bursts:
        assert burst.begin == begin
        for number in range(burst.count):
            message = burst.message(number)
            assert isinstance(message, FastData)
            assert message.expects_if_complete is burst.position(number)
            assert message.expects is (None if burst.next_visible(number) == number else message.expects_if_complete)
            assert message.next_state is burst.position(number + 1)
            assert message.identity == burst.identity + number
            if begin < burst.until:
                rows.append((begin, message))
            begin += burst.interval
    return rows


def sent(made: SenderHarness, since: int) -> list[tuple[float, FastData]]:
    """Return the DATA messages sent after the first `since` messages."""
    return [(when, message) for when, _, message in made.sent[since:] if isinstance(message, FastData)]


def assert_kept(made: SenderHarness) -> list[Burst]:
    """Check that the sender sends the planned bursts if no host carries them."""
    bursts, since = plan(made), len(made.sent)
    rows = planned(bursts)
    made.run_until(rows[-1][0])
    told = sent(made, since)
    assert told == rows
    assert [message.next_state for _, message in told] == [message.next_state for _, message in rows]
    assert [message.expects is None for _, message in told] == [message.expects is None for _, message in rows]
    return bursts


@pytest.mark.parametrize("settings", [{}, {"auto_parity": 2}, {"block": 3}, {"block": 16}], ids=str)
def test_the_symbols_of_many_blocks_are_planned_as_they_are_sent(settings: dict[str, int]) -> None:
    (burst,) = assert_kept(sender(**settings))
    assert burst.count == (5 if "auto_parity" in settings else 92)


def test_parity_repairs_precede_the_symbols_that_follow() -> None:
    made = sender(grtt=0.002, backoff=1)
    made.run_until(0.1, lambda: len(made.messages_of(Data)) == 20)
    made.nack(ranges((0, 0, 8), (0, 0, 9)), items((0, 1, 8)))
    made.run_until(1.0, lambda: made.machine.deadline > made.now and len(plan(made)) > 1)
    bursts = assert_kept(made)
    assert [burst.count for burst in bursts[:-1]] == [2, 1]


def test_nothing_is_planned_while_source_symbols_are_requested() -> None:
    made = sender(grtt=0.002, backoff=1)
    made.run_until(0.1, lambda: len(made.messages_of(Data)) == 12)
    assert plan(made)
    before = len(made.messages_of(Data))
    made.nack(items((0, 0, 3)))
    made.run_until(1.0, lambda: not plan(made))
    made.run_until(1.0, lambda: any(data.repair for data in made.messages_of(Data)[before:]))
    assert made.symbols()[-1] == (0, 0, 3)


def test_a_nack_keeps_the_plan_until_the_repairs_begin() -> None:
    made = sender(grtt=0.002, backoff=1)
    (burst,) = plan(made)
    carrier = BurstCarrier(burst, 20)
    burst.carrier = carrier
    burst.take(burst.count, burst.begin + burst.count * burst.interval)
    assert made.machine.deadline > made.now + 80 * burst.interval
    now = burst.begin + 19.5 * burst.interval
    made.nack(items((0, 1, 8)), now=now)
    (until,) = carrier.shortened
    assert now < until == burst.until < burst.begin + burst.count * burst.interval
    # A repeated request changes nothing.
    made.nack(items((0, 1, 8)), now=now)
    assert carrier.shortened == [until]
    burst.end()
    assert plan(made)[0].identity == burst.identity + 20
    assert made.machine.counts()["data_sent"] == 23


def test_a_nack_during_the_hold_off_keeps_the_repairs_before_the_first_block_it_requests() -> None:
    made = sender(parity=0, grtt=0.02, backoff=1)
    made.run_until(0.1, lambda: len(made.messages_of(Data)) == 40)
    made.nack(items(*((0, block, 1) for block in range(4))))
    made.run_until(1.0, lambda: any(data.repair for data in made.messages_of(Data)[40:]))
    burst = plan(made)[0]
    assert [burst.message(number).brief for number in range(burst.count)] == ["0.1.1", "0.2.1", "0.3.1"]
    carrier = BurstCarrier(burst, 1)
    burst.carrier = carrier
    burst.take(burst.count, burst.begin + burst.count * burst.interval)
    made.nack(items((0, 4, 0)), now=burst.begin)
    assert not carrier.shortened, "what it requests follows the burst"
    made.nack(items((0, 3, 0)), now=burst.begin)
    (until,) = carrier.shortened
    assert burst.begin + burst.interval < until < burst.begin + 2 * burst.interval
