"""Subscriptions to patterns of subjects."""

import pytest

from protocols.distributor.subscriptions import SubjectSubscriptions
from protocols.errors import UsageError
from protocols.messaging import Subscription
from protocols.subscriptions import shared_table

ONE, ALL = Subscription(1, "/market/*/share"), Subscription(2, "/market/...")


def test_a_subject_is_for_all_subscriptions_with_a_pattern_that_it_matches() -> None:
    table = shared_table(SubjectSubscriptions).added(ONE).added(ALL)
    assert sorted(table.numbers_of("/market/oslo/share")) == [1, 2]
    assert table.numbers_of("/market/oslo") == (2,)
    left = table.removed(2)
    assert (left.numbers_of("/market/oslo/share"), left.numbers_of("/market/oslo")) == ((1,), ())


@pytest.mark.parametrize("first", [[], [ONE], [ONE, ALL]], ids=len)
def test_an_impossible_pattern_is_refused_and_changes_nothing(first: list[Subscription]) -> None:
    table = shared_table(SubjectSubscriptions)
    for subscription in first:
        table = table.added(subscription)
    with pytest.raises(UsageError, match=r"nothing can follow '\.\.\.'"):
        table.added(Subscription(7, "/market/.../share"))
    assert (list(table), 7 in table) == (first, False)
    assert sorted(table.numbers_of("/market/oslo/share")) == [each.number for each in first]
