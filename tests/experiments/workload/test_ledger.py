"""The ledger: what is due, promised, delivered, repeated, expired and lost, and which guarantees were broken."""

from typing import Any

import pytest

from experiments.workload.ledger import Ledger, SubscriptionAccount
from experiments.workload.publish import LIFE_SHIFT, MessagePlan, PublishWorkload
from protocols.messaging import Guarantees

ALL = Guarantees(promised=True, once=True, fifo=True, survives_publisher=True)
PUBLISHER = 7


def plan(**values: Any) -> MessagePlan:
    work = {"kind": "publish", "hosts": ["p"], "to": "topic:t", "size": 100, "rate": "10/s", **values}
    return MessagePlan(PublishWorkload.model_validate(work), 1, PUBLISHER)


def published(*at: float, accepted: int | None = None, life: int = 0, **values: Any) -> dict[str, Any]:
    """Return the result of a publisher that published at these times and had the first `accepted` messages accepted."""
    count = len(at) if accepted is None else accepted
    lives = [
        {"life": life, "at": list(at), "accepted": [[0, count - 1]] if count else [], "expired": [], "dropped": 0, **values}
    ]
    return {"lives": lives, "blocked": 0.0}


def received(
    *deliveries: tuple[int, float],
    spans: tuple[tuple[float, float | None, str], ...] = ((0.0, None, ""),),
    wanted: tuple[float, float | None] = (0.0, None),
    destination: str = "topic:t",
    publisher: int = PUBLISHER,
    **values: Any,
) -> dict[str, Any]:
    """Return the result of a subscriber with one subscription, to which these (number, time) were delivered."""
    numbers, at = [number for number, _ in deliveries], [when for _, when in deliveries]
    subscription = {
        "number": 0,
        "destination": destination,
        "selector": "",
        "wanted": list(wanted),
        "spans": [list(span) for span in spans],
        "delivered": {"publisher": [publisher] * len(at), "number": numbers, "at": at},
    }
    return {"subscriptions": [subscription], "expired": [], "lost": [], **values}


def account(
    sent: dict[str, Any], got: dict[str, Any], guarantees: Guarantees = ALL, **values: Any
) -> tuple[SubscriptionAccount, list[str]]:
    """Return the account of a subscription, and the rules that were broken."""
    ledger = Ledger(guarantees, 1000.0)
    ledger.add_publisher("publisher p", plan(**values), sent)
    (found,) = ledger.add_subscriber("r", got)
    return found, [broken.rule for broken in ledger.broken]


def test_what_is_delivered_in_order_breaks_nothing() -> None:
    found, broken = account(published(1.0, 2.0, 3.0), received((0, 1.5), (1, 2.1), (2, 3.2)))
    assert broken == []
    assert (found.due, found.promised, found.delivered, found.lost, found.missing) == (3, 3, 3, 0, 0)
    assert found.latency_p50 == pytest.approx(0.2)
    assert found.latency_max == pytest.approx(0.5)
    assert found.goodput_mbit_s == pytest.approx(300 * 8e-6 / 2.2)
    assert found.in_order


def test_a_promised_message_that_is_skipped_is_missing_and_breaks_the_rule() -> None:
    found, broken = account(published(1.0, 2.0, 3.0), received((0, 1.1), (2, 3.1)))
    assert (found.lost, found.missing) == (1, 1)
    assert broken == ["promised"]


def test_a_message_that_is_told_lost_is_missing_and_breaks_no_rule() -> None:
    found, broken = account(published(1.0, 2.0, 3.0), received((0, 1.1), (2, 3.1), lost=[[PUBLISHER, 1, 1, 1, 2.5]]))
    assert found.missing == 1
    assert broken == []


def test_a_number_of_lost_messages_counts_for_those_published_before_it_was_told() -> None:
    told = [[PUBLISHER, 1, None, None, 2.5]]
    assert account(published(1.0, 2.0), received((0, 1.1), lost=told))[0].untold == 0
    assert account(published(1.0, 2.0, 3.0), received((0, 1.1), lost=told))[0].untold == 1


def test_a_gap_may_be_told_before_the_last_subscription_is_in_effect() -> None:
    got = received((0, 1.1), (2, 3.1), lost=[[PUBLISHER, 1, None, None, 2.5]])
    later = received(spans=((4.0, None, ""),), wanted=(4.0, None), destination="topic:other")
    got["subscriptions"] += [{**later["subscriptions"][0], "number": 1}]
    ledger = Ledger(Guarantees(tells="gaps"), 1000.0)
    ledger.add_publisher("publisher p", plan(), published(1.0, 2.0, 3.0))
    ledger.add_subscriber("r", got)
    assert ledger.untold == []
    ledger.add_subscriber("s", {**got, "lost": []})
    assert [(broken.host, broken.rule) for broken in ledger.untold] == [("s", "told")]


