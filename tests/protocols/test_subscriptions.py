"""Tables of subscriptions: nodes with one and the same subscription share one, and none changes that of another."""

import pytest

from protocols.errors import UsageError
from protocols.messaging import Subscription
from protocols.subscriptions import SubscriptionTable, shared_table

FIRST, SECOND = Subscription(0, "topic:a"), Subscription(1, "topic:a")


def test_nodes_with_the_same_subscription_share_a_table_until_one_of_them_adds_another() -> None:
    one = shared_table(SubscriptionTable).added(FIRST)
    other = shared_table(SubscriptionTable).added(FIRST)
    assert one is other
    one = one.added(SECOND)
    assert (list(one), list(other)) == ([FIRST, SECOND], [FIRST])
    assert (list(one.numbers_of("topic:a")), list(other.numbers_of("topic:a"))) == ([0, 1], [0])


def test_what_is_left_of_a_table_is_not_changed_by_others_with_the_same_subscription() -> None:
    left = shared_table(SubscriptionTable).added(FIRST).added(SECOND).removed(1)
    more = left.added(SECOND)
    assert (list(left), list(more)) == ([FIRST], [FIRST, SECOND])
    assert list(more.removed(0).removed(1)) == list(shared_table(SubscriptionTable)) == []


def test_a_number_in_use_an_unknown_number_and_a_selector_are_refused() -> None:
    table = shared_table(SubscriptionTable).added(FIRST)
    with pytest.raises(UsageError, match="subscription 0 is in use"):
        table.added(Subscription(0, "topic:b"))
    with pytest.raises(UsageError, match="no subscription 7"):
        table.removed(7)
    with pytest.raises(UsageError, match="no selectors"):
        table.added(Subscription(2, "topic:b", "x = 1"))
    assert list(table) == [FIRST]
