"""The subscriptions of a subscriber, whose protocol or whose server matches messages."""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, TypeVar, cast

from protocols.errors import UsageError
from protocols.events import Event
from protocols.messaging import MessageExpired, MessageReceived, Publication, Subscription

__all__ = ["SubscriptionTable", "shared_table"]

TableT = TypeVar("TableT", bound="SubscriptionTable")


class SubscriptionTable:
    """Subscriptions by number and by destination, without selectors.

    One with at most one subscription is not modified, because in simulations most nodes have the same and share it
    (`shared_table`). So `added` and `removed` return the table that takes the place of this one.
    """

    __slots__ = ("_by_destination", "_by_number")

    def __init__(self, *subscriptions: Subscription) -> None:
        self._by_number: dict[int, Subscription] = {}
        self._by_destination: dict[str, list[int]] = {}
        for subscription in subscriptions:
            self._enter(subscription)

    def __iter__(self) -> Iterator[Subscription]:
        return iter(list(self._by_number.values()))

    def __len__(self) -> int:
        return len(self._by_number)

    def __contains__(self, number: int) -> bool:
        return number in self._by_number

    def __getitem__(self, number: int) -> Subscription:
        """Return a subscription. UsageError for an unknown number."""
        if number not in self._by_number:
            raise UsageError(f"there is no subscription {number}")
        return self._by_number[number]

    def has(self, destination: str) -> bool:
        """Return whether a subscription is for a destination."""
        return destination in self._by_destination

    def check(self, subscription: Subscription) -> None:
        """Raise UsageError for a selector, since there are none."""
        if subscription.selector:
            raise UsageError(f"selector {subscription.selector!r}: this protocol has no selectors")

    def added(self: TableT, subscription: Subscription) -> TableT:
        """Return the table with one more subscription. UsageError for a number in use, and for what `check` refuses."""
        self.check(subscription)
        if subscription.number in self._by_number:
            raise UsageError(f"subscription {subscription.number} is in use")
        if not self._by_number:
            return shared_table(type(self), subscription)
        table = self if len(self._by_number) > 1 else type(self)(*self)
        table._enter(subscription)
        return table

    def removed(self: TableT, number: int) -> TableT:
        """Return the table without a subscription. UsageError for an unknown number."""
        gone = self[number]
        if len(self._by_number) == 1:
            return shared_table(type(self))
        self._remove(gone)
        return self

    def _enter(self, subscription: Subscription) -> None:
        self._by_number[subscription.number] = subscription
        self._by_destination.setdefault(subscription.destination, []).append(subscription.number)

    def _remove(self, subscription: Subscription) -> None:
        del self._by_number[subscription.number]
        numbers = self._by_destination[subscription.destination]
        numbers.remove(subscription.number)
        if not numbers:
            del self._by_destination[subscription.destination]

    def numbers_of(self, destination: str) -> Sequence[int]:
        """Return the numbers of the subscriptions to a destination."""
        return self._by_destination.get(destination, ())

    def delivery(self, message: Publication, time: float) -> list[Event]:
        """Return the event of each subscription to the message's destination, or that it has expired.

        `time` is in seconds since 1970.
        """
        numbers = self.numbers_of(message.destination)
        if numbers and message.expires_at <= time:
            return [MessageExpired(message.publisher, message.number)]
        return [MessageReceived(number, message) for number in numbers]

    def event(self, number: int, message: Publication, time: float) -> Event:
        """Return the event of a message that the server sent for a subscription, or that it has expired."""
        if message.expires_at <= time:
            return MessageExpired(message.publisher, message.number)
        return MessageReceived(number, message)


def shared_table(kind: type[TableT], *only: Subscription) -> TableT:
    """Return a table of at most one subscription, which is not to be modified."""
    return cast(TableT, _table_of(cast(Any, kind), *only))


@lru_cache(maxsize=64)
def _table_of(kind: type[SubscriptionTable], *only: Subscription) -> SubscriptionTable:
    return kind(*only)