def test_the_last_messages_of_a_run_may_be_under_way() -> None:
    found, broken = account(published(1.0, 2.0), received((0, 1.1)))
    assert found.missing == 1
    assert broken == []


def test_what_was_not_accepted_is_lost_and_not_promised() -> None:
    found, broken = account(published(1.0, 2.0, 3.0, accepted=1), received((0, 1.1), (2, 3.1)))
    assert (found.promised, found.delivered, found.lost, found.missing) == (1, 2, 1, 0)
    assert broken == []


def test_an_interrupted_subscription_promises_nothing_of_what_was_under_way() -> None:
    spans = ((0.0, 2.5, "reset"), (4.0, None, ""))
    found, broken = account(published(1.0, 2.0, 3.0, 5.0), received((0, 1.1), (3, 5.1), spans=spans))
    assert (found.due, found.promised, found.delivered, found.lost, found.missing) == (4, 2, 2, 2, 0)
    assert found.interruptions == 1
    assert broken == []


def test_only_messages_published_while_the_subscription_is_wanted_are_due() -> None:
    got = received((1, 2.1), spans=((1.5, 2.5, "unsubscribed"),), wanted=(1.5, 2.5))
    found, broken = account(published(1.0, 2.0, 3.0), got)
    assert (found.due, found.delivered, found.lost, found.interruptions) == (1, 1, 0, 0)
    assert broken == []


def test_a_message_that_comes_twice_breaks_once_unless_a_crash_was_between() -> None:
    found, broken = account(published(1.0), received((0, 1.1), (0, 1.2)))
    assert (found.repeated, broken) == (1, ["once"])
    spans = ((0.0, 1.15, "crashed"), (1.18, None, ""))
    found, broken = account(published(1.0), received((0, 1.1), (0, 1.2), spans=spans))
    assert (found.repeated, broken) == (1, [])


def test_messages_out_of_order_break_fifo_only_where_it_is_guaranteed() -> None:
    sent, got = published(1.0, 2.0), received((1, 2.1), (0, 2.2))
    assert account(sent, got)[1] == ["fifo"]
    found, broken = account(sent, got, Guarantees())
    assert (found.in_order, broken) == (False, [])


def test_priorities_may_overtake_where_order_is_by_priority() -> None:
    guarantees = Guarantees(fifo=True, fifo_by_priority=True)
    priorities = [plan(priority={0: 1, 9: 1}).priority(number) for number in range(20)]
    first, second = 0, next(number for number in range(20) if priorities[number] != priorities[0])
    times = [1.0 + number / 10 for number in range(20)]
    assert account(published(*times), received((second, 4.0), (first, 5.0)), guarantees, priority={0: 1, 9: 1})[1] == []
    same = next(number for number in range(1, 20) if priorities[number] == priorities[0])
    got = received((same, 4.0), (first, 5.0))
    assert account(published(*times), got, guarantees, priority={0: 1, 9: 1})[1] == ["fifo"]


@pytest.mark.parametrize(
    "got",
    [
        received((5, 1.1)),
        received((0, 1.1), publisher=8),
        received((0, 1.1), destination="topic:other"),
    ],
)
def test_what_was_not_published_or_does_not_match_breaks_matches(got: dict[str, Any]) -> None:
    assert "matches" in account(published(1.0), got)[1]


def test_a_crash_of_the_publisher_voids_promises_that_do_not_survive_it() -> None:
    sent = published(1.0, 2.0)
    sent["lives"] += published(5.0, life=1)["lives"]
    got = received((0, 1.1), (1 << LIFE_SHIFT, 5.1))
    assert account(sent, got, Guarantees())[0].missing == 0
    assert account(sent, got)[0].missing == 1


def test_expired_messages_are_not_lost() -> None:
    sent = published(1.0, 2.0, 3.0, expired=[1])
    found, broken = account(sent, received((0, 1.1), expired=[[PUBLISHER, 2]]))
    assert (found.expired, found.lost, found.missing) == (2, 0, 0)
    assert broken == []


def test_what_was_not_delivered_in_its_time_has_expired() -> None:
    found, broken = account(published(1.0, 2.0, 3.0), received((0, 1.1), (2, 3.1)), expires="500ms")
    assert (found.delivered, found.expired, found.lost, found.missing) == (2, 1, 0, 0)
    assert broken == []


def test_100_000_messages_are_told_apart() -> None:
    count = 100_000
    at = [n / 1000 for n in range(count)]
    deliveries = [(n, at[n] + 0.001) for n in range(count) if n != 70_000]
    found, broken = account(published(*at), received(*deliveries))
    assert (found.due, found.delivered, found.repeated, found.missing) == (count, count - 1, 0, 1)
    assert broken == ["promised"]


def test_a_process_that_failed_has_an_empty_account() -> None:
    ledger = Ledger(ALL, 1000.0)
    ledger.add_publisher("publisher p", plan(), {"fault": "died"})
    assert ledger.add_subscriber("r", {"fault": "died"}) == []
    assert ledger.publishers()[0].published == 0
