"""The subscriptions of a subscriber, whose protocol or whose server matches messages."""

from collections.abc import Iterator, Sequence
from typing import Final

from protocols.errors import UsageError
from protocols.events import Event
from protocols.messaging import MessageExpired, MessageReceived, Publication, Subscription

__all__ = ["SubscriptionTable"]

_NONE: Final[dict[str, list[int]]] = {}
"""The table of those without tables; nothing is added to it."""


class SubscriptionTable:
    """Subscriptions by number and by destination. `has_selectors`: the server of the protocol takes selectors.

    In simulations most nodes have one, which takes no tables.
    """

    __slots__ = ("_by_destination", "_by_number", "_has_selectors", "_only")

    def __init__(self, has_selectors: bool = False) -> None:
        self._has_selectors = has_selectors
        self._only: Subscription | None = None
        self._by_number: dict[int, Subscription] | None = None
        self._by_destination: dict[str, list[int]] = _NONE

    def __iter__(self) -> Iterator[Subscription]:
        if self._by_number is not None:
            return iter(list(self._by_number.values()))
        return iter([] if self._only is None else [self._only])

    def __len__(self) -> int:
        return int(self._only is not None) if self._by_number is None else len(self._by_number)

    def __contains__(self, number: int) -> bool:
        if self._by_number is not None:
            return number in self._by_number
        return self._only is not None and self._only.number == number

    def has(self, destination: str) -> bool:
        """Return whether a subscription is for a destination."""
        return bool(self.numbers_of(destination))

    def add(self, subscription: Subscription) -> None:
        """Add a subscription. UsageError for a number in use, and for a selector where there are none."""
        if subscription.selector and not self._has_selectors:
            raise UsageError(f"selector {subscription.selector!r}: this protocol has no selectors")
        self._enter(subscription)

    def _enter(self, subscription: Subscription) -> None:
        if subscription.number in self:
            raise UsageError(f"subscription {subscription.number} is in use")
        if self._only is None and self._by_number is None:
            self._only = subscription
            return
        if self._by_number is None:
            self._by_number, self._by_destination = {}, {}
        for each in (self._only, subscription):
            if each is not None:
                self._by_number[each.number] = each
                self._by_destination.setdefault(each.destination, []).append(each.number)
        self._only = None

    def remove(self, number: int) -> Subscription:
        """Remove a subscription and return it. UsageError for an unknown number."""
        if number not in self:
            raise UsageError(f"there is no subscription {number}")
        if self._by_number is None:
            assert self._only is not None
            gone, self._only = self._only, None
            return gone
        gone = self._by_number.pop(number)
        left = self._by_destination[gone.destination]
        left.remove(number)
        if not left:
            del self._by_destination[gone.destination]
        return gone

    def numbers_of(self, destination: str) -> Sequence[int]:
        """Return the numbers of the subscriptions to a destination."""
        only = self._only
        if only is not None:
            return (only.number,) if only.destination == destination else ()
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
