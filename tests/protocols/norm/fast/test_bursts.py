"""What a NORM sender promises is what it then sends."""

from typing import Any

import pytest

from protocols.fast.lookahead import Burst
from protocols.norm.messages import Data
from tests.protocols.norm.scenes import Talker, items, ranges


class BurstCarrier:
    """Carries a run, of which so many were sent, and keeps what it is told."""

    def __init__(self, run: Burst, sent: int) -> None:
        self.run, self.sent = run, sent
        self.shortened: list[float] = []

    def report(self) -> None:
        """As many as it was made with."""
        last = self.run.begin + (self.sent - 1) * self.run.interval
        self.run.note(self.sent, last, last + self.run.interval)

    def shorten(self, until: float) -> None:
        """Keep it."""
        self.shortened.append(until)


def talker(size: int = 9_600, **settings: Any) -> Talker:
    """A sender with counted content that has sent its first symbols."""
    made = Talker(**{"probing": "passive", **settings})
    made.submit(size, counted=True)
    made.until(0.01, lambda: len(made.of(Data)) == 3)
    return made


def promised(runs: list[Burst]) -> list[tuple[float, Data]]:
    """When each message is due."""
    rows, begin = [], runs[0].begin
    for run in runs:
        assert run.begin == begin
        for number in range(run.count):
            message = run.message(number)
            assert isinstance(message, Data)
            assert message.expects_if_complete is run.position(number)
            assert message.expects is (None if run.next_visible(number) == number else message.expects_if_complete)
            assert message.next_state is run.position(number + 1)
            assert message.identity == run.identity + number
            if begin < run.until:
                rows.append((begin, message))
            begin += run.interval
    return rows


def sent(made: Talker, since: int) -> list[tuple[float, Data]]:
    """The DATA messages sent after so many of all messages."""
    return [(when, message) for when, _, message in made.said[since:] if isinstance(message, Data)]


def assert_kept(made: Talker) -> list[Burst]:
    """Nobody carries what is promised, so the sender does it itself."""
    runs, since = made.machine.plan_bursts(), len(made.said)
    rows = promised(runs)
    made.until(rows[-1][0])
    told = sent(made, since)
    assert told == rows
    assert [message.next_state for _, message in told] == [message.next_state for _, message in rows]
    assert [message.expects is None for _, message in told] == [message.expects is None for _, message in rows]
    return runs


@pytest.mark.parametrize("settings", [{}, {"auto_parity": 2}, {"block": 3}, {"block": 16}], ids=str)
def test_the_symbols_of_many_blocks_are_promised_as_they_are_sent(settings: dict[str, int]) -> None:
    (run,) = assert_kept(talker(**settings))
    assert run.count == (5 if "auto_parity" in settings else 92)


def test_repairs_by_parity_come_before_the_symbols_that_follow() -> None:
    made = talker(grtt=0.002, backoff=1)
    made.until(0.1, lambda: len(made.of(Data)) == 20)
    made.nack(ranges((0, 0, 8), (0, 0, 9)), items((0, 1, 8)))
    made.until(1.0, lambda: made.machine.deadline > made.now and len(made.machine.plan_bursts()) > 1)
    runs = assert_kept(made)
    assert [run.count for run in runs[:-1]] == [2, 1]


def test_nothing_is_promised_while_source_symbols_are_asked_for() -> None:
    made = talker(grtt=0.002, backoff=1)
    made.until(0.1, lambda: len(made.of(Data)) == 12)
    assert made.machine.plan_bursts()
    before = len(made.of(Data))
    made.nack(items((0, 0, 3)))
    made.until(1.0, lambda: not made.machine.plan_bursts())
    made.until(1.0, lambda: any(data.repair for data in made.of(Data)[before:]))
    assert made.symbols()[-1] == (0, 0, 3)


def test_a_nack_leaves_what_is_promised_until_the_repairs() -> None:
    made = talker(grtt=0.002, backoff=1)
    (run,) = made.machine.plan_bursts()
    carrier = BurstCarrier(run, 20)
    run.carrier = carrier
    run.take(run.count, run.begin + run.count * run.interval)
    assert made.machine.deadline > made.now + 80 * run.interval
    now = run.begin + 19.5 * run.interval
    made.nack(items((0, 1, 8)), now=now)
    (until,) = carrier.shortened
    assert now < until == run.until < run.begin + run.count * run.interval
    # Asked for the same again it has nothing to change.
    made.nack(items((0, 1, 8)), now=now)
    assert carrier.shortened == [until]
    run.end()
    assert made.machine.plan_bursts()[0].identity == run.identity + 20
    assert made.machine.counts()["data_sent"] == 23
